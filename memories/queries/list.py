"""The list of memories: its columns, and orders that an index serves. Reads only; knows no request."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Case, ExpressionWrapper, F, FloatField, QuerySet, Value, When
from django.db.models.functions import Least, Length, Replace

from claudeops.lib import times
from claudeops.lib.list_view.keyset import Sort, both, number_to, whole_to
from memories.models import Exposure, Memory, MemoryChange, Verdict, highest
from memories.models.fades import FADES_AT, NEVER
from memories.models.memory import SERVICE_TEXT

FEW = 500
"""Up to this many matches are found by one scan and sorted; more are found sooner by walking the order's index."""

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
    **both("updated", "confirmed", F("updated_at"), "updated_at", times.parse),
    **both("confidence", "confidence", F("confidence"), "confidence", number_to(1)),
    **both("service", "service", SERVICE_TEXT, "service"),
    **both("fades", "fades", FADES_AT, "fades_at", whole_to(NEVER), computed=True),
    **both("told", "told", F("told_count"), "told_count", whole_to(2**31 - 1)),
    "-risk": Sort("-risk", "risk", RISK, "risk", True, number_to(1000), computed=True),
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


def listed(rows: QuerySet[Memory]) -> QuerySet[Memory]:
    """Limit `rows` to what the list shows of them."""
    return rows.select_related("project").only(*LISTED)


def few_of(rows: QuerySet[Memory]) -> list[int] | None:
    """Return the ids of all of the `rows`; None when there are more than FEW. One query."""
    few = list(rows.order_by().values_list("pk", flat=True)[: FEW + 1])
    return few if len(few) <= FEW else None


def latest_change() -> int:
    """Return the id of the latest change of any memory, or 0: one index lookup."""
    return highest(MemoryChange)[0]


def touched_since(change: int, ids: Collection[int]) -> set[int]:
    """Return which of the memories `ids` changed after this change."""
    changes = MemoryChange.objects.filter(pk__gt=change, memory__in=ids).order_by()
    return set(changes.values_list("memory", flat=True).distinct())


def latest_change_of(memory: Memory) -> int:
    changes = MemoryChange.objects.filter(memory=memory).order_by("-pk").values_list("pk", flat=True)
    return changes.first() or 0
