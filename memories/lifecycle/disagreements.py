"""Record contradictions and suspected duplicates, carry out an operator's answer, undo it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import Q

from memories.capture.statement import Provenance
from memories.errors import Conflict, InvalidMemory, MemoryNotFound
from memories.lifecycle import rules
from memories.lifecycle.lock import writing
from memories.lifecycle.merge import check_mergeable, merge
from memories.lifecycle.rules import after_edit
from memories.lifecycle.undo import restore
from memories.lifecycle.verbs import check_unchanged, confirmed, contradict, deactivated, policy, reactivated
from memories.lifecycle.write import Why, apply, locked
from memories.models import (
    Answer,
    Change,
    Disagreement,
    DisagreementKind,
    DisagreementState,
    Inactive,
    Memory,
    MemoryChange,
    to_utc,
)


def note(
    older: Memory, newer: Memory, kind: str, *, at: datetime | None = None, evidence: dict[str, Any] | None = None
) -> Disagreement | None:
    """Open a question about a pair; None if there was one, in either order. Inside `writing()` only."""
    if older.pk == newer.pk:
        return None
    pair = Q(older=older.pk, newer=newer.pk) | Q(older=newer.pk, newer=older.pk)
    if Disagreement.objects.filter(pair, kind=kind).exists():
        return None
    return Disagreement.objects.create(
        older=older,
        newer=newer,
        kind=kind,
        created_at=to_utc(at),
        evidence=evidence or {},
        older_text=older.observation,
        newer_text=newer.observation,
        service=newer.service or "",
        category=newer.category,
    )


def supersede(
    older: Memory | int,
    newer: Memory | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    evidence: dict[str, Any] | None = None,
    session_id: int | None = None,
) -> MemoryChange | None:
    """Make `older` inactive, superseded by `newer`; None when it was already. Raises InvalidMemory for a cycle."""
    pk = newer if isinstance(newer, int) else newer.pk
    why = Why(by, to_utc(at), reason or f"Superseded by memory {pk}.", {**(evidence or {}), "by": pk}, session_id)
    with writing():
        row, other = locked(older), locked(newer)
        chain = {row.pk}
        follower: Memory | None = other
        while follower is not None:
            if follower.pk in chain:
                raise InvalidMemory(f"Memory {other.pk} was itself superseded by memory {row.pk}.")
            chain.add(follower.pk)
            follower = follower.superseded_by
        new = {"active": False, "inactive_reason": Inactive.SUPERSEDED, "superseded_by_id": other.pk}
        return apply(row, Change.SUPERSEDED, new, why, caller=older)


def answer(
    disagreement: Disagreement | int,
    said: str,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    observation: str | None = None,
    seen: tuple[int, int] | None = None,
    provenance: Provenance | None = None,
    confirms: bool = True,
) -> Disagreement:
    """Carry out an answer; the same answer twice changes nothing.

    With `confirms` (a person answers) it confirms what holds; a model's word only takes back what the question took.
    `observation` is the text of the merged memory (MERGED only), which passes the gate unless `provenance` says that a
    person typed it. `seen` are the latest changes of older and newer that the person saw. Raises Conflict when either
    changed since or another answer was given, InvalidMemory for an answer or text that does not fit, MemoryNotFound
    when one of the two is gone.
    """
    pk = disagreement if isinstance(disagreement, int) else disagreement.pk
    when = to_utc(at)
    with writing():
        row = _locked(pk)
        if said not in row.allowed_answers:
            allowed = ", ".join(row.allowed_answers)
            raise InvalidMemory(f"The answer is {said!r}; allowed for a {row.get_kind_display()} are {allowed}.")
        if row.state == DisagreementState.ANSWERED:
            if row.answer == said:
                return row
            words = f"{row.by or 'Somebody'} answered meanwhile: {row.get_answer_display()}."
            raise Conflict(words, "Take that answer back first, if it is wrong.")
        if row.older_id is None or row.newer_id is None:
            raise MemoryNotFound("One of the two memories was deleted meanwhile.", "There is nothing left to answer.")
        older, newer = (locked(pk) for pk in (row.older_id, row.newer_id))
        for memory, change in zip((older, newer), seen or (), strict=False):
            check_unchanged(memory, change)
        why = Why(by, when, reason, {"disagreement": row.pk}, provenance=provenance)
        latest = MemoryChange.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        (_ANSWERS if confirms else _ANSWERS | _UNCONFIRMED)[Answer(said)](older, newer, why, observation)
        row.state, row.answer, row.by, row.at = DisagreementState.ANSWERED, said, by[:150], when
        changes = MemoryChange.objects.filter(pk__gt=latest, memory__in=(older.pk, newer.pk)).order_by("pk")
        row.changes = list(changes.values_list("pk", flat=True))
        row.save(update_fields=["state", "answer", "by", "at", "changes"])
        return row


def contradicts(
    row: Disagreement, older: Memory, newer: Memory, *, by: str, at: datetime, reason: str, lowers: bool
) -> None:
    """Make an open question about a suspected duplicate one about a contradiction; with `lowers` the older is lowered.

    "Both hold" gives back what it took. The pair is asked about once: with a contradiction noted already, this question
    is answered with "not duplicates". Inside `writing()` only.
    """
    pair = Q(older=older.pk, newer=newer.pk) | Q(older=newer.pk, newer=older.pk)
    if Disagreement.objects.filter(pair, kind=DisagreementKind.CONTRADICTION).exists():
        answer(row, Answer.KEPT, by=by, at=at, reason=reason, confirms=False)
        return
    row.kind = DisagreementKind.CONTRADICTION
    row.save(update_fields=["kind"])
    if lowers:
        evidence = {"disagreement": row.pk, "by": newer.pk}
        words = f"Contradicted by memory {newer.pk}. {reason}"
        contradict(older, by=by, at=at, reason=words, evidence=evidence)


def take_back(disagreement: Disagreement | int, *, by: str, at: datetime | None = None) -> Disagreement:
    """Revert an answer and reopen its question. Raises Conflict when a memory was changed since the answer."""
    pk = disagreement if isinstance(disagreement, int) else disagreement.pk
    when = to_utc(at)
    with writing():
        row = _locked(pk)
        if row.state == DisagreementState.OPEN:
            return row
        for change in reversed(row.changes):
            memory = MemoryChange.objects.filter(pk=change).values_list("memory", flat=True).first()
            if memory is None:
                raise MemoryNotFound("One of the two memories was deleted since.", "The answer stays.")
            restore(memory, change, by=by, at=when, reason="The answer was taken back.", only_latest=True)
        row.state, row.answer, row.by, row.at, row.changes = DisagreementState.OPEN, "", "", None, []
        row.save(update_fields=["state", "answer", "by", "at", "changes"])
        return row


def _locked(pk: int) -> Disagreement:
    row = Disagreement.objects.select_for_update(of=("self",)).filter(pk=pk).first()
    if row is None:
        raise MemoryNotFound(f"There is no question {pk}.", "The inbox shows what is open.")
    return row


def _supersedes(older: Memory, newer: Memory, why: Why, observation: str | None) -> None:
    words = why.reason or f"Memory {newer.pk} supersedes it from {why.at:%Y-%m-%d}."
    supersede(older, newer, by=why.by, at=why.at, reason=words, evidence=why.evidence)
    _back(newer, why, f"It supersedes memory {older.pk}.")


def _both(older: Memory, newer: Memory, why: Why, observation: str | None) -> None:
    _back(older, why, f"Both hold: memory {newer.pk} does not contradict it.", _before(older, newer))


def _supersedes_alone(older: Memory, newer: Memory, why: Why, observation: str | None) -> None:
    supersede(older, newer, by=why.by, at=why.at, reason=why.reason, evidence=why.evidence)


def _both_as_before(older: Memory, newer: Memory, why: Why, observation: str | None) -> None:
    """Give the older memory back what the newer one took, and nothing more: it is not confirmed."""
    change = _contradiction(older, newer)
    if change is None or "confidence" not in change.after:
        return
    more = float(change.before["confidence"]) - float(change.after["confidence"])
    new: dict[str, Any] = {"confidence": round(min(1.0, older.confidence + more), 6)}
    if older.inactive_reason == Inactive.CONTRADICTED and rules.is_active(new["confidence"], policy(older)):
        new |= {"active": True, "inactive_reason": ""}
    apply(older, Change.CONFIDENCE_SET, new, why)


def _wrong(older: Memory, newer: Memory, why: Why, observation: str | None) -> None:
    words = why.reason or f"It is wrong; memory {older.pk} holds."
    apply(newer, Change.DEACTIVATED, deactivated(newer), why._replace(reason=words))
    _back(older, why, f"It holds; memory {newer.pk} is wrong.", _before(older, newer))


def _merged(older: Memory, newer: Memory, why: Why, observation: str | None) -> None:
    target, other = (older, newer) if older.active or not newer.active else (newer, older)
    check_mergeable(target, [other])
    words = why.reason or f"Memories {older.pk} and {newer.pk} say the same."
    merge(target, [other], by=why.by, at=why.at, reason=words, observation=observation, provenance=why.provenance)


def _kept(older: Memory, newer: Memory, why: Why, observation: str | None) -> None:
    """Both memories stay as they are; only the answer is stored."""


_ANSWERS: dict[Answer, Callable[[Memory, Memory, Why, str | None], None]] = {
    Answer.SUPERSEDES: _supersedes,
    Answer.BOTH: _both,
    Answer.WRONG: _wrong,
    Answer.MERGED: _merged,
    Answer.KEPT: _kept,
}

_UNCONFIRMED = {Answer.SUPERSEDES: _supersedes_alone, Answer.BOTH: _both_as_before}
"""The answers of a model where they differ from a person's."""


