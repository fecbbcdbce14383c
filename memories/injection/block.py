"""The block of a prompt line by line, with the memory behind each line, and what its tokens are spent on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memories.injection.budget import CHARACTERS_A_TOKEN
from memories.injection.escape import safe
from memories.injection.relevant import BY_CONFIDENCE
from memories.injection.windows import IN_WINDOW
from memories.taxonomy import GENERAL

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A line of the block, `place` counted from 1; `entry` is the included memory that it states, or None."""

    place: int
    text: str
    entry: Entry | None = None

    @property
    def for_task(self) -> bool:
        return self.entry is not None and is_for_task(self.entry)


@dataclass(frozen=True, slots=True)
class Shares:
    """Tokens of a block: of memories that match the task, of those by confidence, of headings; `free` is unused."""

    for_task: int
    by_confidence: int
    headings: int
    free: int

    @property
    def memories(self) -> int:
        return self.for_task + self.by_confidence


def is_for_task(entry: Entry) -> bool:
    """Whether an included memory was brought by the session's task."""
    return bool(entry["reason"]) and not str(entry["reason"]).startswith((BY_CONFIDENCE, IN_WINDOW))


def lines_of(text: str, included: Sequence[Entry]) -> list[BlockLine]:
    """Return the lines of a block that is not empty. Memories stand in it by service, general last (see budget)."""
    by_group = sorted(included, key=lambda entry: _group(entry) or "")
    in_order = iter(sorted(by_group, key=lambda entry: _group(entry) == GENERAL))
    lines = text.split("\n") if text else []
    return [
        BlockLine(place, line, next(in_order, None) if line.startswith("- ") else None)
        for place, line in enumerate(lines, start=1)
    ]


def _group(entry: Entry) -> str:
    return safe(entry["service"] or GENERAL)


def shares_of(lines: Sequence[BlockLine], *, tokens: int, budget: int) -> Shares:
    """Split the `tokens` of a block; each line counts with its line break. The rest of rounding goes to headings."""
    for_task = sum(len(line.text) + 1 for line in lines if line.for_task) // CHARACTERS_A_TOKEN
    others = sum(len(line.text) + 1 for line in lines if line.entry and not line.for_task) // CHARACTERS_A_TOKEN
    return Shares(for_task, others, max(0, tokens - for_task - others), max(0, budget - tokens))
