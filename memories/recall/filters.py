"""`Filters`, which say what a recall may return, and their SQL condition, which every search reads within."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db import connection
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from memories.capture.fields import agent_id
from memories.errors import MemoriesError
from memories.models import Memory
from memories.models.memory import ANY_AGENT, ANY_PROJECT, MemoryQuerySet
from memories.taxonomy import TAXONOMIES


class InvalidRecall(MemoriesError):
    code = "invalid_recall"


@dataclass(frozen=True, slots=True)
class Filters:
    """The limits of a recall.

    Nothing outside `project` and `agent` is returned on any route. `project`: an id gives that project's memories and
    the global ones, None the global ones alone, ANY_PROJECT all (an operator's view). `agent`: a slug gives that
    agent's own memories and those of no agent, None only those of no agent, ANY_AGENT all. `services`: any of these,
    None among them = general; no tuple = all. `tags`: all of these. `since` and `until` bound `updated_at` (aware UTC;
    until exclusive). `as_of`: what was known at that time, in its state of then. `include_hold` also returns memories
    held for review. `trusted_only` leaves out what CLAUDEOPS_TRUST keeps back until it is confirmed.
    """

    project: int | Literal["any"] | None = None
    agent: str | None = None
    services: tuple[str | None, ...] | None = None
    taxonomy: str | None = None
    categories: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    include_hold: bool = False
    trusted_only: bool = False
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None

    def checked(self) -> Filters:
        """Return itself. Raises InvalidRecall for an unknown taxonomy, a wrong project and a time without a zone."""
        if self.taxonomy is not None and self.taxonomy not in TAXONOMIES:
            raise InvalidRecall(f"taxonomy is {self.taxonomy!r}; allowed are {', '.join(TAXONOMIES)}.")
        number = isinstance(self.project, int) and not isinstance(self.project, bool)
        if not (self.project is None or self.project == ANY_PROJECT or number):
            raise InvalidRecall(f"project is {self.project!r}; allowed are an id, None (global) or {ANY_PROJECT!r}.")
        for name in ("since", "until", "as_of"):
            value = getattr(self, name)
            if value is not None and value.tzinfo is None:
                raise InvalidRecall(f"{name} needs a time zone.")
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return the filters that differ from their defaults, as JSON."""
        values = {
            each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name) != each.default
        }
        return {
            name: list(value)
            if isinstance(value, tuple)
            else value.isoformat()
            if isinstance(value, datetime)
            else value
            for name, value in values.items()
        }


@dataclass(frozen=True, slots=True)
class Where:
    """An SQL condition on the table `memories`; `halves` are two disjoint ones, each with its own index."""

    sql: str
    params: tuple[Any, ...] = ()
    halves: tuple[Where, ...] = ()


EVERYTHING = Where("1 = 1")


def within(filters: Filters) -> MemoryQuerySet:
    """Filter the rows. Inactive and held ones are included: the trust pass counts those."""
    rows = Memory.objects.all().isolated_to(filters.project, filters.agent, file_of=agent_id(filters.agent or ""))
    if filters.as_of is not None:  # what can change is compared with the row as it was (`as_of.passes`)
        return rows.filter(created_at__lte=filters.as_of)
    if filters.taxonomy is not None:
        rows = rows.filter(taxonomy=filters.taxonomy)
    if filters.services is not None:
        named = Q(service__in=[name for name in filters.services if name is not None])
        rows = rows.filter(named | Q(service=None) if None in filters.services else named)
    if filters.categories is not None:
        rows = rows.filter(category__in=filters.categories)
    for tag in filters.tags:
        rows = rows.filter(_has_tag(tag))
    if filters.since is not None:
        rows = rows.filter(updated_at__gte=filters.since)
    if filters.until is not None:
        rows = rows.filter(updated_at__lt=filters.until)
    return rows


def scope_of(filters: Filters) -> Where:
    """Return the condition of `within`. Cached, because compiling it takes as long as a query."""
    try:
        return _cached(connection.vendor, filters)
    except TypeError:  # a list among the filters
        return _compiled(filters)


def _compiled(filters: Filters) -> Where:
    condition = where(within(filters))
    if filters.project is None or filters.project == ANY_PROJECT:
        return condition
    own = within(replace(filters, project=ANY_PROJECT)).filter(project=filters.project)
    return replace(condition, halves=(where(own), where(within(replace(filters, project=None)))))


@lru_cache(maxsize=512)
def _cached(vendor: str, filters: Filters) -> Where:
    return _compiled(filters)


def where(rows: QuerySet[Any]) -> Where:
    """Return the condition of a queryset on one table."""
    compiler = rows.query.get_compiler(connection=connection)
    try:
        sql, params = compiler.compile(rows.query.where)
    except FullResultSet:
        return EVERYTHING
    except EmptyResultSet:
        return Where("1 = 0")
    return Where(f"({sql})", tuple(params))


def ids_in(scope: Where, most: int | None = None) -> list[int]:
    """Return the ids of a scope in no order, at most `most` of them."""
    parts = scope.halves or (scope,)
    each = " UNION ALL ".join(f"SELECT memories.id FROM memories WHERE {part.sql}" for part in parts)  # noqa: S608
    limit, values = ("", []) if most is None else (" LIMIT %s", [most])
    with connection.cursor() as cursor:
        cursor.execute(each + limit, [*(value for part in parts for value in part.params), *values])
        return [pk for (pk,) in cursor.fetchall()]


def listed(ids: Iterable[int]) -> tuple[str, Any]:
    """Return (a FROM item with the column `value`, its only parameter): a thousand ids as one parameter."""
    if connection.vendor == "postgresql":
        return "unnest(%s::bigint[]) AS given(value)", list(ids)
    return "json_each(%s) AS given", json.dumps(list(ids))


def _has_tag(tag: str) -> Q:
    if connection.vendor == "postgresql":
        return Q(tags__contains=[tag])
    tagged = "EXISTS (SELECT 1 FROM json_each(memories.tags) WHERE json_each.value = %s)"
    return Q(RawSQL(tagged, [tag], output_field=BooleanField()))  # noqa: S611  (a constant; the tag is a parameter)


__all__ = ["ANY_AGENT", "ANY_PROJECT", "EVERYTHING", "Filters", "InvalidRecall", "Where"]
