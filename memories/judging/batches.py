"""Ask the judge about waiting pairs, and carry out its verdicts one by one.

The verdicts of a call are stored in one transaction; what follows from each is carried out in another, which also marks
the pair as judged. Killed in between, the next run goes on behind what is stored.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from claudeops.lib.domain_error import DomainError
from claudeops.lib.lease import Lease
from memories.capture.gate import judge as gate
from memories.capture.text import fold
from memories.judging import rules
from memories.judging.question import INSTRUCTIONS, Found, Pair, Verdicts, message, read
from memories.judging.rules import Action, Decision
from memories.lifecycle import disagreements
from memories.lifecycle.lock import writing
from memories.lifecycle.write import locked
from memories.llm import Answer, Unavailable, Used
from memories.llm.batch import LASTS, SIZES, Batch, Questions
from memories.llm.roles import chosen
from memories.matching import Kind
from memories.models import Disagreement, DisagreementState, Memory, Source, Verdict
from memories.models.change import JUDGE
from memories.models.memory import Trust
from memories.telemetry import record


@dataclass(slots=True)
class Done(Used):
    """What a run did. `actions` counts pairs by what became of them, `unread` those without a usable verdict."""

    actions: Counter[Action] = field(default_factory=Counter)


def judge_waiting(
    *,
    at: datetime | None = None,
    most_calls: int | None = None,
    most_seconds: float | None = None,
    source: str = "command",
) -> Done:
    """Ask the judge about the pairs that wait, the oldest first, and carry out what it says.

    No call begins after `most_calls` or `most_seconds` (None: without limit). `at` (UTC; now when None) is the time of
    claims and changes. Call it outside of a transaction. Without a judge that is set up, only what it said is finished.
    `source` is what runs it, for its telemetry record.
    """
    outcome, begun = Done(), time.monotonic()
    for pk in (
        Disagreement.objects.unjudged()
        .filter(judged__relation__isnull=False)
        .order_by("pk")
        .values_list("pk", flat=True)
    ):
        _carry_out(pk, at or timezone.now(), outcome)
    if off := chosen("judge").off:
        outcome.why = off
    else:
        Pairs(outcome).ask_all(at=at, most_calls=most_calls, most_seconds=most_seconds)
    _report(outcome, source, int((time.monotonic() - begun) * 1000))
    return outcome


def _report(outcome: Done, source: str, took_ms: int) -> None:
    """Record a run that asked or carried out something. One without a model that answers is in the model calls."""
    if not (outcome.calls or outcome.actions):
        return
    actions: dict[str, Any] = {str(action): number for action, number in outcome.actions.items()}
    record(
        "memory.judge.completed",
        component="judging",
        source=source,
        duration_ms=took_ms,
        **actions,
        unread=outcome.unread,
        calls=outcome.calls,
        tokens_in=outcome.tokens_in,
        tokens_out=outcome.tokens_out,
        usd=round(outcome.cost_usd, 6),
    )


class Pairs(Questions[Disagreement, Verdicts, Found]):
    """The pairs that wait for the judge."""

    role, instructions, shape = "judge", INSTRUCTIONS, Verdicts
    lease, tries = Lease(LASTS, "judging_until"), "judge_tries"
    used: Done

    def waiting(self) -> QuerySet[Disagreement]:
        rows = Disagreement.objects.unjudged().filter(judged__relation__isnull=True)
        return rows.select_related("older", "newer").order_by("pk")

    def still(self, row: Disagreement) -> QuerySet[Disagreement]:
        return Disagreement.objects.filter(pk=row.pk, state=DisagreementState.OPEN, judged_at=None)

    def group(self, row: Disagreement) -> bool:
        return any(memory is not None and rules.from_outside(memory) for memory in (row.older, row.newer))

    def leave(self, row: Disagreement, at: datetime) -> bool:
        """Leave a pair to a person when the gate would not let one of its texts pass."""
        for memory in (row.older, row.newer):
            if memory is None or memory.source == Source.HUMAN or memory.trust == Trust.OPERATOR:
                continue
            text = memory.observation
            if memory.verdict == Verdict.HOLD or gate(text, fold(text)).verdict == Verdict.HOLD:
                why = f"it was not asked, because the gate holds the text of memory {memory.pk}"
                self.used.actions[Action.PERSON] += self.still(row).update(judged={"why": why}, judged_at=at)
                return True
        return False

    def message(self, rows: Sequence[Disagreement]) -> str:
        return message([_pair(row) for row in rows])

    def read(self, answer: Verdicts, count: int) -> list[Found | None]:
        return read(answer, count)

    def carry_out(
        self,
        batch: Batch[Disagreement],
        verdicts: Sequence[Found | None],
        answer: Answer[Verdicts] | Unavailable,
        at: datetime | None,
    ) -> None:
        self._store(batch, verdicts, answer.call_id if isinstance(answer, Answer) else None, at or timezone.now())
        for row, verdict in zip(batch.rows, verdicts, strict=True):
            if verdict is not None:
                _carry_out(row.pk, at or timezone.now(), self.used)

    def _store(
        self, batch: Batch[Disagreement], verdicts: Sequence[Found | None], call: int | None, at: datetime
    ) -> None:
        """Store the verdicts of a call, in one transaction, before anything follows from them."""
        with transaction.atomic():
            for row, verdict in zip(batch.rows, verdicts, strict=True):
                judgement: dict[str, Any] = {"model": chosen("judge").model, "call": call}
                if verdict is not None:
                    judgement |= {"relation": verdict.relation, "reason": verdict.reason, "texts": _hash(_pair(row))}
                    self.mine(row, batch).update(judged=judgement)
                    continue
                self.used.unread += self.in_vain(row, batch)
                judgement["why"] = f"it gave no usable answer about this pair {len(SIZES)} times"
                given_up = self.still(row).filter(judge_tries__gte=len(SIZES))
                self.used.actions[Action.PERSON] += given_up.update(judged=judgement, judged_at=at)


def _pair(row: Disagreement) -> Pair:
    older, newer = row.older, row.newer
    assert older is not None and newer is not None  # noqa: S101  # open() has both
    return Pair(older.observation, newer.observation, newer.service)


def _hash(pair: Pair) -> str:
    """Return the SHA-256 (hexadecimal) of the texts that were judged."""
    return hashlib.sha256(f"{pair.known}\n\n{pair.new}".encode("utf-8", "surrogatepass")).hexdigest()


def _carry_out(pk: int, at: datetime, outcome: Done) -> None:
    """Do what follows from a stored verdict, and mark its pair as judged, in one transaction; nothing the second time.

    A pair whose text was changed since it was asked about waits again.
    """
    with writing():
        row = Disagreement.objects.unjudged().select_for_update(of=("self",)).filter(pk=pk).first()
        if row is None or not row.judged.get("relation"):
            return
        assert row.older_id is not None and row.newer_id is not None  # noqa: S101  # open() has both
        older, newer = locked(row.older_id), locked(row.newer_id)
        if row.judged.get("texts") != _hash(Pair(older.observation, newer.observation)):
            Disagreement.objects.filter(pk=pk).update(judged={}, judging_until=None)
            return
        decision = rules.decide(row.kind, Kind(row.judged["relation"]), older, newer)
        try:
            _do(decision.action, row, older, newer, at)
        except DomainError as error:
            decision = Decision(Action.PERSON, str(error))
        judgement = {**row.judged, "action": decision.action, "why": decision.why}
        Disagreement.objects.filter(pk=pk).update(judged=judgement, judged_at=at, judging_until=None)
    outcome.actions[decision.action] += 1


def _do(action: Action, row: Disagreement, older: Memory, newer: Memory, at: datetime) -> None:
    by, reason = f"{JUDGE}{row.judged['model']}", f"A model says: {row.judged['reason']}"
    if action == Action.CONTRADICTION:
        lowers = not rules.why_stays(newer, older)
        disagreements.contradicts(row, older, newer, by=by, at=at, reason=reason, lowers=lowers)
    elif action != Action.PERSON:
        disagreements.answer(row, action, by=by, at=at, reason=reason, confirms=False)
