"""What a part of a transcript holds, before it is prepared for the observer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class TurnKind(StrEnum):
    """`user` is what a person typed or an agent's task; `summary` is that of a compaction."""

    USER = "user"
    AGENT = "agent"
    CALL = "call"
    RESULT = "result"
    SYSTEM = "system"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Turn:
    """One piece of a transcript, in order. Credentials in `text` are masked.

    `number` counts within the transcript, from 1; `start` and `end` are the bytes of its line. `at` is UTC. `name` is
    the tool's of a call or a result. `source` names what a result exposes to: empty for nothing from outside the
    session's own machines. `is_outside` says whether that is text from outside the house.
    """

    number: int
    kind: TurnKind
    text: str
    start: int = 0
    end: int = 0
    at: datetime | None = None
    name: str = ""
    source: str = ""
    is_outside: bool = False


@dataclass(frozen=True, slots=True)
class PartTurns:
    """The turns of one part, with what had been read by its end: `exposure` (a value of `Exposure`), and its sources.

    `earlier_results` are texts of tools that stand before the part, for the comparison of facts with what was read.
    `told` are the texts that were put into the session by us: injected blocks and recalled memories. `told_ids` are
    the ids of those memories. `missing` says why the part cannot be read, empty when it can.
    """

    turns: tuple[Turn, ...] = ()
    exposure: str = "outside"
    sources: tuple[str, ...] = ()
    earlier_results: tuple[tuple[str, str], ...] = ()
    told: tuple[str, ...] = ()
    told_ids: frozenset[int] = frozenset()
    missing: str = ""
