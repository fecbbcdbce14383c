"""The memories with a window of time: which are told now, and which when next. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.db.models import Q

from memories.capture.window import Opening, next_opening, parse
from memories.errors import InvalidMemory
from memories.models import Memory
from memories.models.memory import MemoryQuerySet
from memories.taxonomy import TAXONOMIES

IN_WINDOW = "in its window"
"""How the reason of a memory begins that is told because its window is open."""
OUTSIDE = "outside its window"
DAYS, MOST_DAYS = 30, 366


@dataclass(frozen=True, slots=True)
class Windowed:
    """A memory with a window at one time. `opening` is the present one or the next one; None: it opens no more."""

    memory: Memory
    opening: Opening | None
    is_open: bool
    unreadable: str = ""

    @property
    def reason(self) -> str:
        """Why it is in a prompt, or is not; times are UTC."""
        if self.unreadable:
            return f"its window “{self.memory.surface}” cannot be read"
        if self.opening is None:
            return f"{OUTSIDE} “{self.memory.surface}”, which opens no more"
        start, end = (f"{time:%Y-%m-%d %H:%M} UTC" for time in self.opening)
        if self.is_open:
            return f"{IN_WINDOW} “{self.memory.surface}” until {end}"
        return f"{OUTSIDE} “{self.memory.surface}”, which opens {start}"


def windowed(memory: Memory, at: datetime) -> Windowed:
    """Return the window of a memory that has one, at `at` (aware)."""
    try:
        opening = next_opening(parse(memory.surface), at)
    except InvalidMemory as refusal:  # written by other means than the verbs
        return Windowed(memory, None, False, str(refusal))
    return Windowed(memory, opening, opening is not None and opening[0] <= at)


def with_window() -> MemoryQuerySet:
    """Return all memories that have a window, from their own index."""
    return Memory.objects.exclude(surface="").order_by("pk")


def windows_at(rows: MemoryQuerySet, at: datetime) -> list[Windowed]:
    """Return those of `rows` that have a window and are sure enough to be told, the highest confidence first.

    Two queries, one where none has a window.
    """
    # The few ids first: with all conditions in one query a planner takes an index of the taxonomy or the confidence.
    ids = list(with_window().values_list("pk", flat=True))
    entries = [windowed(memory, at) for memory in rows.filter(pk__in=ids).order_by() if _is_sure(memory)]
    return sorted(entries, key=lambda one: (-one.memory.confidence, one.memory.pk))


def _is_sure(memory: Memory) -> bool:
    return memory.confidence >= (TAXONOMIES[memory.taxonomy].injected_from or 0.0)


def usable(project: int | Literal["any"] | None, agent: str | None) -> MemoryQuerySet:
    """Return the memories of a scope, as in `isolated_to`, that may go into prompts if they are sure enough."""
    return Memory.objects.active().allowed().trusted().isolated_to(project, agent)


def timed(project: int | Literal["any"] | None, agent: str | None, at: datetime, *, taxonomy: str = "") -> list[Memory]:
    """Return the memories that may go into prompts and whose window is open at `at` (aware).

    `project` and `agent` are a scope as in `isolated_to`. The highest confidence first.
    """
    rows = usable(project, agent).filter(Q(expires_at=None) | Q(expires_at__gt=at))
    if taxonomy:
        rows = rows.filter(taxonomy=taxonomy)
    return [one.memory for one in windows_at(rows, at) if one.is_open]


def shut(at: datetime) -> frozenset[int]:
    """Return the ids of the active memories whose window is not open at `at` (aware): no prompt has them by rank."""
    return frozenset(one.memory.pk for one in windows_at(Memory.objects.active(), at) if not one.is_open)


def upcoming(rows: MemoryQuerySet, at: datetime, *, days: int = DAYS) -> list[Windowed]:
    """Return those of `rows` that are told within `days` from `at` on, the next first; one opening of each."""
    until = at + timedelta(days=days)
    entries = (one for one in windows_at(rows, at) if one.opening is not None and one.opening[0] <= until)
    return sorted(entries, key=_next_first)


def _next_first(one: Windowed) -> tuple[Opening, int]:
    assert one.opening is not None  # noqa: S101
    return one.opening, one.memory.pk
