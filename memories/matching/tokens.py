"""Split text into tokens: words, numbers, names and breaks, in order. Linear in the length of the text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from memories.capture.text import join_lettered

from .units import UNITS


class Sort(Enum):
    WORD = "word"
    NUMBER = "number"
    NAME = "name"  # an identifier: a path, a host, a version, an address
    COMMA = "comma"  # , and : end a clause
    STOP = "stop"  # ; . -- ( end a statement


A_WORD: Final = Sort.WORD
A_NUMBER: Final = Sort.NUMBER
A_NAME: Final = Sort.NAME
A_COMMA: Final = Sort.COMMA
A_STOP: Final = Sort.STOP
"""Constants, because access through an Enum takes ten times as long."""


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is folded; for a number it is the digits, and its unit is the next word."""

    sort: Sort
    text: str


COMMA, STOP = Token(A_COMMA, ","), Token(A_STOP, ";")

_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_SPELLINGS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        ("[‘’‛ʼ´]", "'"),
        ('[`"“”„«»*]', " "),
        (r"(?<=\d)[‐‑‒–—](?=\d)", "-"),
        ("[‐‑]", "-"),
        ("[‒–—―]", " -- "),
        ("[-=]>|[→⇒]", " to "),
        (r"[~≈∼]\s?(?=\d)", " about "),
        (r"(?:>=?|≥)\s?(?=\d)", " at least "),
        (r"(?:<=?|≤)\s?(?=\d)", " at most "),
        (r"(?<=\d) ([ap]m)\b", r"\1"),
        (r"\s&\s", " and "),
        (r"(?<=\d)\s?%", " percent "),
        (r"(?<=[kmgt]bit)(?:/s| per second| a second)", ""),
        (r"\bno\. ?(?=\d)|\bnr\.? ?(?=\d)|(?<!\w)#(?=\d)", "number "),
        (r"\b1st\b", "first"),
        (r"\b2nd\b", "second"),
        (r"\b3rd\b", "third"),
        (r"\b(\d{1,2}) in the morning\b", r"\1am"),
        (r"\b(\d{1,2}) in the (?:evening|afternoon)\b", r"\1pm"),
        (r"\bat (\d{1,2}) o'?clock\b", r"at \1:00"),
    )
)
_SPELLED = re.compile(r"""[^\x00-\x7f]|["`*~<>&%#]""")
_SPELLED_WORDS = (" am", " pm", "bit/s", "bit ", "no.", "nr", "1st", "2nd", "3rd", " in the ", "clock")
"""Every text that a spelling changes has one of these; the others are not searched."""
_OPENING, _CLOSING = "([{'_~", ")]}'_~,;:.!?"
_ORNAMENTS = frozenset("-#/|\\^")
_NUMBER = re.compile(r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(?:\.\d+)?)-?([a-zµ°]*)")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)-?([a-zµ°]*)")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::\d{2})?(am|pm)?|(\d{1,2})(am|pm)")
_VERSION = re.compile(r"v(?=\d)")
_LETTERED = re.compile(r"[^\W\d_].*[-_][a-z]|[a-df-z][-_][a-z]{2,}")
"""Told from its like by one letter: ceph-a, team_b, a-record; not e-mail."""
OF_A_KIND = re.compile(r"\d+|(?<=[-_])[a-z]$|^[a-z](?=[-_])")
"""What tells a thing from its like in its name: the 1 of lb-1, the a of ceph-a."""
_WORDS = re.compile(r"[^\W\d_]+")
_WHOLE = re.compile(r"[^\W\d_]+[+#]*")
_HOURS = {"midnight": 0, "noon": 12, "midday": 12}
_CONTRACTED = {"won't": "will", "can't": "can", "shan't": "shall", "cannot": "can"}
_PRONOUN_IS = frozenset(("it's", "that's", "there's", "he's", "she's", "what's"))


@lru_cache(maxsize=64)
def fold(text: str) -> str:
    """Normalise case, width, quotes, dashes and white space; remove invisible characters. "team B" becomes team-b."""
    text = join_lettered(text)
    if text.isascii() and text.isprintable():
        text = " ".join(text.lower().split())
    else:
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        text = " ".join(_CONTROL.sub(" ", _INVISIBLE.sub("", text)).split())
    if not (_SPELLED.search(text) or any(word in text for word in _SPELLED_WORDS)):
        return text
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def tokens(folded: str) -> list[Token]:
    found: list[Token] = []
    for chunk in folded.split():
        found.extend(_known_chunk(chunk) if len(chunk) <= 40 else _chunk(chunk))
    return found


