"""Scope isolation, in the query itself: which rows a recall may see. The one place that turns Filters into SQL.

Knows no ranking. Every route (words, vectors, neighbours, candidates for matching) reads through `within`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from django.db import connection
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

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
    if filters.as_of is not None:  # what can change is asked of the row as it was (`history.fits`)
        return rows.filter(created_at__lte=filters.as_of)
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
    for tag in filters.tags:
        rows = rows.filter(_has_tag(tag))
    if filters.since is not None:
        rows = rows.filter(updated_at__gte=filters.since)
    if filters.until is not None:
        rows = rows.filter(updated_at__lt=filters.until)
    return rows


def usable(filters: Filters) -> MemoryQuerySet:
    """Rows of `within` that can be returned: active, and allowed unless those on hold were asked for."""
    rows = within(filters).filter(active=True)
    return rows if filters.include_hold else rows.filter(verdict=Verdict.ALLOW)


def among(ids: Iterable[int], column: str = "pk") -> Q:
    """Rows whose `column` is one of these ids, as one parameter: a thousand of them cost more to bind than to find."""
    if connection.vendor == "postgresql":
        listed = RawSQL("SELECT unnest(%s::bigint[])", [list(ids)])
    else:
        listed = RawSQL("SELECT value FROM json_each(%s)", [json.dumps(list(ids))])
    return Q(**{f"{column}__in": listed})


def beside(rows: Iterable[Memory], filters: Filters) -> list[Memory]:
    """The rows before and after these in their sequences, as far as the filters let them through."""
    known = {(row.sequence, row.position) for row in rows if row.sequence and row.position is not None}
    wanted: dict[str, set[int]] = {}
    for sequence, position in known:
        for place in (position - 1, position + 1):
            if (sequence, place) not in known:
                wanted.setdefault(sequence, set()).add(place)
    if not wanted:
        return []
    places = Q(pk__in=[])
    for sequence, positions in wanted.items():
        places |= Q(sequence=sequence, position__in=positions)
    return list(within(filters).filter(places))


def _has_tag(tag: str) -> Q:
    """Memories with this tag. The two databases look into JSON in their own ways."""
    if connection.vendor == "postgresql":
        return Q(tags__contains=[tag])
    tagged = "EXISTS (SELECT 1 FROM json_each(memories.tags) WHERE json_each.value = %s)"
    return Q(RawSQL(tagged, [tag], output_field=BooleanField()))  # noqa: S611  (a constant; the tag is a parameter)