def _before(older: Memory, newer: Memory) -> float | None:
    """Return the confidence of `older` before `newer` contradicted it; None when it is unknown."""
    change = _contradiction(older, newer)
    return None if change is None else float(change.before["confidence"])


def _contradiction(older: Memory, newer: Memory) -> MemoryChange | None:
    """Return the latest change by which `newer` lowered `older`; None when there is none."""
    contradicted = MemoryChange.objects.filter(memory=older, kind=Change.CONTRADICTED).order_by("-pk")
    for change in contradicted[:50]:
        if change.evidence.get("by") == newer.pk and "confidence" in change.before:
            return change
    return None


def _back(row: Memory, why: Why, words: str, confidence: float | None = None) -> None:
    """Confirm a memory: active, with at least the confidence from before the contradiction."""
    new: dict[str, Any] = {}
    if not row.active and row.inactive_reason in ("", Inactive.CONTRADICTED, Inactive.DECAYED, Inactive.LOWERED):
        new = reactivated(row, why.at)
    surest = max(row.confidence, confidence or 0.0, policy(row).inactive_below or 0.0)
    new = confirmed(row, why.at) | new | {"confidence": surest}
    new |= after_edit(row, row.observation, why.provenance, why.at)
    apply(row, Change.BACKED, new, why._replace(reason=why.reason or words), always=True)