def _chunk(chunk: str) -> tuple[Token, ...]:
    """Tokenise one piece between spaces: a core with punctuation around it."""
    core = chunk.rstrip(_CLOSING)
    after = chunk[len(core) :]
    inner = core.lstrip(_OPENING)
    before = core[: len(core) - len(inner)]
    found = [STOP] if "(" in before or "[" in before else []
    if inner and _ORNAMENTS.issuperset(inner):
        found.append(STOP)
    elif inner:
        found.extend(_core(inner))
    if any(mark in after for mark in ";.!?)]"):
        found.append(STOP)
    elif "," in after or ":" in after:
        found.append(COMMA)
    return tuple(found)


_known_chunk = lru_cache(maxsize=20_000)(_chunk)


def _core(core: str) -> list[Token]:
    if core in _HOURS:
        return _clock(_HOURS[core], 0, None)
    if _WHOLE.fullmatch(core):
        return [Token(A_WORD, core)]
    return _number(core) or _name(core) or _pieces(core)


def _number(core: str) -> list[Token]:
    """Read 60s, 4g, 1,000, 5-10s, 02:00, 3am; nothing for anything else that begins with a digit."""
    if match := _RANGE.fullmatch(core):
        low, high, unit = match.groups()
        found = [Token(A_NUMBER, low), Token(A_WORD, "to"), Token(A_NUMBER, high)]
        return found + [Token(A_WORD, unit)] * bool(unit) if not unit or unit in UNITS else []
    if match := _CLOCK.fullmatch(core):
        hour, minute, half, bare_hour, bare_half = match.groups()
        return _clock(int(hour or bare_hour), int(minute or 0), half or bare_half)
    if match := _NUMBER.fullmatch(core):
        digits, unit = match.group(1).replace(",", "").replace("_", ""), match.group(2)
        if len(digits) <= 15 and (not unit or unit in UNITS or "-" in core[1:]):
            return [Token(A_NUMBER, digits), *([Token(A_WORD, unit)] if unit else [])]
    return []


def _clock(hour: int, minute: int, half: str | None) -> list[Token]:
    """A time of day as minutes after midnight with the unit `clock`."""
    if hour > 24 or minute > 59:
        return []
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return [Token(A_NUMBER, str(hour * 60 + minute)), Token(A_WORD, "clock")]


def _name(core: str) -> list[Token]:
    """Paths, addresses, URLs, hosts, versions, flags, identifiers with digits."""
    if core in ("e.g", "i.e"):
        return [Token(A_WORD, core)]
    if (
        _ADDRESS.fullmatch(core)
        or "://" in core
        or core.startswith(("/", "--", "./", "../", "."))
        or core.count("/") > 1
    ):
        return [Token(A_NAME, core.rstrip("/") or core)]
    if ":" in core or "=" in core:
        return []
    if any(character.isdigit() for character in core):
        return [Token(A_NAME, _VERSION.sub("", core, count=1))]
    if "." in core or "@" in core or "\\" in core or _LETTERED.fullmatch(core.removesuffix("'s")):
        return [Token(A_NAME, core.removesuffix("'s"))]
    return []


def _pieces(core: str) -> list[Token]:
    """Split compounds: key=value, host:port, read-only, snake_case, don't."""
    for joint in ("=", ":"):
        if joint in core:
            if core.count(joint) > 8:
                return [Token(A_NAME, core)]
            between = [Token(A_WORD, "is")] if joint == "=" else []
            parts = [_core(part) + between for part in core.split(joint) if part]
            return [token for part in parts for token in part][: -len(between) or None]
    if core in _CONTRACTED or core.endswith("n't"):
        return [Token(A_WORD, _CONTRACTED.get(core, core[:-3])), Token(A_WORD, "not")]
    if core in _PRONOUN_IS:
        return [Token(A_WORD, core[:-2]), Token(A_WORD, "is")]
    core = core.removesuffix("'s").replace("'", "")
    for prefix in ("re-", "e-", "un-"):
        if core.startswith(prefix):
            core = core.replace("-", "", 1)
    found = [Token(A_WORD, word) for word in _WORDS.findall(core)]
    return found or [Token(A_NAME, core)] * bool(core)
