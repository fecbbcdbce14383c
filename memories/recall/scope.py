"""Scope isolation, in the query itself: which rows a recall may see. The one place that turns Filters into SQL.

Knows no ranking. Every route (words, vectors, neighbours, candidates for matching) reads through `within`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.core.exceptions import EmptyResultSet, FullResultSet
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
    sql, wanted = listed(ids)
    return Q(**{f"{column}__in": RawSQL(sql, [wanted])})  # noqa: S611  (a constant; the ids are the parameter)


@dataclass(frozen=True, slots=True)
class Where:
    """The condition of a set of memories as SQL on the table `memories`, for statements of one's own.

    `halves`: the same set in two that share no row, where an index finds each and none finds both at once.
    """

    sql: str
    params: tuple[Any, ...] = ()
    halves: tuple[Where, ...] = ()


EVERYTHING = Where("1 = 1")


def of(filters: Filters) -> Where:
    """What `within` asks, as SQL. The same filters come back again and again: theirs is kept."""
    try:
        return _kept(connection.vendor, filters)
    except TypeError:  # a list among the filters
        return _of(filters)


def _of(filters: Filters) -> Where:
    found = where(within(filters))
    if filters.project is None or filters.project == ANY_PROJECT:
        return found
    own = within(replace(filters, project=ANY_PROJECT)).filter(project=filters.project)
    return replace(found, halves=(where(own), where(within(replace(filters, project=None)))))


@lru_cache(maxsize=512)
def _kept(vendor: str, filters: Filters) -> Where:
    return _of(filters)


def ids(visible: Where, most: int | None = None) -> list[int]:
    """The memories within a scope, in no order; `most` of them when there are more."""
    parts = visible.halves or (visible,)
    each = " UNION ALL ".join(f"SELECT memories.id FROM memories WHERE {part.sql}" for part in parts)  # noqa: S608
    limit, values = ("", []) if most is None else (" LIMIT %s", [most])
    with connection.cursor() as cursor:
        cursor.execute(each + limit, [*(value for part in parts for value in part.params), *values])
        return [pk for (pk,) in cursor.fetchall()]


def where(rows: MemoryQuerySet) -> Where:
    """What `within` asks, as SQL: a recall makes it once and reads by it five times."""
    compiler = rows.query.get_compiler(connection=connection)
    try:
        sql, params = compiler.compile(rows.query.where)
    except FullResultSet:
        return EVERYTHING
    except EmptyResultSet:
        return Where("1 = 0")
    return Where(f"({sql})", tuple(params))


def listed(ids: Iterable[int]) -> tuple[str, Any]:
    """(what goes between the brackets of `IN (…)`, its one parameter)."""
    if connection.vendor == "postgresql":
        return "SELECT unnest(%s::bigint[])", list(ids)
    return "SELECT value FROM json_each(%s)", json.dumps(list(ids))


def _has_tag(tag: str) -> Q:
    """Memories with this tag. The two databases look into JSON in their own ways."""
    if connection.vendor == "postgresql":
        return Q(tags__contains=[tag])
    tagged = "EXISTS (SELECT 1 FROM json_each(memories.tags) WHERE json_each.value = %s)"
    return Q(RawSQL(tagged, [tag], output_field=BooleanField()))  # noqa: S611  (a constant; the tag is a parameter)
