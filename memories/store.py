"""Where a memory comes into being: `remember()` is the only code that creates one.

Takes text and a small Provenance; knows nothing of how a session runs, of a request or a queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from memories.candidates import Prepared, meanwhile, nearest_unsure
from memories.candidates import prepare as compare
from memories.capture.candidate import Candidate, Provenance, Remembered, candidate_key
from memories.capture.gate import judge
from memories.embedding import vectors
from memories.errors import InvalidMemory
from memories.incoming import Ready, checked, said_already, twin
from memories.lifecycle import disagree, rules, verbs
from memories.lifecycle.lock import write_lock, writing
from memories.lifecycle.record import Why, added, change_of, moment, whole_row
from memories.matching import Kind, Relation
from memories.models import Change, DisagreementKind, Inactive, Memory, MemoryChange, Source, Verdict
from memories.models.memory import MemoryQuerySet
from memories.recall import keyword_index

__all__ = [
    "Candidate",
    "Prepared",
    "Provenance",
    "Remembered",
    "candidate_key",
    "insert",
    "insert_all",
    "prepare",
    "remember",
    "write_lock",
]

STRUCTURAL = "structural"
"""The setting under which a scope has one active memory: a new one takes its place."""


def prepare(candidate: Candidate, provenance: Provenance) -> Prepared:
    """Compare a candidate with what is known, with its embedding, before the transaction that stores it begins.

    For a caller that has a transaction of its own to open around `remember()`; else that does it itself. Writes
    nothing. What is not compared (a person's text, what the gate keeps back, what this session said already) costs
    nothing. Raises InvalidMemory as `remember()` does.
    """
    ready = checked(candidate, provenance)
    if provenance.source == Source.HUMAN or judge(candidate).verdict != "allow" or said_already(ready, provenance):
        return Prepared()
    return _compared(ready)


def remember(
    candidate: Candidate, provenance: Provenance, *, at: datetime | None = None, prepared: Prepared | None = None
) -> Remembered:
    """Take a candidate in: through the gate, against what is known of its scope, into the store.

    One transaction; within a session the same candidate counts once, so a replayed log changes nothing.
    What restates a known memory reinforces it and makes no row; what contradicts known ones lowers them and
    is stored; all else is stored beside them. What a person typed skips gate and matching, and is stored as
    given. `at` is when it was said (aware UTC; else the provenance's, else now). `prepared` is what `prepare()`
    found; without it that is done here, before the transaction begins. Raises InvalidMemory for a field that
    cannot be stored, and for a person's text that is active in the scope already.
    """
    ready = checked(candidate, provenance)
    when = moment(at or provenance.at)
    if provenance.source == Source.HUMAN:
        return _remember_human(ready, provenance, when)
    judgement = judge(candidate)
    if judgement.verdict == "discard":
        return Remembered("discarded", reason=judgement.reason)
    if prepared is None and judgement.verdict == "allow" and not said_already(ready, provenance):
        prepared = _compared(ready)
    with writing():
        if said := said_already(ready, provenance):
            return Remembered("duplicate", said[0], reason="this session said so already")
        if judgement.verdict != "allow":
            return _hold(ready, provenance, when, judgement.reason)
        return _match(ready, provenance, when, prepared or Prepared())


def insert(memory: Memory, why: Why) -> Memory:
    """Save a new memory with the first row of its history. Inside `writing()` only."""
    added(memory)
    added(change_of(memory, Change.CREATED, {}, whole_row(memory), why))
    return memory


def insert_all(memories: Sequence[Memory], why: Why, batch: int = 1000) -> None:
    """Save many new memories with the first rows of their histories. Inside `writing()` only."""
    for start in range(0, len(memories), batch):
        rows = Memory.objects.bulk_create(memories[start : start + batch])
        MemoryChange.objects.bulk_create(change_of(row, Change.CREATED, {}, whole_row(row), why) for row in rows)


def _compared(ready: Ready) -> Prepared:
    return compare(ready.where, ready, of_service="service" in ready.taxonomy.scope)


def _remember_human(ready: Ready, provenance: Provenance, at: datetime) -> Remembered:
    with writing():
        known = twin(ready.rows.active(), ready)
        if known is not None:
            raise InvalidMemory(
                f"Memory {known.pk} says exactly this already.", f"Edit it: manage.py memory edit {known.pk} …"
            )
        memory = _new(ready, provenance, at, {}, reason="Written by a person.")
        if settings.CLAUDEOPS_MATCHING == STRUCTURAL:
            _supersede_all(ready.rows, memory, provenance, at)
    return Remembered("created", memory.pk)


def _hold(ready: Ready, provenance: Provenance, at: datetime, reason: str) -> Remembered:
    """Store for review; touches nothing else. The same text waits for review once."""
    known = twin(ready.rows.held(), ready)
    if known is not None:
        return Remembered("held", known.pk, reason=f"{reason}; {_known_as(known)}")
    memory = _new(ready, provenance, at, {}, reason=f"Held: {reason}", held=reason)
    return Remembered("held", memory.pk, reason=reason)


def _known_as(known: Memory) -> str:
    return "waits for review already" if known.awaits_review else f"was rejected already, as memory {known.pk}"


def _match(ready: Ready, provenance: Provenance, at: datetime, prepared: Prepared) -> Remembered:
    """Store a candidate by how it relates to each known memory of its scope."""
    relations = meanwhile(prepared, ready.where, ready)
    near = [pk for pk, found in relations.items() if found.kind != Kind.DISTINCT]
    known = ready.rows.allowed().filter(pk__in=near).select_related("superseded_by").order_by() if near else ()
    rows = {row.pk: row for row in known}
    agreeing = [(row, relations[pk]) for pk, row in rows.items() if relations[pk].kind == Kind.REINFORCES]
    opposed = [
        (row, relations[pk]) for pk, row in rows.items() if relations[pk].kind == Kind.CONTRADICTS and row.active
    ]
    opposed.sort(key=lambda pair: pair[0].pk)

    best = _best(agreeing)
    if best is not None:
        memory, found = best
        if _said_otherwise(memory, provenance):
            return Remembered("duplicate", memory.pk, reason="this session said so over its other channel")
        verbs.reinforce(
            memory,
            by=provenance.actor,
            at=at,
            reason=f"{_said(provenance, 'Said again')} {found.why}",
            evidence=_evidence(ready, provenance, found, prepared),
            session_id=provenance.session_id,
            candidate_key=_key(ready, provenance),
        )
        outcome = "reinforced"
    else:
        ids = [row.pk for row, _ in opposed]
        memory = _new(
            ready, provenance, at, {"contradicts": ids} if ids else {}, reason=_said(provenance, "First said")
        )
        keyword_index.put(memory)
        if prepared.model is not None and prepared.vector is not None:
            vectors.store(memory, prepared.model, prepared.vector)
        outcome = "created"

    if settings.CLAUDEOPS_MATCHING == STRUCTURAL:
        return Remembered(outcome, memory.pk, _supersede_all(ready.rows, memory, provenance, at))
    lowered = []
    spoken_against = _spoken_against(provenance) if opposed else set()
    for row, found in opposed:
        if row.pk == memory.pk:
            continue
        disagree.note(row, memory, DisagreementKind.CONTRADICTION, at=at, evidence=found.evidence)
        if row.pk in spoken_against:
            continue
        verbs.contradict(
            row,
            by=provenance.actor,
            at=at,
            reason=f"Contradicted by memory {memory.pk}. {found.why}",
            evidence={**_evidence(ready, provenance, found, prepared), "by": memory.pk},
            session_id=provenance.session_id,
        )
        lowered.append(row.pk)
    if outcome == "created":
        _note_likeness(memory, relations, at)
    return Remembered(outcome, memory.pk, tuple(lowered))


def _note_likeness(memory: Memory, relations: dict[int, Relation], at: datetime) -> None:
    """Ask a person about the nearest memory that may say the same."""
    unsure = nearest_unsure(relations.items())
    row = None if unsure is None else Memory.objects.filter(pk=unsure, active=True).first()
    if row is not None:
        disagree.note(row, memory, DisagreementKind.DUPLICATE, at=at, evidence=relations[row.pk].evidence)


def _supersede_all(scope: MemoryQuerySet, memory: Memory, provenance: Provenance, at: datetime) -> tuple[int, ...]:
    """Let `memory` be the only active one of its scope."""
    others = list(scope.allowed().filter(active=True).exclude(pk=memory.pk).order_by("pk"))
    for row in others if memory.active else ():
        disagree.supersede(row, memory, by=provenance.actor, at=at)
    return tuple(row.pk for row in others) if memory.active else ()


def _best(agreeing: list[tuple[Memory, Relation]]) -> tuple[Memory, Relation] | None:
    """The best match; of equals the active, the surer, the older one. A merged memory stands for its target."""
    ranked = sorted(agreeing, key=lambda pair: (-pair[1].score, not pair[0].active, -pair[0].confidence, pair[0].pk))
    for row, found in ranked:
        seen = {row.pk}
        target: Memory | None = row
        while target is not None and target.inactive_reason == Inactive.MERGED:
            target = target.superseded_by
            if target is None or target.pk in seen:
                target = None
            else:
                seen.add(target.pk)
        if target is not None and target.inactive_reason not in (Inactive.EXPIRED, Inactive.SUPERSEDED):
            return target, found
    return None


def _said_otherwise(memory: Memory, provenance: Provenance) -> bool:
    """Whether this session made or confirmed this memory over another channel: one statement, told twice."""
    if provenance.session_id is None:
        return False
    earlier = MemoryChange.objects.filter(
        memory=memory, session=provenance.session_id, kind__in=(Change.CREATED, Change.REINFORCED)
    )
    return any(row.evidence.get("channel") != provenance.channel for row in earlier)


def _spoken_against(provenance: Provenance) -> set[int | None]:
    """What this session contradicted already: said in other words it is still one objection."""
    if provenance.session_id is None:
        return set()
    earlier = MemoryChange.objects.filter(session=provenance.session_id, kind=Change.CONTRADICTED)
    return set(earlier.values_list("memory_id", flat=True))


def _new(
    ready: Ready, provenance: Provenance, at: datetime, evidence: dict[str, Any], *, reason: str, held: str = ""
) -> Memory:
    active = rules.is_active(ready.confidence, ready.taxonomy)
    memory = Memory(
        taxonomy=ready.taxonomy.slug,
        project_id=provenance.project_id,
        agent=provenance.agent,
        service=ready.service,
        category=ready.category,
        observation=ready.observation,
        confidence=ready.confidence,
        active=active,
        inactive_reason="" if active else Inactive.LOWERED,
        created_at=at,
        updated_at=at,
        session_id=provenance.session_id,
        tier=provenance.tier,
        source=provenance.source,
        verdict=Verdict.HOLD if held else Verdict.ALLOW,
        verdict_reason=held[:500],
        tags=ready.tags,
    )
    evidence = {"channel": provenance.channel, **evidence}
    return insert(memory, Why(provenance.actor, at, reason, evidence, provenance.session_id, _key(ready, provenance)))


def _evidence(ready: Ready, provenance: Provenance, found: Relation, prepared: Prepared) -> dict[str, Any]:
    """What arrived, and why it was taken as it was; also when words alone had to say."""
    evidence = {"text": ready.observation, "channel": provenance.channel, "score": found.score, "match": found.evidence}
    return evidence | {"by words alone": prepared.off} if prepared.off else evidence


def _key(ready: Ready, provenance: Provenance) -> str | None:
    return None if provenance.session_id is None else ready.key


def _said(provenance: Provenance, what: str) -> str:
    return f"{what}." if provenance.session_id is None else f"{what} in session {provenance.session_id}."
