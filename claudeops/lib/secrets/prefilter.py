"""Tell in one fast pass where a text may hold a credential, so that the rules read only those parts. Pure.

RE2 finds all triggers and long runs at 3 ms a megabyte, whatever their number; the rules need a hundred times as long.
It finds too much rather than too little: a part that it leaves out holds nothing that a rule would find.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache

import re2

from claudeops.lib.lookaround import without_lookaround
from claudeops.lib.secrets.rules import ANYWHERE, INSIDE, RULES, SHORTEST
from claudeops.lib.secrets.values import LEAST_RANDOM

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\u0300-\u036f]"
)
LOOK_ALIKES = dict(
    zip(
        "авеѕіјкмнорԛстухԝһԁɡьАВЕЅІЈКМНОРСТУХѴԜҮαορνικτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ‐‑‒–—−∕⁄∶꞉",
        "abesijkmhopqctyxwhdgbABESIJKMHOPCTYXVWYaopvikruxyABEZHIKMNOPTYX------//::",
        strict=True,
    )
)
"""Cyrillic and Greek letters that look like Latin ones, and dashes, slashes and colons of other kinds."""


OTHER = re.compile("[^\\x00-\\x7f]")


ASCII = bytes(range(128))


@lru_cache(maxsize=4096)
def _read(character: str) -> str:
    if INVISIBLE.match(character):
        return ""
    read = unicodedata.normalize("NFKC", character)
    return LOOK_ALIKES.get(read, read)


def disguised(data: bytes) -> dict[str, str]:
    """Return what the skeleton changes: each character of a text in UTF-8 that is read as another, and as what."""
    others = data.translate(None, ASCII).decode("utf-8", "replace")
    return {character: read for character in set(others) if (read := _read(character)) != character}


@lru_cache(maxsize=4096)
def is_sign(character: str) -> bool:
    """Whether a character, such as a dash, is read as plain signs: it parts words in the skeleton as in the text."""
    read = _read(character)
    return read.isascii() and read != "" and not any(map(str.isalnum, character + read))


def skeleton(text: str) -> str:
    """The plain form of a text. The same text when nothing in it is disguised."""
    return read_as(text, disguised(text.encode("utf-8", "replace")))


def read_as(text: str, changed: dict[str, str]) -> str:
    """Return the text with what is disguised in it read as `disguised` says."""
    for character, read in changed.items():
        text = text.replace(character, read)
    return text


def places(text: str) -> Callable[[int], int]:
    """Return what tells the place in the text of a place in its skeleton."""
    starts, shifts, shift = [0], [0], 0
    """From a start in the skeleton on, the text is so many characters ahead."""
    for match in OTHER.finditer(text):
        length = len(_read(match[0]))
        if length != 1:
            for more in range(1, length):  # one character is read as several
                starts.append(match.start() - shift + more)
                shifts.append(shift - more)
            starts.append(match.start() - shift + length)
            shift += 1 - length
            shifts.append(shift)
    return lambda place: place + shifts[bisect_right(starts, place) - 1]


BEFORE, AFTER = 250, 600
"""Characters beside a hit that a rule may read. The lines of a long block are hits themselves, so it stays whole."""

NEAR = 100
"""Characters beside a disguised one that may be part of a trigger or of a long value with it."""


def _options(*, case_sensitive: bool) -> re2.Options:
    options = re2.Options()
    options.case_sensitive = case_sensitive
    options.max_mem = 64 * 1024 * 1024
    return options


def _trigger(word: str) -> str:
    if word in ("begin", "end"):
        return f"-----{word}"
    return "[ _-]".join(re2.escape(part) for part in word.split(" "))


def _triggers() -> str:
    """Words stand at the beginning of a word, also after an escape; signs, some names and other scripts anywhere."""
    heads: list[str] = []
    anywhere = [re2.escape(name) for name in INSIDE]
    for word in sorted(RULES):
        at_word = word[0].isascii() and word[0].isalnum()
        (heads if at_word and word not in ("begin", "end") else anywhere).append(_trigger(word))
    return rf"{'|'.join(anywhere)}|(?:^|[^a-z0-9]|\\[nrtbf]|%[0-9a-f]{{2}})(?:{'|'.join(heads)})"


TRIGGERS = re2.compile(_triggers(), _options(case_sensitive=False))
RUNS = re2.compile(
    "|".join([f"[A-Za-z0-9+/_=-]{{{LEAST_RANDOM},}}", *(without_lookaround(shape.pattern) for shape, _ in ANYWHERE)])
)

EITHER = re2.compile(f"(?i:{_triggers()})|{RUNS.pattern}", _options(case_sensitive=True))
"""Matches wherever TRIGGERS or RUNS does. One pass rejects most texts; in the others the two give the positions."""


def parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, part) for each part of the text that a rule has to read, in order, not overlapping."""
    start, end = 0, -1
    for first, last in sorted(_hits(text)):
        if end >= 0 and first - BEFORE > end:
            yield start, text[start:end]
            end = -1
        if end < 0:
            start = max(0, first - BEFORE)
        end = max(end, last + AFTER)
    if end >= 0:
        yield start, text[start:end]


def is_clean(text: str) -> bool:
    """Whether there is no such part, nor one in the skeleton: true of most texts and known at once."""
    data = text.encode("utf-8", "replace")
    if text.isascii():
        return len(text) < SHORTEST or EITHER.search(data) is None
    changed = disguised(data)
    if changed and EITHER.search(read_as(text, changed).encode("utf-8", "replace")) is not None:
        return False
    # With signs alone changed the skeleton has every hit that the text has: no trigger and no run holds such a sign.
    return (changed != {} and all(map(is_sign, changed))) or EITHER.search(data) is None


def may_hold(text: str) -> bool:
    """Whether there is any such part, also in the skeleton."""
    return not is_clean(text) and (_has_hit(text) or is_disguised(text))


def is_disguised(text: str) -> bool:
    """Whether the skeleton has such a part beside a character that it reads otherwise; the rest is read as it is."""
    if text.isascii() or not (changed := disguised(text.encode("utf-8", "replace"))):
        return False
    beside = sorted(region for character in changed for region in _regions(text, character))
    near, (start, end) = [], beside[0]
    for first, last in beside[1:]:
        if first > end:
            near.append(text[start:end])
            start = first
        end = max(end, last)
    return _has_hit(skeleton("\n".join([*near, text[start:end]])))


def _regions(text: str, character: str) -> Iterator[tuple[int, int]]:
    """Yield regions that hold NEAR characters on both sides of each place of the character."""
    place = text.find(character)
    while place >= 0:
        yield max(0, place - NEAR), place + 2 * NEAR
        place = text.find(character, place + NEAR)


def _has_hit(text: str) -> bool:
    return next(_hits(text), None) is not None


def _hits(text: str) -> Iterator[tuple[int, int]]:
    data = text.encode("utf-8", "replace")  # once, instead of for each pattern
    hits = _bytes_hits(data)
    if text.isascii():
        yield from hits
        return
    position = place = 0
    for start, end in sorted(hits):
        place += len(data[position:start].decode())
        position = start
        yield place, place + len(data[start:end].decode())


def _bytes_hits(data: bytes) -> Iterator[tuple[int, int]]:
    for match in TRIGGERS.finditer(data):
        yield match.span()
    for match in RUNS.finditer(data):
        run = match[0]
        if run != run.lower() and run != run.upper():  # no UUID, no digest, no path in lower case
            yield match.span()
