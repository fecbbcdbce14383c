"""When the memories of projects end: the next one of each project, and how many end in each part of a span.

A memory ends when it becomes inactive unless it is confirmed: the memories of projects expire, operational ones fade.
Every query reads a range of the index `memories_project`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, OuterRef, Subquery

from memories.models import Memory
from memories.models.fades import FADES_AT, NEVER


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
    start, seconds = round(since.timestamp()), round(part.total_seconds())
    rows = _ending().filter(project__in=projects, fades__lt=start + parts * seconds)
    # Whole numbers on both sides, so that both databases divide to whole numbers.
    grouped = rows.order_by().annotate(part=(F("fades") - start) / seconds).values_list("project", "part")
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for project, number, count in grouped.annotate(count=Count("pk")):
        found[project][max(0, number)] += count
    return found


def _ending() -> Any:
    return Memory.objects.annotate(fades=FADES_AT).filter(fades__lt=NEVER)
