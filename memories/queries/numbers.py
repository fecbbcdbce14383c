"""The numbers of memories that several pages show: what each counts is said here alone.

What waits in the inbox, with the disagreements, is counted by `memories.inbox.counts`.

The app of sessions keeps the uses of memories. It imports this app, not the reverse, so it hands over its count of
them at start.

A memory ends when it becomes inactive unless it is confirmed: the memories of projects expire, operational ones fade.
Every query reads a range of the index `memories_project`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import OuterRef, Subquery
from django.db.models.expressions import RawSQL

from claudeops.lib.capped import Count, count_of
from memories.models import Memory
from memories.models.fades import FADES_AT, NEVER
from memories.queries.filters import with_status


def held() -> Count:
    """Count the memories that the gate holds for review, and that nobody has rejected."""
    return count_of(Memory.objects.awaiting_review())


def unconfirmed() -> Count:
    """Count the active memories that CLAUDEOPS_TRUST keeps out of prompts."""
    return count_of(Memory.objects.unconfirmed())


def waiting() -> Count:
    """Count the memories that wait for a person: held and unconfirmed ones, each from its own index."""
    return held() + unconfirmed()


def memories(status: str) -> Count:
    """Count the memories of a status of the list's filter."""
    return count_of(with_status(Memory.objects.all(), status))


class Uses(NamedTuple):
    """Sessions that used a memory, and those of them that completed."""

    used: int = 0
    helped: int = 0


CountUses = Callable[[Collection[int]], Mapping[int, Uses]]
"""Map the ids of memories to their uses, in one query; a memory that was never used may be missing."""

_counts: list[CountUses] = []


def count_uses_by(count: CountUses) -> None:
    """Take `count` as the one count, in place of any before it."""
    _counts[:] = [count]


def uses_of(memories: Collection[int]) -> dict[int, Uses]:
    """Map each of `memories` (ids) to its uses. One query, none for no memory."""
    by_id = _counts[0](memories) if _counts and memories else {}
    return {pk: by_id.get(pk, Uses()) for pk in memories}


LONG_AGO = -NEVER


def next_of(project: OuterRef) -> Subquery:
    """Return the id of the active memory of a project that ends next, for an annotation of projects."""
    return Subquery(_ending().filter(project=project).order_by(FADES_AT, "id").values("id")[:1])


def next_end_of(project: OuterRef) -> Subquery:
    """Return when a memory of a project ends next, in seconds since the epoch."""
    return Subquery(_ending().filter(project=project).order_by(FADES_AT, "id").values("fades")[:1])


def ends_in_parts(projects: Collection[int], since: datetime, part: timedelta, parts: int) -> dict[int, Counter[int]]:
    """Map the ids of `projects` to how many memories end in each of `parts` parts from `since` (aware) on, from 0.

    What should have ended before counts in part 0.
    """
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    if not projects:
        return counts
    start, seconds = round(since.timestamp()), round(part.total_seconds())
    spans = [(n, start + n * seconds if n else LONG_AGO, start + (n + 1) * seconds) for n in range(parts)]
    # One range of the index for each project and part. Grouped by part, SQLite computes the end of each memory anew.
    low, high = RawSQL("spans.low", ()), RawSQL("spans.high", ())
    rows = Memory.objects.annotate(fades=FADES_AT).filter(fades__gte=low, fades__lt=high)
    one, params = rows.filter(project=RawSQL("asked.id", ())).order_by().values("pk").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH spans (part, low, high) AS (VALUES {', '.join(['(%s, %s, %s)'] * parts)}) "  # noqa: S608  (no values)
            f"SELECT asked.id, spans.part, (SELECT COUNT(*) FROM ({one}) AS ending) "
            f"FROM projects AS asked CROSS JOIN spans WHERE asked.id IN ({', '.join(['%s'] * len(projects))})",
            [*chain.from_iterable(spans), *params, *projects],
        )
        for project, number, count in cursor.fetchall():
            if count:
                counts[project][number] = count
    return counts


def _ending() -> Any:
    return Memory.objects.annotate(fades=FADES_AT).filter(fades__lt=NEVER)
