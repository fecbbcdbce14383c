"""Ended sessions by outcome in the parts of a range: of all from the counts by hour, of some from their rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Count, QuerySet
from django.db.models.functions import Substr, TruncHour

from claudeops.lib import hour_counts
from claudeops.lib.charts.bars import Kind
from sessions_app.models import Session, SessionCount
from sessions_app.models.session import OPEN_STATUSES
from sessions_app.queries.filters import GROUPS, WENT_WRONG

OUTCOMES = (
    Kind("failed", "failed", "failed", "hatched"),
    Kind("escalated", "escalated", "escalated", "pointed"),
    Kind("stopped", "stopped", "stopped", "open"),
    Kind("completed", "ok", "completed"),
)
"""The outcomes of ended sessions, in their order from the base line of a chart up."""


def by_outcome(statuses: Counter[str]) -> Counter[str]:
    """Add numbers by status up to numbers by outcome: what failed, timed out or was lost is `failed`."""
    counts: Counter[str] = Counter()
    for status, number in statuses.items():
        counts["failed" if status in GROUPS[WENT_WRONG] else status] += number
    return counts


def in_parts(edges: Sequence[datetime], statuses: Collection[str] | None = None) -> list[Counter[str]]:
    """Count all sessions by outcome in each part between two `edges` (UTC, whole hours); of `statuses` alone."""
    [parts] = hour_counts.in_parts(SessionCount, edges, names=statuses)
    return [by_outcome(part) for part in parts]


def of_rows_in_parts(rows: QuerySet[Session], edges: Sequence[datetime]) -> list[Counter[str]]:
    """Count the sessions of `rows` by outcome in each part, with one query."""
    ended = rows.filter(ended_at__gte=edges[0], ended_at__lt=edges[-1]).exclude(status__in=OPEN_STATUSES).order_by()
    grouped = ended.annotate(ended_hour=_hour()).values_list("ended_hour", "status").annotate(n=Count("pk"))
    parts: list[Counter[str]] = [Counter() for _ in edges[1:]]
    for hour, status, number in _aware(grouped):
        parts[bisect_right(edges, hour) - 1][status] += number
    return [by_outcome(part) for part in parts]


def _hour() -> Any:
    """The hour (UTC) of `ended_at`. On SQLite its text: Django's own function is Python, called for each row."""
    return Substr("ended_at", 1, 13) if connection.vendor == "sqlite" else TruncHour("ended_at", tzinfo=UTC)


def _aware(rows: Iterable[tuple[Any, str, int]]) -> Iterable[tuple[datetime, str, int]]:
    for hour, status, number in rows:
        yield (datetime.fromisoformat(f"{hour}:00+00:00") if isinstance(hour, str) else hour), status, number
