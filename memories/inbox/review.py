"""Held and unconfirmed memories in the inbox: approve, with a text of one's own or as it is, or reject."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Max

from claudeops.lib.domain_error import DomainError
from memories.capture.statement import Provenance
from memories.capture.text import fold
from memories.errors import Conflict, MemoryNotFound
from memories.inbox.kinds import Decided, Decision, Pick, Row, next_prompt, read_id
from memories.lifecycle import undo as lifecycle
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS, REJECTED
from memories.lifecycle.lock import writing
from memories.lifecycle.undo import restore
from memories.models import Fact, GateDecision, Memory, MemoryChange
from memories.models.memory import MemoryQuerySet
from memories.queries.list import RISK
from memories.queries.similar import Nearest, compared
from memories.taxonomy import GENERAL

MOST_RANKED = 1_000
"""Up to this many are ranked by risk, which no index serves; of more, the newest come first."""

ACTIONS = {"approve": "approve", "reject": "deactivate"}
EDITED = "edited"
"""Begins the token of an approval with a text of one's own: edited.MEMORY.EDIT.APPROVAL, the ids of the changes."""


class Review:
    """Memories that wait: `name` is held (by the gate) or unconfirmed (by CLAUDEOPS_TRUST)."""

    icon = "held"
    template = "memories/_inbox_review.html"
    permission = "memories.change_memory"
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
        memories = list(waiting[:limit])
        latest = latest_changes(memory.pk for memory in memories)
        return [self._row(memory, latest.get(memory.pk, 0)) for memory in memories]

    def item(self, pk: int) -> dict[str, Any] | None:
        memory = self.waiting().select_related("session", "session__agent", "project").filter(pk=pk).first()
        if memory is None:
            return None
        row = self._row(memory, latest_changes([pk]).get(pk, 0))
        fact = Fact.objects.filter(memory=pk).select_related("segment__part").order_by("-id").first()
        return {
            "row": row,
            "memory": memory,
            "next_prompt": next_prompt(memory),
            "fact": fact,
            "decision": GateDecision.objects.filter(memory=pk).order_by("-id").first(),
            "nearest": _matched(memory, fact),
        }

    def _row(self, memory: Memory, seen: int) -> Row:
        note = f"{memory.service or GENERAL} · {memory.category}"
        return Row(self.name, memory.pk, (seen,), memory.observation, note)

    def decide(self, decision: str, picks: Sequence[Pick], *, by: str, text: str | None = None) -> Decided:
        if decision == "approve" and len(picks) == 1 and text is not None:
            own = fold(text)
            if not self.waiting().filter(pk=picks[0].pk, observation=own).exists():
                return self._edit(picks[0], own, by)
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

    def _edit(self, pick: Pick, text: str, by: str) -> Decided:
        """Give a memory a person's text and approve it, in one transaction."""
        try:
            with writing():
                if not self.waiting().filter(pk=pick.pk).exists():
                    raise Conflict(_meanwhile(pick.pk))
                provenance = Provenance.typed_by(by)
                verbs.edit(pick.pk, by=by, observation=text, expected_change=pick.seen[0], provenance=provenance)
                verbs.approve(pick.pk, by=by)
                changes = MemoryChange.objects.filter(memory=pick.pk, pk__gt=pick.seen[0]).order_by("pk")
                ids = list(changes.values_list("pk", flat=True))
        except Conflict:
            return Decided(0, "", (_meanwhile(pick.pk),))
        except DomainError as error:
            return Decided(0, "", (str(error),))
        return Decided(1, f"{EDITED}.{pick.pk}.{ids[0]}.{ids[-1]}")

    def undo(self, token: str, *, by: str) -> str:
        if token.startswith(f"{EDITED}."):
            return _undo_edit(token, by)
        try:
            change = read_id(token)
        except ValueError as error:
            raise MemoryNotFound(f"There is no such change: {error}") from None
        return lifecycle.undo(change, by=by).message


def _undo_edit(token: str, by: str) -> str:
    """Take back an approval with a text of one's own, unless the memory was changed since."""
    try:
        memory, first, last = (read_id(part) for part in token.split(".")[1:])
    except ValueError as error:
        raise MemoryNotFound(f"There is no such change: {error}") from None
    with writing():
        latest = latest_changes([memory]).get(memory, 0)
        if latest != last:
            return f"{_meanwhile(memory)} Nothing was taken back."
        restore(memory, first, by=by)
    return "1 memory is as it was before."


def _matched(memory: Memory, fact: Fact | None) -> Nearest | None:
    """Return the memory that its fact was compared with; the page looks for another one by itself."""
    match = fact.match if fact is not None and isinstance(fact.match, dict) else {}
    other = Memory.objects.filter(pk=match.get("memory") or 0).exclude(pk=memory.pk).first()
    return compared(other, memory.observation, str(match.get("relation", ""))) if other else None


def latest_changes(ids: Iterable[int]) -> dict[int, int]:
    """Return the id of the latest change by memory; a memory without changes is left out."""
    changes = MemoryChange.objects.filter(memory__in=list(ids)).order_by()
    return dict(changes.values_list("memory").annotate(latest=Max("pk")))


def _meanwhile(pk: int) -> str:
    """Say who changed a memory since it was read."""
    change = MemoryChange.objects.filter(memory=pk).order_by("-pk").first()
    if change is None:
        return f"Memory {pk} was deleted meanwhile."
    return f"Memory {pk} was {change.get_kind_display()} by {change.actor or 'somebody'} meanwhile."
