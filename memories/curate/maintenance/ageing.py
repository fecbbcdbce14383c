"""Mark knowledge that nobody used as stale, and close what is stale for long."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

from memories.models import Change, Inactive, Memory, MemoryChange, Verdict
from memories.models.memory import MemoryQuerySet
from memories.taxonomy import TAXONOMIES

STALE, CLOSED = "stale", "closed"

Columns = Callable[[Memory, datetime], dict[str, Any]]


def due(step: str, at: datetime) -> MemoryQuerySet:
    """Return what the step "stale" or "closed" changes at `at` (aware UTC), but for what a person took back."""
    active = Memory.objects.filter(active=True, persistent=False, verdict=Verdict.ALLOW)
    memories = active.none()
    for taxonomy in TAXONOMIES.values():
        after = taxonomy.stale_after if step == STALE else taxonomy.closed_after
        if after is None:
            continue
        rows = active.filter(taxonomy=taxonomy.slug, updated_at__lte=at - after)
        if step == STALE:
            rows = rows.filter(stale_at=None, recall_count=0, told_count=0)
        else:  # a night passes between the two, in which a person can take it back
            rows = rows.filter(stale_at__lt=at)
        memories = memories | rows
    return memories


def columns(step: str, row: Memory, at: datetime) -> dict[str, Any]:
    """Return the columns that the step gives a memory; {} when it is not due."""
    policy = TAXONOMIES[row.taxonomy]
    after = policy.stale_after if step == STALE else policy.closed_after
    if after is None or not row.active or row.persistent or row.verdict != Verdict.ALLOW:
        return {}
    if row.updated_at > at - after:
        return {}
    if step == STALE:
        is_due = row.stale_at is None and not row.recall_count and not row.told_count
        return {"stale_at": at} if is_due else {}
    is_due = row.stale_at is not None and row.stale_at < at
    return {"active": False, "inactive_reason": Inactive.CLOSED.value} if is_due else {}


def kind_of(step: str) -> Change:
    return Change.DECAYED if step == STALE else Change.EXPIRED


def reason(step: str, row: Memory) -> str:
    if step == STALE:
        return f"Stale: never recalled nor told, and not confirmed since {row.updated_at:%Y-%m-%d}."
    return f"Closed: stale since {row.stale_at:%Y-%m-%d}, and not confirmed since {row.updated_at:%Y-%m-%d}."


def taken_back(step: str, ids: Collection[int], at: datetime) -> set[int]:
    """Return those of `ids` for which a person undid this step so lately that it is not repeated."""
    window = min(one.stale_after for one in TAXONOMIES.values() if one.stale_after) or timedelta()
    rows = MemoryChange.objects.filter(
        memory__in=ids, at__gt=at - window, kind=Change.RESTORED, evidence__undone_step=step
    )
    return {pk for pk in rows.values_list("memory", flat=True) if pk is not None}
