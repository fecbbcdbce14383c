"""What the gate discarded in the last 14 days: allow it after all, or say that the gate was right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from claudeops.lib.domain_error import DomainError
from memories.capture.text import fold
from memories.errors import Conflict, MemoryNotFound
from memories.inbox.kinds import Decided, Decision, Pick, Row, read_id
from memories.lifecycle import gate_decisions
from memories.lifecycle.lock import writing
from memories.models import GateDecision, Label, Memory
from memories.queries.similar import Nearest, compared
from memories.store import allow_discarded, discard_again
from memories.taxonomy import GENERAL

ALLOW, KEEP = "allow", "keep"


class Discards:
    """Discards that nobody decided about. They wait for nobody: the inbox's count leaves them out."""

    name, label = "discarded", "Discarded"
    icon = "inactive"
    template = "memories/_inbox_discarded.html"
    permission = "memories.change_memory"
    decisions = (
        Decision(ALLOW, "Allow", "a", "allowed", is_main=True),
        Decision(KEEP, "Keep discarded", "r", "kept discarded"),
    )

    def waiting(self) -> QuerySet[GateDecision]:
        return gate_decisions.discarded().exclude(text="")

    def rows(self, limit: int) -> list[Row]:
        return [_row(one) for one in self.waiting().select_related("project").order_by("-at", "-id")[:limit]]

    def item(self, pk: int) -> dict[str, Any] | None:
        rows = self.waiting().select_related("session__agent", "project", "fact__segment__part")
        decision = rows.filter(pk=pk).first()
        if decision is None:
            return None
        fact = decision.fact
        return {"row": _row(decision), "decision": decision, "fact": fact, "nearest": _nearest(decision)}

    def decide(self, decision: str, picks: Sequence[Pick], *, by: str, text: str | None = None) -> Decided:
        ids, refused = [], []
        for pick in picks:
            try:
                with writing():
                    self._decide(decision, pick.pk, by, text if len(picks) == 1 else None)
            except DomainError as error:
                refused.append(str(error))
            else:
                ids.append(str(pick.pk))
        return Decided(len(ids), f"{decision}.{'.'.join(ids)}" if ids else "", tuple(refused))

    def _decide(self, decision: str, pk: int, by: str, text: str | None) -> None:
        row = self.waiting().filter(pk=pk).first()
        if row is None:
            raise Conflict(f"Somebody decided about discard {pk} meanwhile.")
        if decision == ALLOW:
            allow_discarded(row, by=by, text=_corrected(row.text, text))
        else:
            gate_decisions.confirm_discard(row, by=by)

    def undo(self, token: str, *, by: str) -> str:
        decision, *ids = token.split(".")
        if decision not in (ALLOW, KEEP) or not ids:
            raise MemoryNotFound("There is no such decision.")
        try:
            pks = [read_id(one) for one in ids]
        except ValueError as error:
            raise MemoryNotFound(f"There is no such decision: {error}") from None
        with writing():
            if decision == ALLOW:
                for pk in pks:
                    discard_again(pk, by=by)
            else:
                rows = GateDecision.objects.filter(pk__in=pks, label=Label.DISCARDED, labelled_by=by)
                rows.update(label="", labelled_by="", labelled_at=None)
        return "It is discarded as before." if len(pks) == 1 else f"{len(pks)} are discarded as before."


def _corrected(was: str, text: str | None) -> str | None:
    """Return the text when a person changed it, else None."""
    typed = fold(text or "")
    return typed if typed and typed != fold(was) else None


def _nearest(decision: GateDecision) -> Nearest | None:
    """Return the memory that the pipeline compared a discarded fact with."""
    match = decision.fact.match if decision.fact is not None and isinstance(decision.fact.match, dict) else {}
    memory = Memory.objects.filter(pk=match["memory"]).first() if match.get("memory") else None
    return compared(memory, decision.text, str(match.get("relation", ""))) if memory else None


def _row(decision: GateDecision) -> Row:
    where = decision.service or (decision.project.slug if decision.project else GENERAL)
    return Row(Discards.name, decision.pk, (0,), decision.text, f"{where} · {decision.words}")
