"""Disagreements in the inbox: pairs that contradict each other, and suspected duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from claudeops.lib.domain_error import DomainError
from memories.capture.statement import Provenance
from memories.errors import Conflict, MemoryNotFound
from memories.inbox.kinds import Decided, Decision, NextPrompt, Pick, Row, next_prompt, read_id
from memories.lifecycle import disagreements
from memories.lifecycle.lock import writing
from memories.models import Answer, Disagreement, DisagreementKind, DisagreementState, Memory
from memories.models.disagreement import DisagreementQuerySet
from memories.queries import disagreements as questions
from memories.queries.disagreements import Question
from memories.taxonomy import GENERAL

DECISIONS = {
    DisagreementKind.CONTRADICTION: (
        Decision(
            Answer.SUPERSEDES, "Take the new one", "a", "answered", is_main=True, then="when the new one is taken"
        ),
        Decision(Answer.WRONG, "Keep the known one", "r", "answered"),
        Decision(Answer.BOTH, "Keep both", "b", "answered"),
    ),
    DisagreementKind.DUPLICATE: (
        Decision(Answer.MERGED, "Merge", "a", "merged", is_main=True, then="when they are merged"),
        Decision(Answer.KEPT, "Keep both", "r", "kept apart"),
    ),
}


class Pairs:
    """Open disagreements of one kind, newest first."""

    icon = "disagree"
    template = "memories/_inbox_pair.html"
    permission = "memories.change_memory"

    def __init__(self, kind: DisagreementKind, label: str) -> None:
        self.name, self.label = kind.value, label
        self.decisions = DECISIONS[kind]

    def waiting(self) -> DisagreementQuerySet:
        return questions.open_questions(self.name)

    def rows(self, limit: int) -> list[Row]:
        waiting = self.waiting().select_related("older", "newer").order_by("-id")
        return [_row(self.name, one) for one in questions.questions_of(waiting[:limit])]

    def item(self, pk: int) -> dict[str, Any] | None:
        waiting = self.waiting().select_related("older", "newer").filter(pk=pk)
        for question in questions.questions_of(waiting):
            coming = self._next_prompt(question.older.memory, question.newer.memory)
            return {"row": _row(self.name, question), "question": question, "next_prompt": coming}
        return None

    def _next_prompt(self, older: Memory | None, newer: Memory | None) -> NextPrompt | None:
        """Return what the next prompt says after the main decision."""
        if older is None or newer is None:
            return None
        if self.name == DisagreementKind.CONTRADICTION:
            return next_prompt(newer, instead_of=older)
        merged = copy(older)  # the older one remains, with the text that is proposed
        merged.observation = newer.observation
        return next_prompt(merged, instead_of=newer)

    def decide(self, decision: str, picks: Sequence[Pick], *, by: str, text: str | None = None) -> Decided:
        ids, refused = [], []
        for pick in picks:
            try:
                with writing():
                    self._answer(pick, decision, by, text if len(picks) == 1 else None)
            except DomainError as error:
                refused.append(f"Question {pick.pk}: {error}")
            else:
                ids.append(str(pick.pk))
        return Decided(len(ids), ".".join(ids), tuple(refused))

    def _answer(self, pick: Pick, decision: str, by: str, text: str | None) -> None:
        row = Disagreement.objects.filter(pk=pick.pk, state=DisagreementState.ANSWERED).first()
        if row is not None:  # also with the same answer: the person is told whose it was
            raise Conflict(f"{row.by or 'Somebody'} answered meanwhile: {row.get_answer_display()}.")
        changes = (pick.seen[0], pick.seen[-1])
        text = text if decision == Answer.MERGED else None
        provenance = Provenance.typed_by(by)
        disagreements.answer(pick.pk, decision, by=by, observation=text, seen=changes, provenance=provenance)

    def undo(self, token: str, *, by: str) -> str:
        try:
            ids = [read_id(one) for one in token.split(".")]
        except ValueError as error:
            raise MemoryNotFound(f"There is no such question: {error}") from None
        with writing():
            for pk in ids:
                disagreements.take_back(pk, by=by)
        return "The question is open again." if len(ids) == 1 else f"{len(ids)} questions are open again."


def _row(kind: str, question: Question) -> Row:
    row = question.row
    note = f"{row.service or GENERAL} · {row.category} · memory {row.newer_id} against {row.older_id}"
    return Row(kind, row.pk, (question.older.seen, question.newer.seen), row.newer_text, note)
