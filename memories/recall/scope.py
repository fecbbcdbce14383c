"""Scope isolation, in the query itself: which rows a recall may see. The one place that turns Filters into SQL.

Knows no ranking. Every route (words, vectors, neighbours, candidates for matching) reads through `within`.
"""

from __future__ import annotations

from django.db.models import Q

from memories.models import Memory, Verdict
from memories.models.memory import MemoryQuerySet
from memories.recall.values import ANY_AGENT, ANY_PROJECT, Filters


def isolated(filters: Filters) -> MemoryQuerySet:
    """Rows of the filter's project and agent, whatever their state."""
    rows: MemoryQuerySet = Memory.objects.all()
    if filters.project is None:
        rows = rows.filter(project=None)
    elif filters.project != ANY_PROJECT:
        rows = rows.filter(Q(project=None) | Q(project=filters.project))
    if filters.agent is None:
        rows = rows.filter(agent=None)
    elif filters.agent != ANY_AGENT:
        rows = rows.filter(Q(agent=None) | Q(agent=filters.agent))
    return rows


def within(filters: Filters) -> MemoryQuerySet:
    """Rows that the filters let through, inactive and held ones still among them: the trust pass counts those."""
    rows = isolated(filters)
    if filters.taxonomy is not None:
        rows = rows.filter(taxonomy=filters.taxonomy)
    if filters.services is not None:
        named = [name for name in filters.services if name is not None]
        wanted = Q(service__in=named)
        if None in filters.services:
            wanted |= Q(service=None)
        rows = rows.filter(wanted)
    if filters.categories is not None:
        rows = rows.filter(category__in=filters.categories)
    if filters.since is not None:
        rows = rows.filter(updated_at__gte=filters.since)
    if filters.until is not None:
        rows = rows.filter(updated_at__lt=filters.until)
    return rows


def usable(filters: Filters) -> MemoryQuerySet:
    """Rows of `within` that can be returned: active, and allowed unless those on hold were asked for."""
    rows = within(filters).filter(active=True)
    return rows if filters.include_hold else rows.filter(verdict=Verdict.ALLOW)
