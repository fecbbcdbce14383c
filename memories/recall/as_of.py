"""Reconstruct memories at an earlier time from their changes. Deleted ones are not restored."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from memories.models import Memory, MemoryChange, states_before
from memories.recall.filters import Filters

MOST_EDITED = 500


def edited_since(at: datetime) -> list[int]:
    """Return memories whose text changed after `at`, so that the index lacks their text of then. Latest first."""
    rows = MemoryChange.objects.filter(at__gt=at, memory__isnull=False, kind__in=("edited", "merged", "restored"))
    return list(dict.fromkeys(rows.order_by("-at").values_list("memory_id", flat=True)[:MOST_EDITED]))


def as_of(rows: Iterable[Memory], at: datetime) -> list[Memory]:
    """Return the rows that existed at `at`, each in its state of then. Not to be saved."""
    there = [row for row in rows if row.created_at <= at]
    later = MemoryChange.objects.filter(memory__in=[row.pk for row in there], at__gt=at).order_by("-at", "-pk")
    states = states_before(later)
    for row in there:
        for name, value in states.get(row.pk, {}).items():
            setattr(row, name, value)
    return there


def passes(row: Memory, filters: Filters) -> bool:
    """Whether a row in its earlier state passes the filters that can change (project and agent cannot)."""
    return (
        (filters.taxonomy is None or row.taxonomy == filters.taxonomy)
        and (filters.services is None or row.service in filters.services)
        and (filters.categories is None or row.category in filters.categories)
        and set(filters.tags) <= {str(tag) for tag in row.tags or ()}
        and (filters.since is None or row.updated_at >= filters.since)
        and (filters.until is None or row.updated_at < filters.until)
    )
