"""The known memory that is nearest to one that waits, with the words in which the two differ."""

from __future__ import annotations

from dataclasses import dataclass

from claudeops.lib.word_diff import GONE, NEW, Piece, word_diff
from memories.models import Memory
from memories.queries.similar import similar_to


@dataclass(frozen=True, slots=True)
class Nearest:
    """A known memory; `words` say how near it is. `known` spells its text, `new` the other one, in pieces."""

    memory: Memory
    words: str
    known: tuple[Piece, ...]
    new: tuple[Piece, ...]


def nearest_to(memory: Memory) -> Nearest | None:
    """Return the nearest memory of the same project and agent; None without a similar one. Two searches."""
    found = similar_to(memory)
    return compared(found[0].memory, memory.observation, found[0].words) if found else None


def compared(known: Memory, text: str, words: str) -> Nearest:
    pieces = word_diff(known.observation, text)
    return Nearest(
        known,
        words,
        tuple(piece for piece in pieces if piece.kind != NEW),
        tuple(piece for piece in pieces if piece.kind != GONE),
    )
