"""Cut what is new of a transcript into parts of bounded size. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memories.observe.turns import Turn, TurnKind
from sessions_app.transcripts.lines import is_word

MOST = 60_000
"""Characters of a part that a model would see, about. One line may have more."""
RESULT = 500
"""Characters of a tool's result that count: little of it is shown to a model."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One line: the byte at which it ends, the characters that a model would see, and whether somebody speaks.

    `record` is its record by `copied.digest_of`.
    """

    end: int
    size: int
    speaks: bool
    record: int | None = None


def piece_of(end: int, turns: Iterable[Turn], record: int | None = None) -> Piece:
    turns = list(turns)
    return Piece(end, sum(map(_shown, turns)), any(map(is_word, turns)), record)


def cut(pieces: Iterable[Piece], start: int, *, most: int = MOST) -> list[tuple[int, int]]:
    """Return the (start, end) of the parts behind byte `start`: without gaps, each with somebody who speaks.

    What has no words behind the last part stays for a later one.
    """
    parts: list[tuple[int, int]] = []
    begin, end, size, speaks = start, start, 0, False
    for piece in pieces:
        if piece.end <= start:
            continue
        if speaks and size + piece.size > most:
            parts.append((begin, end))
            begin, size, speaks = end, 0, False
        end, size, speaks = piece.end, size + piece.size, speaks or piece.speaks
    return [*parts, (begin, end)] if speaks else parts


def _shown(turn: Turn) -> int:
    if turn.kind is TurnKind.SYSTEM:
        return 0
    return min(len(turn.text), RESULT) if turn.kind is TurnKind.RESULT else len(turn.text)
