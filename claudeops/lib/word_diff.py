"""Compare two texts word by word. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

WORD = re.compile(r"\w+|[^\w\s]|\s+")
MOST = 3_000
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
    if len(old) > MOST or len(new) > MOST:
        return _pieces([(GONE, before), (NEW, after)])
    found: list[tuple[str, str]] = []
    for what, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            found.append((SAME, "".join(old[a:b])))
        else:
            found += [(GONE, "".join(old[a:b])), (NEW, "".join(new[c:d]))]
    return _pieces(_without_islands(found))


def marked(pieces: list[Piece]) -> str:
    """Return the pieces as one text with marks: "Takes [-60-]{+90+} s"."""
    marks = {GONE: "[-{}-]", NEW: "{{+{}+}}"}
    return "".join(marks.get(piece.kind, "{}").format(piece.text) for piece in pieces)


def _without_islands(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join changes that only a space separates: "a b" → "c d" is one change, not two."""
    joined: list[tuple[str, str]] = []
    for place, (kind, text) in enumerate(found):
        lone = kind == SAME and text.isspace() and 0 < place < len(found) - 1
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


def _pieces(found: list[tuple[str, str]]) -> list[Piece]:
    return [Piece(kind, text) for kind, text in found if text]
