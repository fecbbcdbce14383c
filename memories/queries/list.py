"""The list of memories: orders that an index serves, and keyset pages. Reads only; knows no request."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Case, ExpressionWrapper, F, FloatField, QuerySet, Value, When
from django.db.models.functions import Least, Length, Replace

from claudeops.lib.list_page import keyset
from claudeops.lib.list_page.keyset import (
    Page,
    Place,
    Sort,
    beyond,
    both,
    moment,
    number_to,
    place_of,
    read_place,
    whole_to,
)
from memories.models import Exposure, Memory, MemoryChange, Verdict, highest
from memories.models.fades import FADES_AT, NEVER
from memories.models.memory import SERVICE_TEXT

__all__ = ["Page", "Place", "Sort", "beyond", "place_of", "read_place"]

SIZE = 50
FEW = 500
"""Up to this many matches are found by one scan and sorted; more are found sooner by walking the order's index."""

CAP = 10_000
"""Matches are counted up to here; above, the list shows "10,000+"."""

COLUMNS = (
    *("id", "service", "category", "observation", "confidence", "active", "inactive_reason", "verdict"),
    *("verdict_reason", "updated_at", "session_id", "source", "persistent", "taxonomy", "tier"),
    *("exposure", "provisional", "confirmed_at", "decayed_until", "expires_at", "created_at", "told_count"),
    *("project_id", "trust"),
)
LISTED = (*COLUMNS, "project__slug")
"""What the queries of the list read."""
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


SORTS = {
    sort.key: sort
    for sort in (
        *both("updated", "confirmed", F("updated_at"), "updated_at", moment),
        *both("confidence", "confidence", F("confidence"), "confidence", number_to(1)),
        *both("service", "service", SERVICE_TEXT, "service"),
        *both("fades", "fades", FADES_AT, "fades_at", whole_to(NEVER), computed=True),
        *both("told", "told", F("told_count"), "told_count", whole_to(2**31 - 1)),
        Sort("-risk", "risk", RISK, "risk", True, number_to(1000), computed=True),
    )
}
FIRST = "-updated"


def status_of(memory: Memory) -> str:
    """Return its one status in a word: rejected, held, unconfirmed, active or inactive."""
    if memory.verdict == Verdict.HOLD:
        return "held" if memory.awaits_review else "rejected"
    if not memory.active:
        return "inactive"
    return "unconfirmed" if memory.unconfirmed else "active"


def why_of(memory: Memory) -> str:
    """Say why it is held, unconfirmed or inactive; empty for what sessions are told."""
    if memory.verdict == Verdict.HOLD:
        return memory.verdict_reason
    if not memory.active:
        return str(memory.get_inactive_reason_display())
    return (memory.provisional or "not confirmed yet") if memory.unconfirmed else ""


def ordered(rows: QuerySet[Memory], sort: Sort, *, backwards: bool = False) -> QuerySet[Memory]:
    return keyset.ordered(rows.select_related("project").only(*LISTED), sort, backwards=backwards)


def page_of(
    rows: QuerySet[Memory], sort: Sort, *, size: int = SIZE, after: Place | None = None, before: Place | None = None
) -> Page[Memory]:
    """Return `size` of `rows` with the list's columns: those after a place, just before one, or the first ones."""
    return keyset.page_of(rows.select_related("project").only(*LISTED), sort, size, after=after, before=before)


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
