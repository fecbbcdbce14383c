"""Cost, outcomes and used memories of projects. Each query reads ranges of an index."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Sum

from sessions_app.credit.facts import counts_of
from sessions_app.models import Session, Status, Trigger, UsedMemory
from sessions_app.queries.helped import ENDED

MOST = 2_000
"""Ended sessions of a project that are compared, the latest ones."""


def cost_since(projects: Collection[int], since: datetime) -> dict[int, Decimal]:
    """Map the ids of `projects` to the US dollars of their sessions that ended since then, without imported logs."""
    rows = Session.objects.filter(project__in=projects, ended_at__gte=since).exclude(trigger=Trigger.IMPORT).order_by()
    return {pk: cost or Decimal(0) for pk, cost in rows.values_list("project").annotate(cost=Sum("cost_usd"))}


@dataclass(frozen=True, slots=True)
class Ended:
    """Ended sessions and how many of them completed."""

    sessions: int
    completed: int

    @property
    def percent(self) -> int | None:
        return round(100 * self.completed / self.sessions) if self.sessions else None


@dataclass(frozen=True, slots=True)
class Best:
    """The memory that helped most often, and in how many of the sessions that used it."""

    memory_id: int
    helped: int
    used: int


@dataclass(frozen=True, slots=True)
class Used:
    """The uses of a project's memories: by outcome (helped, failed, unknown) in each part; how the sessions ended that
    used one, and those that used none; and the best memory, None where none helped.
    """

    parts: Sequence[Counter[str]]
    told: Ended
    others: Ended
    best: Best | None

    @property
    def uses(self) -> int:
        return sum(part.total() for part in self.parts)


def used_in_parts(project: int, edges: Sequence[datetime]) -> Used:
    """Read what the sessions of a project used that ended between the first and the last of `edges` (aware).

    Two queries. Of more than MOST sessions the latest ones are read; imported logs are told nothing and left out.
    """
    rows = Session.objects.filter(project=project, ended_at__gte=edges[0], ended_at__lt=edges[-1], status__in=ENDED)
    rows = rows.exclude(trigger=Trigger.IMPORT).order_by("-ended_at")
    latest_rows = rows.values_list("pk", "ended_at", "status")[:MOST]
    latest = {pk: (at, status) for pk, at, status in latest_rows if at is not None}
    parts: list[Counter[str]] = [Counter() for _ in edges[1:]]
    of_memory: dict[int, Counter[bool]] = defaultdict(Counter)
    with_memory: set[int] = set()
    uses = UsedMemory.objects.filter(session__in=list(latest)).values_list("memory_id", "session", "helped")
    for memory, session, helped in uses.order_by():
        outcome = "unknown" if helped is None else "helped" if helped else "failed"
        parts[bisect_right(edges, latest[session][0]) - 1][outcome] += 1
        of_memory[memory][helped is True] += 1
        with_memory.add(session)
    return Used(
        parts,
        _ended(status for pk, (_, status) in latest.items() if pk in with_memory),
        _ended(status for pk, (_, status) in latest.items() if pk not in with_memory),
        _best(of_memory),
    )


def _ended(statuses: Iterable[str]) -> Ended:
    counts = Counter(statuses)
    return Ended(counts.total(), counts[Status.COMPLETED])


def _best(counts: dict[int, Counter[bool]]) -> Best | None:
    """Return the memory that helped most; of equal ones that which was used least in vain, then the oldest."""
    helped = [(-count[True], count[False], pk) for pk, count in counts.items() if count[True]]
    if not helped:
        return None
    most, in_vain, pk = min(helped)
    return Best(pk, -most, -most + in_vain)


@dataclass(frozen=True, slots=True)
class Uses:
    """How often a memory was used and helped in all, and its uses in each part."""

    used: int
    helped: int
    parts: tuple[int, ...]


def uses_of(memories: Collection[int], edges: Sequence[datetime]) -> dict[int, Uses]:
    """Map the ids of `memories` to their uses, by the parts in which they were credited. Two queries.

    A memory that was never used is not among them.
    """
    rows = UsedMemory.objects.filter(memory_id__in=memories).order_by()
    parts: dict[int, list[int]] = defaultdict(lambda: [0] * (len(edges) - 1))
    recent = rows.filter(credited_at__gte=edges[0], credited_at__lt=edges[-1])
    for memory, at in recent.values_list("memory_id", "credited_at"):
        if at is not None:
            parts[memory][bisect_right(edges, at) - 1] += 1
    return {pk: Uses(used, helped, tuple(parts[pk])) for pk, (used, helped) in counts_of(memories).items()}
