"""Keep what the gate decided, and what people did with it since: to be explained, and to calibrate the gate.

Each hold and each discard leaves a row, and each fact of a transcript. A person who releases, discards, edits or takes
back what it is about labels it. Discards keep their text for DISCARDS_KEPT, and a person may allow them until then
(`store.allow_discarded`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection
from django.db.models import QuerySet

from memories.capture.gate import DEFAULTS, Judgement, Thresholds
from memories.capture.statement import Provenance, Statement
from memories.errors import InvalidMemory, MemoryNotFound
from memories.lifecycle.lock import writing
from memories.models import (
    Change,
    Fact,
    FactOutcome,
    GateDecision,
    GateThreshold,
    Label,
    Memory,
    MemoryChange,
    Verdict,
    is_person,
    to_utc,
)

if TYPE_CHECKING:
    from django.db.models import QuerySet


DISCARD = "discard"
"""The verdict beside those of `Verdict`, which memories have."""

DISCARDS_KEPT = timedelta(days=14)
BATCH = 500
LONGEST_TEXT = 10_000
"""Characters of a discarded text that are kept."""

OPINIONS = {
    Change.APPROVED: Label.RELEASED,
    Change.REINFORCED: Label.RELEASED,
    Change.DEACTIVATED: Label.DISCARDED,
    Change.DELETED: Label.DISCARDED,
    Change.EDITED: Label.EDITED,
    Change.RESTORED: Label.UNDONE,
}
"""What a person's change of a memory says about the decision on it."""


def note(
    judgement: Judgement,
    *,
    channel: str,
    statement: Statement,
    provenance: Provenance,
    memory: Memory | int | None = None,
    fact: Fact | None = None,
    at: datetime,
) -> GateDecision | None:
    """Note a decision once and return its row: the earlier one of a fact or statement that arrives again.

    None for an allowed statement that is no fact. `memory` is the memory that is held, or that the fact became part of;
    a row without one takes it.
    """
    if judgement.verdict == Verdict.ALLOW and fact is None:
        return None
    row = decision_of(
        judgement, channel=channel, statement=statement, provenance=provenance, memory=memory, fact=fact, at=at
    )
    note_all([row])
    if row.memory_id is not None:
        GateDecision.objects.filter(key=row.key, memory=None).update(memory=row.memory_id)
    return GateDecision.objects.filter(key=row.key).first()


def note_all(rows: Iterable[GateDecision]) -> None:
    """Store the rows of `decision_of` whose keys are new."""
    GateDecision.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)


def decision_of(
    judgement: Judgement,
    *,
    channel: str,
    statement: Statement,
    provenance: Provenance,
    memory: Memory | int | None = None,
    fact: Fact | None = None,
    at: datetime,
) -> GateDecision:
    """Return the row of a decision, not stored."""
    memory_id = memory.pk if isinstance(memory, Memory) else memory
    word = judgement.word
    return GateDecision(
        key=_key(channel, statement, provenance, memory_id, fact),
        at=to_utc(at),
        channel=channel[:16],
        taxonomy=statement.taxonomy,
        verdict=judgement.verdict,
        reasons=[str(code) for code in judgement.codes],
        words=judgement.reason[:500],
        said_gate=word.gate[:16] if word else "",
        said_confidence=judgement.confidence,
        model=word.model[:100] if word else "",
        text=statement.text[:LONGEST_TEXT] if judgement.verdict == DISCARD else "",
        category=statement.category,
        service=statement.service or "",
        project_id=provenance.project_id,
        agent=provenance.agent,
        session_id=provenance.session_id,
        source=provenance.source,
        actor=provenance.actor[:150],
        exposure=provenance.exposure,
        exposed_to=list(provenance.exposed_to),
        memory_id=memory_id,
        fact=fact,
    )


def _key(channel: str, statement: Statement, provenance: Provenance, memory_id: int | None, fact: Fact | None) -> str:
    """Return the natural key: a fact's id, a session's statement, or a text on a channel with the memory it became."""
    if fact is not None:
        parts = ["fact", str(fact.pk)]
    elif provenance.session_id is not None:
        parts = ["session", str(provenance.session_id), statement.key]
    else:
        scope = (channel, provenance.project_id, provenance.agent, statement.key, memory_id)
        parts = [str(part) for part in scope]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def label(target: Memory | GateDecision, label: Label, *, by: str, at: datetime) -> int:
    """Note what a person did with a memory or with what was discarded. Returns how many decisions it was about."""
    if isinstance(target, GateDecision):
        rows = GateDecision.objects.filter(pk=target.pk)
    else:
        rows = GateDecision.objects.filter(memory=target.pk)
    return _label(rows, label, by, at)


def label_changes(changes: Iterable[MemoryChange]) -> None:
    """Label the decisions on memories by the changes that a person made of them, in the transaction of the changes."""
    groups: dict[tuple[Label, str, datetime], list[int]] = {}
    for change in changes:
        opinion = OPINIONS.get(Change(change.kind))
        if opinion is None or change.memory_id is None or change.session_id is not None or not is_person(change.actor):
            continue
        if opinion == Label.EDITED and "observation" not in change.after:
            continue
        groups.setdefault((opinion, change.actor, change.at), []).append(change.memory_id)
    for (opinion, by, at), ids in groups.items():
        for start in range(0, len(ids), BATCH):
            _label(GateDecision.objects.filter(memory__in=ids[start : start + BATCH]), opinion, by, at)


