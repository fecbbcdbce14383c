"""The list of memories: orders that an index serves, and keyset pages. Reads only; knows no request."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, ExpressionWrapper, F, FloatField, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Least, Length, Replace

from claudeops.lib import times
from memories.models import Exposure, Memory, MemoryChange, Verdict, highest
from memories.models.fades import FADES_AT, NEVER
from memories.models.memory import SERVICE_TEXT

SIZE = 50
FEW = 500
"""Up to this many matches are found by one scan and sorted; more are found sooner by walking the order's index."""

CAP = 10_000
"""Matches are counted up to here; above, the list shows "10,000+"."""

BETWEEN = "~"
COLUMNS = (
    *("id", "service", "category", "observation", "confidence", "active", "inactive_reason", "verdict"),
    *("verdict_reason", "updated_at", "session_id", "source", "persistent", "taxonomy", "tier"),
    *("exposure", "provisional", "confirmed_at", "decayed_until", "expires_at"),
)
RISK = ExpressionWrapper(
    Case(When(exposure=Exposure.OUTSIDE, then=200.0), When(exposure=Exposure.HOUSE, then=100.0), default=0.0)
    + Case(When(verdict=Verdict.HOLD, then=50.0), default=0.0)
    + Case(
        When(provisional="", then=0.0),
        default=10.0 * (1 + Length("provisional") - Length(Replace("provisional", Value(";"), Value("")))),
    )
    + Least(F("confidence") * (1 + F("recall_count") + F("merged_count")), 9.0),
    output_field=FloatField(),
)
"""What a memory could do that waits for a person: exposure first, then the gate's finding, the number of topics, and
the confidence times how often it was found and said again. No index serves it: for the few that wait."""


@dataclass(frozen=True, slots=True)
class Sort:
    """One order of the list. `key` is in the URL; ties are ordered by id, in the same direction."""

    key: str
    label: str
    expression: Combinable
    column: str
    descending: bool

    def value(self, memory: Memory) -> str:
        found = getattr(memory, self.column)
        return found.isoformat() if isinstance(found, datetime) else str(found if found is not None else "")

    def read(self, text: str) -> Any:
        """Parse the sorted value of a place. Raises ValueError."""
        if self.column == "updated_at":
            return times.parse(text)
        if self.column == "fades_at":
            seconds = int(text)
            if not 0 <= seconds <= NEVER:
                raise ValueError(text)
            return seconds
        if self.column in ("confidence", "risk"):
            number = float(text)
            if not 0 <= number <= (1 if self.column == "confidence" else 1000):
                raise ValueError(text)
            return number
        return text


def _both(name: str, label: str, expression: Combinable, column: str) -> list[Sort]:
    return [Sort(f"-{name}", label, expression, column, True), Sort(name, label, expression, column, False)]


SORTS = {
    sort.key: sort
    for sort in (
        *_both("updated", "confirmed", F("updated_at"), "updated_at"),
        *_both("confidence", "confidence", F("confidence"), "confidence"),
        *_both("service", "service", SERVICE_TEXT, "service"),
        *_both("fades", "fades", FADES_AT, "fades_at"),
        Sort("-risk", "risk", RISK, "risk", True),
    )
}
FIRST = "-updated"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a page: after the row of this value and id."""

    value: Any
    pk: int


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of the list in its order; `further` and `back` are the places of the next and previous pages."""

    rows: list[Memory]
    further: str
    back: str


def place_of(sort: Sort, memory: Memory) -> str:
    return f"{sort.value(memory)}{BETWEEN}{memory.pk}"


def read_place(sort: Sort, text: str) -> Place:
    """Parse a place. Raises ValueError."""
    value, between, pk = text.rpartition(BETWEEN)
    if not between or not pk.isdecimal() or len(pk) > 18:
        raise ValueError(text)
    return Place(sort.read(value), int(pk))


def ordered(rows: QuerySet[Memory], sort: Sort, *, backwards: bool = False) -> QuerySet[Memory]:
    down = sort.descending != backwards
    key = sort.expression.desc() if down else sort.expression.asc()  # type: ignore[attr-defined]
    if sort.column in ("risk", "fades_at"):
        rows = rows.annotate(**{sort.column: sort.expression})
    return rows.only(*COLUMNS).order_by(key, "-pk" if down else "pk")


def beyond(rows: QuerySet[Memory], sort: Sort, place: Place, *, backwards: bool = False) -> QuerySet[Memory]:
    """Filter to the rows after `place` in the order, or before it."""
    than = "lt" if sort.descending != backwards else "gt"
    rows = rows.alias(sorted=sort.expression).filter(
        **{f"sorted__{than}e": place.value}
    )  # the start of the index range
    return rows.filter(Q(**{f"sorted__{than}": place.value}) | Q(**{f"pk__{than}": place.pk}))


def page_of(rows: QuerySet[Memory], sort: Sort, *, after: Place | None = None, before: Place | None = None) -> Page:
    """Return SIZE of `rows`: those after a place, those just before one, or the first ones."""
    if before is not None:
        found = list(ordered(beyond(rows, sort, before, backwards=True), sort, backwards=True)[: SIZE + 1])
        if len(found) <= SIZE:  # this is the first page
            return page_of(rows, sort)
        shown = found[:SIZE][::-1]
        return Page(shown, place_of(sort, shown[-1]), place_of(sort, shown[0]))
    if after is not None:
        rows_after = beyond(rows, sort, after)
        found = list(ordered(rows_after, sort)[: SIZE + 1])
        if not found:  # the rows were deleted or changed
            return page_of(rows, sort)
    else:
        found = list(ordered(rows, sort)[: SIZE + 1])
    shown = found[:SIZE]
    further = place_of(sort, shown[-1]) if len(found) > SIZE else ""
    return Page(shown, further, place_of(sort, shown[0]) if after is not None and shown else "")


@dataclass(frozen=True, slots=True)
class Matching:
    """All matches and their number, counted up to CAP + 1."""

    rows: QuerySet[Memory]
    count: int


def matching_of(rows: QuerySet[Memory], *, narrowed: bool) -> Matching:
    """Count `rows` up to CAP + 1; few `narrowed` ones are selected by id, so that the table is scanned once."""
    rows = rows.order_by()
    if narrowed:
        few = list(rows.values_list("pk", flat=True)[: FEW + 1])
        if len(few) <= FEW:
            return Matching(Memory.objects.filter(pk__in=few), len(few))
    return Matching(rows, rows[: CAP + 1].count())


def latest_change() -> int:
    """Return the id of the latest change of any memory, or 0: one index lookup."""
    return highest(MemoryChange)[0]


def touched_since(change: int, ids: Collection[int]) -> set[int]:
    """Return which of the memories `ids` changed after this change."""
    found = MemoryChange.objects.filter(pk__gt=change, memory__in=ids).order_by()
    return set(found.values_list("memory", flat=True).distinct())


def latest_change_of(memory: Memory) -> int:
    found = MemoryChange.objects.filter(memory=memory).order_by("-pk").values_list("pk", flat=True)
    return found.first() or 0
