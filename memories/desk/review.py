"""Held and unconfirmed memories on the desk: approve or reject."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Max

from memories.capture.statement import Provenance
from memories.desk.kinds import Decided, Decision, Pick, Row, read_id
from memories.desk.next_prompt import next_prompt
from memories.errors import MemoryNotFound
from memories.lifecycle import undo as lifecycle
from memories.lifecycle.bulk import BULK_ACTIONS, REJECTED
from memories.lifecycle.lock import writing
from memories.models import Memory, MemoryChange
from memories.models.memory import MemoryQuerySet
from memories.queries.list import RISK
from memories.taxonomy import GENERAL

MOST_RANKED = 1_000
"""Up to this many are ranked by risk, which no index serves; of more, the newest come first."""

ACTIONS = {"approve": "approve", "reject": "deactivate"}


class Review:
    """Memories that wait: `name` is held (by the gate) or unconfirmed (by CLAUDEOPS_TRUST)."""

    icon = "held"
    template = "memories/_desk_review.html"
    decisions = (
        Decision("approve", "Approve", "a", "approved", is_main=True, then="when it is approved"),
        Decision("reject", "Reject", "r", "rejected"),
    )

    def __init__(self, name: str, label: str) -> None:
        self.name, self.label = name, label

    def waiting(self) -> MemoryQuerySet:
        rows = Memory.objects.order_by()
        return rows.awaiting_review() if self.name == "held" else rows.unconfirmed()

    def rows(self, limit: int) -> list[Row]:
        waiting = self.waiting()
        if waiting[:MOST_RANKED].count() < MOST_RANKED:
            waiting = waiting.annotate(risk=RISK).order_by("-risk", "-pk")
        else:
            waiting = waiting.order_by("-updated_at", "-pk")
        found = list(waiting[:limit])
        latest = latest_changes(memory.pk for memory in found)
        return [self._row(memory, latest.get(memory.pk, 0)) for memory in found]

    def item(self, pk: int) -> dict[str, Any] | None:
        memory = self.waiting().select_related("session", "session__agent", "project").filter(pk=pk).first()
        if memory is None:
            return None
        row = self._row(memory, latest_changes([pk]).get(pk, 0))
        return {"row": row, "memory": memory, "next_prompt": next_prompt(memory)}

    def _row(self, memory: Memory, seen: int) -> Row:
        note = f"{memory.service or GENERAL} · {memory.category}"
        return Row(self.name, memory.pk, (seen,), memory.observation, note)

    def decide(self, decision: str, picks: Sequence[Pick], *, by: str, text: str | None = None) -> Decided:
        action = BULK_ACTIONS[ACTIONS[decision]]
        with writing():
            there = set(self.waiting().filter(pk__in=[pick.pk for pick in picks]).values_list("pk", flat=True))
            latest = latest_changes(there)
            fit = [pick.pk for pick in picks if pick.pk in there and latest.get(pick.pk, 0) == pick.seen[0]]
            reason = REJECTED if decision == "reject" else ""
            rows = Memory.objects.filter(pk__in=fit)
            result = action.run(rows, by=by, reason=reason, provenance=Provenance.typed_by(by))
            refused = tuple(_meanwhile(pick.pk) for pick in picks if pick.pk not in fit)
        return Decided(result.changed, str(result.change) if result.change else "", refused)

    def undo(self, token: str, *, by: str) -> str:
        try:
            change = read_id(token)
        except ValueError as error:
            raise MemoryNotFound(f"There is no such change: {error}") from None
        return lifecycle.undo(change, by=by).message


def latest_changes(ids: Iterable[int]) -> dict[int, int]:
    """Return the id of the latest change by memory; a memory without changes is left out."""
    found = MemoryChange.objects.filter(memory__in=list(ids)).order_by()
    return dict(found.values_list("memory").annotate(latest=Max("pk")))


def _meanwhile(pk: int) -> str:
    """Say who changed a memory since it was read."""
    change = MemoryChange.objects.filter(memory=pk).order_by("-pk").first()
    if change is None:
        return f"Memory {pk} was deleted meanwhile."
    return f"Memory {pk} was {change.get_kind_display()} by {change.actor or 'somebody'} meanwhile."