def _label(rows: QuerySet[GateDecision], label: Label, by: str, at: datetime) -> int:
    if label == Label.RELEASED:  # what had to be edited first was not right as it stood
        rows = rows.exclude(label=Label.EDITED)
    return rows.update(label=label, labelled_by=by[:150], labelled_at=to_utc(at))


def find(pk: int) -> GateDecision:
    """Return a decision with its fact, locked within a transaction. Raises MemoryNotFound."""
    rows = GateDecision.objects.select_related("session", "fact").filter(pk=pk)
    row = (rows.select_for_update(of=("self",)) if connection.in_atomic_block else rows).first()
    if row is None:
        raise MemoryNotFound(f"There is no decision {pk} of the gate.", "Discards are kept for 14 days.")
    return row


def find_discard(pk: int) -> GateDecision:
    """Return a discard that nobody allowed. Raises MemoryNotFound and InvalidMemory."""
    row = find(pk)
    if row.verdict != DISCARD:
        raise InvalidMemory(f"Decision {pk} is no discard.", "Held memories are approved: manage.py memory held allow.")
    if row.label in (Label.RELEASED, Label.EDITED):
        raise InvalidMemory(f"Decision {pk} was allowed already, as memory {row.memory_id}.")
    return row


def confirm_discard(decision: GateDecision | int, *, by: str, at: datetime | None = None) -> None:
    """Say as a person that the gate was right to discard a text. Raises as `find_discard` does."""
    row = find_discard(decision if isinstance(decision, int) else decision.pk)
    label(row, Label.DISCARDED, by=by, at=to_utc(at))


def discarded() -> QuerySet[GateDecision]:
    """Return what the gate discarded, still with its text, and nobody allowed or confirmed since, the newest first."""
    return GateDecision.objects.filter(verdict=DISCARD, label__in=("", Label.UNDONE)).exclude(text="")


def prune(at: datetime | None = None) -> int:
    """Delete discards of more than DISCARDS_KEPT ago, with their facts, in batches. Returns how many decisions.

    What a person has labelled keeps its row, without the text: the label calibrates the gate.
    """
    before = to_utc(at) - DISCARDS_KEPT
    old = GateDecision.objects.filter(verdict=DISCARD, at__lt=before).order_by()
    old.exclude(label="").exclude(text="", fact=None).update(text="", fact=None)
    deleted = 0
    while ids := list(old.filter(label="").values_list("pk", flat=True)[:BATCH]):
        deleted += GateDecision.objects.filter(pk__in=ids).delete()[1].get("memories.GateDecision", 0)
    # By their decisions: a fact's own time is when it was said, which may be long before it was discarded.
    facts = Fact.objects.filter(outcome=FactOutcome.DISCARDED, stored_at__lt=before, decision=None).order_by()
    while ids := list(facts.values_list("pk", flat=True)[:BATCH]):
        Fact.objects.filter(pk__in=ids).delete()
    return deleted


THRESHOLD_NAMES = tuple(asdict(DEFAULTS))


def current_thresholds() -> Thresholds:
    """Read the thresholds in force. One query: the gate's callers read them once for a transcript's part."""
    values = asdict(DEFAULTS)
    for row in threshold_history().filter(name__in=THRESHOLD_NAMES).order_by("at", "pk"):
        values[row.name] = row.value
    return Thresholds(**values)


def threshold_history() -> QuerySet[GateThreshold]:
    """Return every change, the latest first."""
    return GateThreshold.objects.all()


def set_threshold(name: str, value: float, *, by: str, reason: str, at: datetime | None = None) -> GateThreshold | None:
    """Set a threshold from now on, with a row in the history; None when it has this value already.

    Raises InvalidMemory for an unknown name, a value outside 0..1, no reason, and for a `reference` above `allow`.
    """
    if name not in THRESHOLD_NAMES:
        raise InvalidMemory(f"There is no threshold {name!r}; there are {' and '.join(THRESHOLD_NAMES)}.")
    if not 0.0 <= value <= 1.0:
        raise InvalidMemory(f"{name} is {value}; allowed is a number from 0 to 1.")
    if not reason.strip():
        raise InvalidMemory("A reason is missing.", "Say why: it stands in the history of the thresholds.")
    with writing():
        before = current_thresholds()
        after = replace(before, **{name: value})
        if after == before:
            return None
        if after.reference > after.allow:
            raise InvalidMemory(
                f"reference would be {after.reference:g}, above allow, which is {after.allow:g}.",
                "An exact reference cannot ask for more confidence than a text without one.",
            )
        return GateThreshold.objects.create(
            name=name, value=value, before=getattr(before, name), by=by[:150], reason=reason.strip(), at=to_utc(at)
        )
