"""The difference of two texts by their lines, and the three-way merge of two edits of one text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Generic, TypeVar

from claudeops.lib.tracked_file.document import Document, Line

MOST_COMPARED = 25_000_000
"""Pairs of lines that a difference looks at; beyond, all that differs is one change."""

D = TypeVar("D", bound=Document)
Block = tuple[int, int, int, int]
"""Lines of one text, from and up to, that another has in place of its own lines, from and up to."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Lines that two edits of one text both touched; `line` is that of `theirs` in the file, from 0."""

    base: tuple[str, ...]
    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Merged(Generic[D]):
    """Both edits in one document. At a clash it has `theirs`."""

    document: D
    clashes: tuple[Clash, ...]


def changes(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """Return the blocks in which two texts differ, in order."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    if not before and not after:
        return []
    if len(before) * len(after) > MOST_COMPARED:
        return [(head, len(old) - tail, head, len(new) - tail)]
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [(head + i1, head + i2, head + j1, head + j2) for tag, i1, i2, j1, j2 in codes if tag != "equal"]


def same_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of the lines that both texts have, in order."""
    at = to = 0
    for start, end, first, last in [*changes(old, new), (len(old), len(old), len(new), len(new))]:
        yield from zip(range(at, start), range(to, first), strict=True)
        at, to = end, last


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines that stand in an edited text where the base has those from `start` up to `end`."""

    start: int
    end: int
    lines: tuple[Line, ...]
    is_ours: bool

    def touches(self, other: _Hunk) -> bool:
        """Say whether both change one line, or one inserts in the middle of what the other replaced."""
        if self.start == self.end or other.start == other.end:
            return max(self.start, other.start) < min(self.end, other.end)
        return self.start < other.end and other.start < self.end


def merge(base: D, theirs: D, ours: D) -> Merged[D]:
    """Apply the edit from `base` to `ours` to `theirs`, which is the file as it is: its other bytes stay.

    Lines are compared without their ends. Lines that both insert at one place both stay, theirs first. What touches
    the same lines is a clash, unless both made the same of them.
    """
    hunks = [*_hunks(base, theirs, is_ours=False), *_hunks(base, ours, is_ours=True)]
    lines: list[Line] = []
    clashes: list[Clash] = []
    at = shift = 0  # the base's line, and how far theirs is from it
    for group in _groups(sorted(hunks, key=lambda one: (one.start, one.end, one.is_ours))):
        start, end = min(one.start for one in group), max(one.end for one in group)
        lines += theirs.lines[at + shift : start + shift]
        there, here = (_side(base, group, start, end, is_ours=side) for side in (False, True))
        moved = sum(len(one.lines) - (one.end - one.start) for one in group if not one.is_ours)
        if all(one.is_ours for one in group):
            lines += here
        else:
            if any(one.is_ours for one in group) and _texts(here) != _texts(there):
                clashes.append(Clash(_texts(base.lines[start:end]), _texts(there), _texts(here), len(lines)))
            lines += theirs.lines[start + shift : end + shift + moved]
        at, shift = end, shift + moved
    lines += theirs.lines[at + shift :]
    return Merged(theirs.put(0, len(theirs.lines), lines), tuple(clashes))


def _groups(hunks: Sequence[_Hunk]) -> Iterator[list[_Hunk]]:
    """Group the hunks that touch each other."""
    group: list[_Hunk] = []
    for hunk in hunks:
        if group and not any(hunk.touches(one) for one in group):
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _side(base: Document, group: Sequence[_Hunk], start: int, end: int, *, is_ours: bool) -> list[Line]:
    """Return what one side has in place of the base's lines from `start` up to `end`."""
    lines: list[Line] = []
    at = start
    for hunk in group:
        if hunk.is_ours == is_ours:
            lines += [*base.lines[at : hunk.start], *hunk.lines]
            at = hunk.end
    return [*lines, *base.lines[at:end]]


def _texts(lines: Sequence[Line]) -> tuple[str, ...]:
    return tuple(text for text, _ in lines)


def _hunks(base: Document, changed: Document, *, is_ours: bool) -> list[_Hunk]:
    blocks = changes(base.texts, changed.texts)
    return [_Hunk(start, end, changed.lines[first:last], is_ours) for start, end, first, last in blocks]
