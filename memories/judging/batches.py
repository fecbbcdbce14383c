"""Ask the judge about waiting pairs, twenty to a call, and carry out its verdicts one by one.

A pair is claimed by a conditional UPDATE. The verdicts of a call are stored in one transaction; what follows from each
is carried out in another, which also marks the pair as judged. Killed in between, the next run goes on behind what is
stored.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from memories.capture.gate import judge as gate
from memories.capture.text import fold
from memories.errors import MemoriesError
from memories.judging import rules
from memories.judging.question import INSTRUCTIONS, Found, Pair, Verdicts, message, read
from memories.judging.rules import Action, Decision
from memories.lifecycle import disagreements
from memories.lifecycle.lock import writing
from memories.lifecycle.write import locked
from memories.llm import Answer, Reason, Unavailable, Used, ask
from memories.llm.roles import chosen
from memories.matching import Kind
from memories.models import Disagreement, DisagreementState, Memory, Source, Verdict
from memories.models.change import JUDGE
from memories.models.disagreement import DisagreementQuerySet
from memories.models.memory import Trust
from memories.telemetry import record

SIZES = (20, 5, 1)
"""Pairs to a call, by how often a pair was asked about in vain: one bad text must not spoil the answer about others.

After the last of them a person decides.
"""
LARGEST = SIZES[0]
CLAIM = timedelta(minutes=10)
"""A claim older than this is void; a call takes at most the time of its role."""
LOOKED_AT = 200
"""Waiting pairs that are read to fill a call."""
TASK_CALLS, TASK_SECONDS = 10, 120.0
"""What a run of the task may use: no call begins later, since the queue ends a task after 300 seconds."""


@dataclass(slots=True)
class Done(Used):
    """What a run did. `actions` counts pairs by what became of them, `unread` those without a usable verdict."""

    actions: Counter[Action] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Batch:
    """Pairs for one call. `until` (UTC) is their claim, which no other run has at the same microsecond."""

    rows: tuple[Disagreement, ...]
    until: datetime


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
    _judge_waiting(outcome, at, most_calls, None if most_seconds is None else begun + most_seconds)
    _report(outcome, source, int((time.monotonic() - begun) * 1000))
    return outcome


def _judge_waiting(outcome: Done, at: datetime | None, most_calls: int | None, until: float | None) -> None:
    for pk in (
        Disagreement.objects.unjudged()
        .filter(judged__relation__isnull=False)
        .order_by("pk")
        .values_list("pk", flat=True)
    ):
        _carry_out(pk, at or timezone.now(), outcome)
    if off := chosen("judge").off:
        outcome.why = off
        return
    while most_calls is None or outcome.calls < most_calls:
        if until is not None and time.monotonic() >= until:
            break
        batch = _claim(at or timezone.now(), outcome)
        if batch is None or not _judge(batch, at, outcome):
            break


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


def _claim(at: datetime, outcome: Done) -> Batch | None:
    """Take the oldest free pairs for one call; None when there are none. What must not be asked goes to a person."""
    free = Q(judging_until=None) | Q(judging_until__lt=at)
    waiting = (
        Disagreement.objects.unjudged()
        .filter(free, judged__relation__isnull=True)
        .select_related("older", "newer")
        .order_by("pk")
    )
    while rows := list(waiting[:LOOKED_AT]):
        candidates = [row for row in rows if not _left(row, at, outcome)]
        alike = [row for row in candidates if _group(row) == _group(candidates[0])]
        size = SIZES[_group(alike[0])[0]] if alike else 0
        until = at + CLAIM
        # Conditions on its own columns alone: PostgreSQL checks these again when another worker was first.
        claims = [row for row in alike[:size] if _still(row).filter(free).update(judging_until=until)]
        if claims:
            return Batch(tuple(claims), until)
    return None


def _group(row: Disagreement) -> tuple[int, bool]:
    """Return what the pairs of one call share."""
    outside = any(memory is not None and rules.from_outside(memory) for memory in (row.older, row.newer))
    return min(row.judge_tries, len(SIZES) - 1), outside


def _left(row: Disagreement, at: datetime, outcome: Done) -> bool:
    """Leave a pair to a person, unasked, when the gate would not let one of its texts pass."""
    for memory in (row.older, row.newer):
        if memory is None or memory.source == Source.HUMAN or memory.trust == Trust.OPERATOR:
            continue
        text = memory.observation
        if memory.verdict == Verdict.HOLD or gate(text, fold(text)).verdict == Verdict.HOLD:
            why = f"it was not asked, because the gate holds the text of memory {memory.pk}"
            outcome.actions[Action.PERSON] += _still(row).update(judged={"why": why}, judged_at=at)
            return True
    return False


def _still(row: Disagreement) -> DisagreementQuerySet:
    return Disagreement.objects.filter(pk=row.pk, state=DisagreementState.OPEN, judged_at=None)


def _judge(batch: Batch, at: datetime | None, outcome: Done) -> bool:
    """Ask about a batch and carry out the verdicts; return whether to go on with the next one."""
    pairs = [_pair(row) for row in batch.rows]
    answer = ask("judge", INSTRUCTIONS, message(pairs), Verdicts)
    if isinstance(answer, Unavailable):
        outcome.why, outcome.until = answer.why, answer.until
        if answer.reason != Reason.UNREADABLE:
            for row in batch.rows:
                _still(row).filter(judging_until=batch.until).update(judging_until=None)
            return False
        verdicts: list[Found | None] = [None] * len(pairs)
        outcome.why = ""
    else:
        verdicts = read(answer.value, len(pairs))
        outcome.count(answer)
    outcome.calls += 1
    _store(batch, pairs, verdicts, answer, at or timezone.now(), outcome)
    for row, verdict in zip(batch.rows, verdicts, strict=True):
        if verdict is not None:
            _carry_out(row.pk, at or timezone.now(), outcome)
    return True


def _pair(row: Disagreement) -> Pair:
    older, newer = row.older, row.newer
    assert older is not None and newer is not None  # noqa: S101  # open() has both
    return Pair(older.observation, newer.observation, newer.service)


def _store(
    batch: Batch,
    pairs: Sequence[Pair],
    verdicts: Sequence[Found | None],
    answer: Answer[Verdicts] | Unavailable,
    at: datetime,
    outcome: Done,
) -> None:
    """Store the verdicts of a call, in one transaction, before anything follows from them."""
    model = chosen("judge").model
    call = answer.call_id if isinstance(answer, Answer) else None
    with transaction.atomic():
        for row, pair, verdict in zip(batch.rows, pairs, verdicts, strict=True):
            mine = _still(row).filter(judging_until=batch.until)
            judgement: dict[str, Any] = {"model": model, "call": call}
            if verdict is not None:
                judgement |= {"relation": verdict.relation, "reason": verdict.reason, "texts": _hash(pair)}
                mine.update(judged=judgement)
                continue
            outcome.unread += mine.update(judging_until=None, judge_tries=F("judge_tries") + 1)
            why = f"it gave no usable answer about this pair {len(SIZES)} times"
            given_up = _still(row).filter(judge_tries__gte=len(SIZES))
            outcome.actions[Action.PERSON] += given_up.update(judged={**judgement, "why": why}, judged_at=at)


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
            _still(row).update(judged={}, judging_until=None)
            return
        decision = rules.decide(row.kind, Kind(row.judged["relation"]), older, newer)
        try:
            _do(decision.action, row, older, newer, at)
        except MemoriesError as error:
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
