"""Closed forms of an attack: prompt structure, commands, one phrase in several languages.

Known forms only: hostile meaning in new words is not found here. Every gap is bounded, and a pattern runs only on a
text that holds one of its words, so that most texts cost a few searches for plain words.

`disguise` names what only somebody who hides a text writes; it needs the text before folding removes the evidence.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from urllib.parse import unquote

from memories.capture.patterns import expressions, read_table
from memories.capture.text import INVISIBLE, fold

COMMAND = "holds a dangerous command: "
"""How the names of those forms begin that a command has."""

_TABLE = read_table("attack")
# What it is, words of which the text holds one (in lower case), the pattern.
FORMS = tuple(
    (
        str(form["what"]),
        tuple(form["words"].split()),
        re.compile(expressions({**_TABLE["parts"], "form": form["patterns"]})["form"], re.IGNORECASE),
    )
    for form in _TABLE["forms"]
)


def attack_form(reading: str) -> str:
    """Return the first form in a reading of a text, or ""."""
    lower = reading.lower()
    for what, words, pattern in FORMS:
        if any(word in lower for word in words) and pattern.search(reading):
            return what
    return ""


_LATIN = "[A-Za-zÀ-ÖØ-öø-ɏ]"
_OTHER = (
    "[\u0370-\u052f\u0530-\u058f\u13a0-\u13ff\u2c80-\u2cff\ua4d0-\ua4ff]"  # Greek to Armenian, Cherokee, Coptic, Lisu
)
_SELECTOR = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
# A soft hyphen with two letters on each side is a hyphenation. ZWNJ and ZWJ belong to other scripts and emoji.
IN_A_WORD = re.compile(
    f"(?!{_LATIN}\u00ad{_LATIN}){_LATIN}(?:{INVISIBLE.pattern}|{_SELECTOR}){{1,50}}{_LATIN}"
    f"|(?<!{_LATIN}){_LATIN}\u00ad{_LATIN}|{_LATIN}\u00ad{_LATIN}(?!{_LATIN})|{_SELECTOR}{{2}}"
)
TAGS = re.compile("[\U000e0001-\U000e007f]")
FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e007a]{2,10}\U000e007f")
OVERRIDE = re.compile("[\u202d\u202e]")
DIRECTION = re.compile("[\u202a\u202b\u2066-\u2068]")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
MARKS = re.compile("(?<=[A-Za-z])[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]{1,20}")
ANY_MARK = re.compile("[\u0300-\u036f]")
EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Blocks of letters that stand for a Latin one: small capitals, raised, circled, squared, mathematical, full-width.
STYLED = re.compile(
    "[\u0262-\u02b8\u1d00-\u1dbf\u2071-\u209c\u2102-\u2138\u249c-\u24e9\uff21-\uff5a\U0001d400-\U0001d7ff"
    "\U0001f110-\U0001f189]"
)
NAMED = re.compile(r"(?:NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL LETTER|LATIN LETTER SMALL CAPITAL) ([A-Z])")
WORD = re.compile(r"[^\W\d_]{2,100}")
MIXED = re.compile(f"{_LATIN}{_OTHER}{{1,50}}{_LATIN}|(?<!\\w){_OTHER}{{1,50}}{_LATIN}")
# Look-alikes in the order of the Latin letters below. Only a word that mixes alphabets is read with them.
LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁԛԝһӏгпАВЕКМНОРСТУХІЈЅοανρικυτεηχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdqwhlrnABEKMHOPCTYXIJSoavpikuteexyABEZHIKMNOPTYX",
)
# The same sign between all letters. Dots only in longer runs: abbreviations such as S.M.A.R.T. have them.
SPELLED = re.compile(
    r"(?<!\w)[^\W\d_](?:([ _*|·•~-])[^\W\d_])(?:\1[^\W\d_]){3,200}(?!\w)|(?<!\w)[^\W\d_](?:\.[^\W\d_]){6,200}(?!\w)"
)
JOINED = re.compile(r"(?<!\w)[^\W\d_](?:([ ._*|·•~/-])[^\W\d_])(?:\1[^\W\d_]){1,200}(?!\w)")
LEET = str.maketrans("01345789@$!|+", "oieastbgasilt")
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,10000}")
HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :]?){8,5000}|(?:\\x[0-9A-Fa-f]{2}){3,5000}")
ENCODED_LETTER = re.compile(  # nobody has to encode these
    r"%(?:4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a])|&#(?:x(?:[46][1-9a-f]|[57][0-9a])|6[5-9]|[789]\d|1[01]\d|12[0-2])\b|"
    r"\\[ux](?:00)?(?:4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a])",
    re.IGNORECASE,
)
ESCAPE = re.compile(r"\\(?:u00|x)([0-9A-Fa-f]{2})")
TEXT = re.compile(r"[A-Za-z]{2}\W{1,3}[A-Za-z/~.-]")


def disguise(text: str) -> str:
    """Say how a raw text hides what it says; "" when it does not."""
    if not text.isascii() and (hidden := _hidden_characters(text)):
        return hidden
    if any(not _is_alphabetical(match[0]) for match in SPELLED.finditer(text)):
        return "words spelled letter by letter"
    if len(ENCODED_LETTER.findall(text)) >= 4:
        return "encoded letters"
    return "encoded text" if any(_decoded_runs(text)) else ""


def readings(raw: str, text: str) -> Iterator[str]:
    """Yield a text folded, as it was written, and each other reading that differs from the folded one."""
    normal = unicodedata.normalize("NFKC", text)
    yield normal
    if raw != text:
        yield raw
    skeleton = normal
    if not text.isascii():
        bare = ANY_MARK.sub("", unicodedata.normalize("NFD", text))
        skeleton = WORD.sub(_with_latin_letters, STYLED.sub(_latin_of, bare))
    joined = JOINED.sub(lambda run: re.sub(r"[\W_]", "", run[0]), skeleton)
    plain = fold(ESCAPE.sub(lambda code: chr(int(code[1], 16)), html.unescape(unquote(skeleton))))
    yield from {skeleton, skeleton.translate(LEET), joined, plain} - {normal}
    yield from map(fold, _decoded_runs(text))
    yield skeleton[::-1]
    yield codecs.encode(skeleton, "rot13")


def _hidden_characters(text: str) -> str:
    if IN_A_WORD.search(text):
        return "invisible characters within words"
    if TAGS.search(FLAG.sub("", text)):
        return "invisible tag characters"
    if OVERRIDE.search(text) or (DIRECTION.search(text) and not RIGHT_TO_LEFT.search(text)):
        return "characters that change the reading direction"
    if sum(len(marks) for marks in MARKS.findall(unicodedata.normalize("NFC", text))) >= 3:
        return "combining marks on plain letters"
    if sum(_latin(letter) != letter for letter in STYLED.findall(text)) >= 4 and not EAST_ASIAN.search(text):
        return "styled letters"
    if MIXED.search(text) and any(map(_hides_latin, WORD.findall(text))):
        return "words that mix alphabets"
    return ""


@lru_cache(maxsize=2048)
def _latin(letter: str) -> str:
    """The Latin letter that a styled one stands for; the letter itself when it stands for none."""
    plain = unicodedata.normalize("NFKC", letter)
    if len(plain) == 1 and plain.isascii() and plain.isalpha():
        return plain
    named = NAMED.fullmatch(unicodedata.name(letter, ""))
    return named[1].lower() if named else letter


def _latin_of(match: re.Match[str]) -> str:
    return _latin(match[0])


def _with_latin_letters(match: re.Match[str]) -> str:
    return match[0].translate(LOOK_ALIKES) if not match[0].isascii() and MIXED.search(match[0]) else match[0]


def _hides_latin(word: str) -> bool:
    """Whether a word of four letters or more mixes alphabets and can be read as Latin.

    A foreign ending of a Latin name ("RAIDа") is left alone, and so are units and formulas ("kΩ", "Δt").
    """
    if len(word) < 4 or word.isascii() or not MIXED.search(word):
        return False
    return re.fullmatch(f"{_LATIN}+", word.translate(LOOK_ALIKES)) is not None or not re.search("[\u0370-\u052f]", word)


def _is_alphabetical(spelled: str) -> bool:
    codes = [ord(letter) for letter in spelled.lower()[::2]]
    return all(second - first == 1 for first, second in pairwise(codes))


def _decoded_runs(text: str) -> Iterator[str]:
    """Yield what runs of base64 and hexadecimal digits decode to, where that is text."""
    for run in BASE64.findall(text):
        padded = run.replace("-", "+").replace("_", "/") + "=" * (-len(run) % 4)
        yield from _text_of(base64.b64decode, padded)
    for run in HEX.findall(text):
        yield from _text_of(binascii.unhexlify, re.sub(r"\\x|[ :]", "", run))


def _text_of(decode: Callable[[str], bytes], value: str) -> Iterator[str]:
    try:
        text = decode(value).decode()
    except ValueError:
        return
    if TEXT.search(text) and all(character.isprintable() or character.isspace() for character in text):
        yield text
