"""Compare two texts line by line and word by word. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

WORD = re.compile(r"\w+|[^\w\s]|\s+")
MOST_WORDS = 3_000
"""Most words, spaces and signs that are compared; a longer text is shown as replaced."""

SAME, GONE, NEW = "same", "gone", "new"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text: `same` in both, `gone` from the first, or `new` in the second."""

    kind: str
    text: str


def word_diff(before: str, after: str) -> list[Piece]:
    """Return the pieces: those not gone spell `after`, those not new spell `before`."""
    if before == after:
        return [Piece(SAME, before)] if before else []
    old, new = WORD.findall(before), WORD.findall(after)
    if len(old) > MOST_WORDS or len(new) > MOST_WORDS:
        return _pieces([(GONE, before), (NEW, after)])
    pieces: list[tuple[str, str]] = []
    for what, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            pieces.append((SAME, "".join(old[a:b])))
        else:
            pieces += [(GONE, "".join(old[a:b])), (NEW, "".join(new[c:d]))]
    return _pieces(_without_islands(pieces))


def marked(pieces: list[Piece]) -> str:
    """Return the pieces as one text with marks: "Takes [-60-]{+90+} s"."""
    marks = {GONE: "[-{}-]", NEW: "{{+{}+}}"}
    return "".join(marks.get(piece.kind, "{}").format(piece.text) for piece in pieces)


def _without_islands(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join changes that only a space separates: "a b" → "c d" is one change, not two."""
    joined: list[tuple[str, str]] = []
    for place, (kind, text) in enumerate(pieces):
        lone = kind == SAME and text.isspace() and 0 < place < len(pieces) - 1
        joined += [(GONE, text), (NEW, text)] if lone else [(kind, text)]
    gone, new, merged = "", "", []
    for kind, text in joined:
        if kind == GONE:
            gone += text
        elif kind == NEW:
            new += text
        else:
            merged += [(GONE, gone), (NEW, new), (SAME, text)]
            gone = new = ""
    return [*merged, (GONE, gone), (NEW, new)]


def _pieces(pieces: list[tuple[str, str]]) -> list[Piece]:
    return [Piece(kind, text) for kind, text in pieces if text]


MOST_LINES = 4_000
"""Most lines of a text that are compared; of a longer one the rest is left out."""
AROUND = 2
"""Equal lines that are shown before and after a difference."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line that is in both texts (`same`), gone from the first, or new in the second; `fold` counts equal lines.

    A line with a `fold` has no pieces: it stands for so many equal lines that are left out.
    """

    kind: str
    pieces: tuple[Piece, ...] = ()
    fold: int = 0


def line_diff(before: str, after: str, *, around: int = AROUND) -> list[DiffLine]:
    """Return the lines that differ with `around` equal ones beside them; nothing for equal texts."""
    old, new = before.splitlines()[:MOST_LINES], after.splitlines()[:MOST_LINES]
    if old == new:
        return []
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    lines: list[DiffLine] = []
    for place, (what, a, b, c, d) in enumerate(codes):
        if what == "equal":
            lines += _equal(old[a:b], head=0 if place == 0 else around, tail=0 if place == len(codes) - 1 else around)
        else:
            lines += _changed(old[a:b], new[c:d])
    return lines


def _equal(lines: Sequence[str], *, head: int, tail: int) -> list[DiffLine]:
    rest = len(lines) - head - tail
    if rest <= 1:  # a fold is as long as the line that it would hide
        return [_line(SAME, line) for line in lines]
    end = lines[len(lines) - tail :]
    return [
        *(_line(SAME, line) for line in lines[:head]),
        DiffLine(SAME, fold=rest),
        *(_line(SAME, line) for line in end),
    ]


def _changed(old: Sequence[str], new: Sequence[str]) -> list[DiffLine]:
    """Compare lines that changed one by one; of unequal numbers each stands as it is."""
    if len(old) != len(new):
        return [*(_line(GONE, line) for line in old), *(_line(NEW, line) for line in new)]
    gone: list[DiffLine] = []
    come: list[DiffLine] = []
    for before, after in zip(old, new, strict=True):
        pieces = word_diff(before, after)
        gone.append(DiffLine(GONE, tuple(piece for piece in pieces if piece.kind != NEW)))
        come.append(DiffLine(NEW, tuple(piece for piece in pieces if piece.kind != GONE)))
    return [*gone, *come]


def _line(kind: str, text: str) -> DiffLine:
    return DiffLine(kind, (Piece(SAME, text),))
