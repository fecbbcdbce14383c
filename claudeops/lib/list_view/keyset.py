"""Orders of a list and its pages. A page is found by the place of the row before it, so that each costs the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import Combinable
from django.urls import reverse

from claudeops.lib.detail_page import Neighbour, Neighbours

BETWEEN = "~"
LONGEST_PLACE = 200

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Sort:
    """One order of a list. `key` is in the address; ties are ordered by id, in the same direction.

    `column` is the attribute of a row that holds the sorted value. An index should serve `expression`. `parse` reads
    the value of a place and raises ValueError. `computed`: `expression` is no column and is added to the rows.
    """

    key: str
    label: str
    expression: Combinable
    column: str
    descending: bool
    parse: Callable[[str], Any] = str
    computed: bool = False

    @property
    def name(self) -> str:
        return self.key.removeprefix("-")

    def value(self, row: Any) -> str:
        raw = getattr(row, self.column)
        return raw.isoformat() if isinstance(raw, datetime) else str(raw if raw is not None else "")


def both(
    name: str,
    label: str,
    expression: Combinable,
    column: str,
    parse: Callable[[str], Any] = str,
    *,
    computed: bool = False,
) -> dict[str, Sort]:
    """Return the orders of a column by key, down and up."""
    return {key: Sort(key, label, expression, column, key != name, parse, computed) for key in (f"-{name}", name)}


def number_to(most: float) -> Callable[[str], float]:
    """Return a parser of numbers from 0 to `most`, which raises ValueError for others."""

    def parse(text: str) -> float:
        number = float(text)
        if not 0 <= number <= most:
            raise ValueError(text)
        return number

    return parse


def whole_to(most: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from 0 to `most`, which raises ValueError for others."""

    def parse(text: str) -> int:
        if len(text) > 20 or not 0 <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return parse


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a page: after the row of this value and id."""

    value: Any
    pk: int


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows of a list in its order; `further` and `back` are the places of the next and previous pages."""

    rows: list[Row]
    further: str
    back: str


def place_of(sort: Sort, row: Model) -> str:
    return f"{sort.value(row)}{BETWEEN}{row.pk}"


def read_place(sort: Sort, text: str) -> Place:
    """Parse a place. Raises ValueError."""
    value, between, pk = text.rpartition(BETWEEN)
    if not between or not pk.isdecimal() or len(pk) > 18 or len(text) > LONGEST_PLACE or "\0" in value:
        raise ValueError(text[:LONGEST_PLACE])
    return Place(sort.parse(value), int(pk))


def ordered(rows: QuerySet[Row], sort: Sort, *, backwards: bool = False) -> QuerySet[Row]:
    down = sort.descending != backwards
    key = sort.expression.desc() if down else sort.expression.asc()  # type: ignore[attr-defined]
    queryset: Any = rows
    if sort.computed:
        queryset = rows.annotate(**{sort.column: sort.expression})
    result: QuerySet[Row] = queryset.order_by(key, "-pk" if down else "pk")
    return result


def beyond(rows: QuerySet[Row], sort: Sort, place: Place, *, backwards: bool = False) -> QuerySet[Row]:
    """Filter to the rows after `place` in the order, or before it."""
    than = "lt" if sort.descending != backwards else "gt"
    queryset: Any = rows.alias(sorted=sort.expression)
    queryset = queryset.filter(**{f"sorted__{than}e": place.value})  # the start of the index range
    result: QuerySet[Row] = queryset.filter(Q(**{f"sorted__{than}": place.value}) | Q(**{f"pk__{than}": place.pk}))
    return result


def part_of(
    rows: QuerySet[Row], sort: Sort, size: int, *, after: Place | None = None, before: Place | None = None
) -> QuerySet[Row]:
    """Return the rows of a page without reading them, and one more; those before a place come backwards."""
    if before is not None:
        return ordered(beyond(rows, sort, before, backwards=True), sort, backwards=True)[: size + 1]
    return ordered(rows if after is None else beyond(rows, sort, after), sort)[: size + 1]


def page_of(
    rows: QuerySet[Row], sort: Sort, size: int, *, after: Place | None = None, before: Place | None = None
) -> Page[Row]:
    """Return `size` of `rows`: those after a place, those just before one, or the first ones."""
    if before is not None:
        batch = list(part_of(rows, sort, size, before=before))
        if len(batch) <= size:  # this is the first page
            return page_of(rows, sort, size)
        shown = batch[:size][::-1]
        return Page(shown, place_of(sort, shown[-1]), place_of(sort, shown[0]))
    batch = list(part_of(rows, sort, size, after=after))
    if after is not None and not batch:  # the rows were deleted or changed
        return page_of(rows, sort, size)
    shown = batch[:size]
    further = place_of(sort, shown[-1]) if len(batch) > size else ""
    return Page(shown, further, place_of(sort, shown[0]) if after is not None and shown else "")


def neighbours_of(
    rows: QuerySet[Any], sort: Sort, row: Model, address: str, *, order: str, more: str = ""
) -> Neighbours:
    """Return the rows before and after `row` in an order, each by one query of its index.

    `address` is the name of the address of a row, `more` the query behind it.
    """

    def neighbour(backwards: bool) -> Neighbour | None:
        beside = beyond(rows, sort, place, backwards=backwards)
        pk = ordered(beside, sort, backwards=backwards).values_list("pk", flat=True).first()
        return None if pk is None else Neighbour(f"{pk}", reverse(address, args=[pk]) + more)

    place = Place(sort.parse(sort.value(row)), row.pk)
    return Neighbours(neighbour(True), neighbour(False), order)
