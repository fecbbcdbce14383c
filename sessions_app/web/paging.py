"""Keyset pages of a long list, newest first: every page costs the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest

SIZE = 50
CAP = 10_000
"""Most rows that are counted; beyond, a list shows "10,000+"."""

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    rows: list[Row]
    older: bool
    newer: bool
    on_top: bool


@dataclass(frozen=True, slots=True)
class Slice(Generic[Row]):
    """The rows of a page, not yet read; a row beyond SIZE tells that there are more."""

    rows: QuerySet[Row]
    newer: bool = False
    upwards: bool = False

    def read(self) -> Page[Row]:
        found = list(self.rows)
        beyond = len(found) > SIZE
        if self.upwards:
            return Page(found[:SIZE][::-1], older=True, newer=beyond, on_top=not beyond)
        return Page(found[:SIZE], older=beyond, newer=self.newer, on_top=not self.newer)

    def values(self, *columns: str) -> list[tuple[Any, ...]]:
        found = list(self.rows.values_list(*columns))[:SIZE]
        return found[::-1] if self.upwards else found


def slice_of(rows: QuerySet[Row], by: str, *, before: int | None = None, after: int | None = None) -> Slice[Row]:
    """Select SIZE rows, newest by the column `by` first: before row `before`, just after `after`, or the newest."""
    newest = Slice(rows.order_by(f"-{by}", "-id")[: SIZE + 1])
    if not (before or after):
        return newest
    mark = rows.model._default_manager.filter(pk=before or after).values_list(by, flat=True).first()
    if mark is None:
        return newest
    if before:
        older = rows.filter(**{f"{by}__lte": mark}).exclude(**{by: mark}, pk__gte=before)
        return Slice(older.order_by(f"-{by}", "-id")[: SIZE + 1], newer=True)
    newer = rows.filter(**{f"{by}__gte": mark}).exclude(**{by: mark}, pk__lte=after or 0)
    upwards = newer.order_by(by, "id")[: SIZE + 1]
    if upwards.count() <= SIZE:  # no rows are above them: this is the first page
        return newest
    return Slice(upwards, newer=True, upwards=True)


def page_of(rows: QuerySet[Row], by: str, *, before: int | None = None, after: int | None = None) -> Page[Row]:
    return slice_of(rows, by, before=before, after=after).read()


def counted(rows: QuerySet[Any], page: Page[Any]) -> dict[str, Any]:
    """Count the rows for people, up to CAP, and say whether there is exactly one."""
    count = rows.order_by()[: CAP + 1].count() if page.older or page.newer else len(page.rows)
    return {"count": f"{CAP:,}+" if count > CAP else f"{count:,}", "one": count == 1}


def query_of(request: HttpRequest) -> str:
    given = request.GET.copy()
    for name in ("before", "after", "seen"):
        given.pop(name, None)
    for name in [name for name in given if not any(given.getlist(name))]:
        del given[name]
    return given.urlencode()
