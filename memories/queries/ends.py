"""When the memories of projects end: the next one of each project, and how many end in each part of a span.

A memory ends when it becomes inactive unless it is confirmed: the memories of projects expire, operational ones fade.
Every query reads a range of the index `memories_project`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.db import connection
from django.db.models import OuterRef, Subquery
from django.db.models.expressions import RawSQL

from memories.models import Memory
from memories.models.fades import FADES_AT, NEVER

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
    found: dict[int, Counter[int]] = defaultdict(Counter)
    if not projects:
        return found
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
                found[project][number] = count
    return found


def _ending() -> Any:
    return Memory.objects.annotate(fades=FADES_AT).filter(fades__lt=NEVER)
