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

from memories.capture.text import INVISIBLE, fold

KEYS = (
    r"[^\s;|]{0,60}(?:\.ssh/|id_(?:rsa|ed25519|ecdsa)\b|\.aws/credentials|/etc/shadow|\.kube/config|\.netrc|\.pgpass|"
    r"\.git-credentials|\.docker/config\.json|\.env\b|/run/secrets/)"
)
KEY_WORDS = ".ssh/ id_rsa id_ed25519 id_ecdsa .aws/ /etc/shadow .kube/ .netrc .pgpass .git-c .docker/ .env /run/secrets"
SHELL = (
    r"(?:sudo\s{1,3}(?:-\S{1,20}\s{1,3})?)?(?:/\S{1,40}/)?"
    r"(?:(?:ba|z|da|k)?sh\b|(?:python|perl|ruby|node|php)[\d.]{0,4}(?![\w-]|\s-m\s)|iex\b)"
)
SENDS = r"\b(?:curl|wget|nc|ncat|socat|nslookup|dig|Invoke-WebRequest)\b"

# What it is, words of which the text holds one (in lower case), the pattern.
TALKS = "talks to the model: "
COMMAND = "holds a dangerous command: "
FORMS = tuple(
    (what, tuple(words.split()), re.compile(pattern, re.IGNORECASE))
    for what, words, pattern in (
        (
            f"{TALKS}asks to set instructions aside",
            "ignore disregard forget override bypass",
            r"\b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,40}"
            r"\b(?:previous|prior|earlier|preceding|above|all|any|your|system|safety)\b[^.]{0,30}"
            r"\b(?:instructions?|rules?|prompts?|guidelines?|directions?|orders?|restrictions?)\b",
        ),
        (
            f"{TALKS}asks to set instructions aside",  # German, French, Spanish, Portuguese, Italian, Dutch, Polish
            "ignor vergiss vergess missacht oubli olvid esque dimentic negeer vergeet zapomnij",
            r"\b(?:z?ignor\w{1,4}|verg[ie]ss(?:en sie)?|missacht\w{1,2}|oubli\w{1,3}|olvid\w{1,3}|"
            r"esque[cç]\w{1,2}|dimentic\w{1,4}|negeer|vergeet|zapomnij)\b[^.]{0,40}\b(?:(?:an|vor)(?:weisung|gabe)\w{0,2}|regeln|instru\S{4,10}|consignes?|"
            r"r[eè]gles|reglas|regras|regole|istruzioni|regels|polece\w{1,3}|zasad\w?)\b",
        ),
        (
            f"{TALKS}asks to set instructions aside",  # Russian, Chinese, Japanese, Korean, Persian, Arabic
            "игнорируй забудь забудьте 忽略 无视 無視 忘 무시 잊 نادیده تجاهل",
            r"\b(?:про)?(?:игнорируй|забудь)(?:те)?\b[^.]{0,40}\b(?:инструкци|указани|правил)|(?:忽略|无视|無視|忘记|忘掉)[^。]{0,12}"
            r"(?:指令|指示|规则|提示)|(?:指示|命令|ルール)[^。]{0,8}(?:無視|忘れ)|(?:지시|명령|규칙)[^.]{0,10}(?:무시|잊)|"
            r"(?:دستور|قوانین)[^.]{0,30}نادیده|نادیده[^.]{0,30}(?:دستور|قوانین)|تجاهل[^.]{0,30}(?:تعليمات|التعليمات|الأوامر)",
        ),
        (
            f"{TALKS}gives orders",
            "you",
            r"\byou (?:must|should|will|have to|are to) now\b|\bfrom now on,? you\b",
        ),
        (
            f"{TALKS}gives a new role",
            "you pretend",
            r"\byou are now (?:a|an|the|in|no longer|free)\b|\bpretend (?:to be|that you|you are)\b",
        ),
        (f"{TALKS}names the prompt", "prompt instruction", r"\bsystem prompt\b|\bnew instructions?\s*:"),
        (
            f"{TALKS}asks for secrecy",
            "user operator human",
            r"\b(?:do(?: not|n't)|never) (?:tell|inform|alert|(?:mention|reveal|report) (?:this|it) to) "
            r"(?:the |any |your )?(?:user|operator|human)s?\b",
        ),
        (
            f"{TALKS}holds a role tag",
            "< [ human assistant system",
            r"</?(?:\w{1,20}:)?(?:system(?:[-_]\w{1,30})?|assistant|human|instructions?|tool_(?:use|call|result)s?|"
            r"thinking|invoke|function_(?:calls?|results?))\b[^>]{0,200}>|</user>|<\|[\w-]{1,40}\|>|\[/?INST\]|<</?SYS>>|"
            r"<(?:start|end)_of_turn>|(?:^|[.!?\"\n]\s{0,3}|#{1,6}\s{0,3}|\[)(?:human|assistant|system (?:message|"
            r"prompt|override|note|notice|update))\s?(?:\]|:\s{0,3}\S)|#{2,6}\s?system\s?:",
        ),
        (
            f"{TALKS}holds a tool call",
            '"type" "role" "tool "name" "function_call" "mcpservers"',
            r"\"(?:type|role)\"\s{0,5}:\s{0,5}\"(?:tool_use|tool_result|tool_calls?|function_call|function|system|assistant)\"|"
            r"\"(?:tool_calls|function_call|tool_use_id|mcpServers)\"\s{0,5}:|"
            r"\"(?:tool|name)\"\s{0,5}:\s{0,5}\"(?:Bash|Write|Edit|WebFetch|mcp__\w{1,60})\"",
        ),
        (
            f"{TALKS}holds a marker",
            "[memory: [event: [cooldown: # ## (confidence:",
            r"\[(?:MEMORY|EVENT|COOLDOWN):|#\s?(?:Add To Memory|Memorize|Remember):|"
            r"## Operational Memory|\(confidence:\s?[\d.]",
        ),
        (f"{TALKS}holds a comment", "<!-- <![cdata[ [//]:", r"<!--|<!\[CDATA\[|\[//\]:\s?#"),
        (
            f"{TALKS}holds an image or a script address",
            "![ data:text/ javascript:",
            r"!\[[^\]]{0,100}\]\(\s?https?:|\bdata:text/\w{1,20}[;,]|\bjavascript:\S",
        ),
        (
            f"{COMMAND}runs what it downloads",
            "curl wget iwr irm base64 powershell /dev/tcp/ ncat",
            rf"\b(?:curl|wget|iwr|irm)\b[^|;]{{0,200}}\|\s{{0,3}}(?:tee [^|]{{1,60}}\|\s{{0,3}})?{SHELL}|"
            r"(?:\bsh|\bbash|\bzsh|\bsource|(?<!\S)\.|\beval|\bpython3?)\s{1,3}(?:-c\s{1,3})?[\"']?(?:<\(|\$\(|`)\s{0,3}(?:curl|wget)\b|"
            rf"\bbase64\s{{1,3}}(?:-d|-D|--decode)\b[^|]{{0,60}}\|\s{{0,3}}{SHELL}|\bpowershell\b[^|]{{0,60}}\s-e(?:nc|ncodedcommand)?\s|"
            r"\b(?:ba)?sh\s{1,3}-i\s{0,3}>&?\s{0,3}/dev/tcp/|\bnc(?:at)?\s[^|;]{0,60}\s-e\s",
        ),
        (
            f"{COMMAND}sends key files out",
            KEY_WORDS,
            rf"\s(?:-[dFT]|--(?:data(?:-\w{{1,10}})?|form|upload-file|post-file))[ =]?{KEYS}|"
            rf"\b(?:scp|rsync)\b[^;|]{{0,80}}(?<!-i)\s{KEYS}[^;|]{{0,60}}\s\S{{1,60}}:|"
            rf"(?<!\S){KEYS}[^;|]{{0,80}}\|[^;]{{0,80}}{SENDS}|"
            rf"{SENDS}[^;]{{0,120}}(?:<|\$\(\s?\w{{1,10}}\s|`\w{{1,10}}\s){KEYS}|(?<!\S){KEYS}[^;]{{0,40}}/dev/tcp/|"
            rf"\b(?:send|upload|post|copy|mail|forward|paste)\b[^.]{{0,60}}\s{KEYS}[^;]{{0,60}}(?:https?://|\w@\w{{1,40}}\.\w)",
        ),
        (
            f"{COMMAND}deletes a root",
            "rm --no-preserve-root mkfs of=/dev/ :(){ :() /dev/sd /dev/nvme",
            r"\brm\s{1,3}(?:-{1,2}[\w-]{1,20}\s{1,3}){1,4}[\"']?(?:/|~|\$HOME|\$\{HOME\}|"
            r"/(?:etc|var|home|usr|boot|root|opt|srv|data|mnt|lib|bin))/?\*?[\"']?(?=$|[\s;|&.,)`'\"])|--no-preserve-root|"
            r"\bmkfs(?:\.\w{1,8})?\s{1,3}[^;|]{0,40}/dev/|\bdd\b[^;|]{0,80}\bof=/dev/(?:sd|nvme|vd|mmcblk|hd)|"
            r":\(\)\s?\{\s?:\|:&\s?\};|>\s?/dev/(?:sd[a-z]|nvme\d)",
        ),
        (
            f"{COMMAND}switches protection off",
            "dangerously bypasspermissions --yolo nopasswd authorized_keys chmod claudeops_",
            r"--(?:allow-)?dangerously-\w{1,30}|\bbypassPermissions\b|--yolo\b|\bNOPASSWD:\s?ALL\b|>>\s?\S{0,60}authorized_keys\b|"
            r"\bchmod\s{1,3}(?:-R\s{1,3})?0?777\s{1,3}/(?:\s|$|etc|root)|"
            r"\bCLAUDEOPS_(?:TRUST\s?=\s?[\"']?open|MAX_TIER\s?=\s?[\"']?[23])",
        ),
    )
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
    if any(not _is_alphabetical(found[0]) for found in SPELLED.finditer(text)):
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


def _latin_of(found: re.Match[str]) -> str:
    return _latin(found[0])


def _with_latin_letters(found: re.Match[str]) -> str:
    return found[0].translate(LOOK_ALIKES) if not found[0].isascii() and MIXED.search(found[0]) else found[0]


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
        found = decode(value).decode()
    except ValueError:
        return
    if TEXT.search(found) and all(character.isprintable() or character.isspace() for character in found):
        yield found
