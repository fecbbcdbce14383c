"""Tell in one fast pass where a text may hold a credential, so that the rules read only those parts. Pure.

RE2 finds all triggers and long runs at 3 ms a megabyte, whatever their number; the rules need a hundred times as long.
It finds too much rather than too little: a part that it leaves out holds nothing that a rule would find.
"""

from __future__ import annotations

from collections.abc import Iterator

import re2

from claudeops.lib.lookaround import without_lookaround
from claudeops.lib.secrets.rules import ANYWHERE, INSIDE, RULES, SHORTEST
from claudeops.lib.secrets.skeleton import disguised, is_sign, read_as, skeleton
from claudeops.lib.secrets.values import LEAST_RANDOM

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
    found = _bytes_hits(data)
    if text.isascii():
        yield from found
        return
    done = place = 0
    for start, end in sorted(found):
        place += len(data[done:start].decode())
        done = start
        yield place, place + len(data[start:end].decode())


def _bytes_hits(data: bytes) -> Iterator[tuple[int, int]]:
    for match in TRIGGERS.finditer(data):
        yield match.span()
    for match in RUNS.finditer(data):
        run = match[0]
        if run != run.lower() and run != run.upper():  # no UUID, no digest, no path in lower case
            yield match.span()
