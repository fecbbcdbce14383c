"""Create memories by `remember()` alone: gate, find candidates, relate, write, note. Knows no request and no queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Q, QuerySet

from claudeops.lib.insert import insert as new_row
from memories.candidates import Prepared, current_relations, nearest_unsure, same_text
from memories.candidates import prepare as compare
from memories.capture import fields
from memories.capture.gate import Judgement, judge, strictest
from memories.capture.reasons import Reason
from memories.capture.statement import Provenance, Statement
from memories.capture.text import fold
from memories.embedding import storage
from memories.errors import InvalidMemory
from memories.lifecycle import disagreements, forgotten, gate_decisions, rules, verbs, vouched
from memories.lifecycle.lock import write_lock, writing
from memories.lifecycle.rules import OWN_END, Lifetimes, is_independent, provisional_reason
from memories.lifecycle.write import Why, change_of, whole_row
from memories.matching import Kind, Relation, relation
from memories.models import (
    By,
    Change,
    DisagreementKind,
    Fact,
    FactOutcome,
    GateDecision,
    Inactive,
    Label,
    Memory,
    MemoryChange,
    Source,
    Verdict,
    is_lower,
    lowest,
    to_utc,
    trust,
    trust_of,
)
from memories.models.memory import MemoryQuerySet, Trust
from memories.recall import keyword_index
from memories.recall.filters import Where
from memories.taxonomy import AGENT, DEFAULT_CONFIDENCE

__all__ = [
    "Decision",
    "Prepared",
    "Provenance",
    "Remembered",
    "Statement",
    "allow_discarded",
    "contradicted_by",
    "decide",
    "discard_again",
    "insert",
    "insert_all",
    "note_relations",
    "place",
    "prepare",
    "remember",
    "same_observation",
    "write_lock",
]

ARRIVED = "arrived"
"""In the evidence of a change: when the server got a statement (ISO 8601, UTC), where a log states another time."""
STRUCTURAL, SUPERSEDE = "structural", "supersede"
"""The settings with which a statement confirms the first memory of its scope, or supersedes the others."""

ALLOWED = "The gate had discarded it; a person allowed it."
ECHO = "It was told this memory, so this counts up to a confidence of 0.9. "
TOLD = "It was told so, which counts for nothing. "
CONFIRMS = "It confirms the memory: a person says so, or another day, not told of it, no text from the same source. "


@dataclass(frozen=True, slots=True)
class Remembered:
    """The outcome of a statement: created, reinforced, held, discarded or duplicate.

    `memory_id` is the memory it is now part of; `contradicted` the ids it contradicted; `reason` is for a person.
    `is_forgotten`: it was discarded because a person had the text purged, so that no copy of it is to be kept.
    """

    outcome: str
    memory_id: int | None = None
    contradicted: tuple[int, ...] = ()
    reason: str = ""
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The memory that a statement reinforces (None: it is new) and those it contradicts."""

    reinforced: tuple[Memory, Relation] | None
    contradicted: list[tuple[Memory, Relation]]


def remember(
    statement: Statement,
    provenance: Provenance,
    *,
    at: datetime | None = None,
    prepared: Prepared | None = None,
    judgement: Judgement | None = None,
) -> Remembered:
    """Store one statement: gate, match within its scope, write.

    One transaction; within a session the same statement counts once, so a replayed log changes nothing. A restatement
    reinforces a known memory and adds no row; a contradiction lowers known memories (or ends them, by the taxonomy) and
    is stored; any other is stored.
    What is not the session's own words (`provenance.taint`) is held, and so is a text that is held already.
    A person's text skips gate and matching. `at` is when it was said (aware UTC; else the provenance's, else now).
    Without `prepared`, `prepare()` runs before the transaction. What is held or discarded is noted for the gate's
    report. `judgement` is the gate's with a model's word, of a caller who notes it: it counts unless the rules alone
    are stricter. A text that a person had purged is discarded, and noted nowhere. Raises InvalidMemory for a field that
    cannot be stored, and for a person's text that is active in the scope already or was purged.
    """
    _check_source(provenance)
    when = to_utc(at or provenance.at)
    if why := forgotten.refusal(statement.observation):
        if provenance.source == Source.HUMAN:
            raise InvalidMemory(why, forgotten.FIX)
        return Remembered("discarded", reason=why, is_forgotten=True)
    if provenance.source == Source.HUMAN:
        return _remember_human(statement, provenance, when)
    original, judgement = judgement, _judge(statement, provenance, judgement)
    is_noted = judgement == original
    if judgement.verdict == "discard":
        if not is_noted:
            _note(judgement, statement, provenance, None, when)
        return Remembered("discarded", reason=judgement.reason)
    if prepared is None:
        prepared = _prepare(statement, provenance, judgement)
    with writing():
        if earlier := _said_in_session(statement, provenance):
            return Remembered("duplicate", earlier[0], reason="this session said so already")
        if judgement.verdict != "allow":
            return _hold(statement, provenance, when, judgement, is_noted=is_noted)
        if held := _held_before(statement, provenance):
            why = f"the same text is held already, as memory {held.pk}"
            _note(Judgement("hold", why, (Reason.HELD_BEFORE,)), statement, provenance, held.pk, when)
            return _held_already(held, held.verdict_reason)
        return _match(statement, provenance, when, prepared)


def prepare(statement: Statement, provenance: Provenance, *, judgement: Judgement | None = None) -> Prepared:
    """Relate a statement to its candidates before a transaction that the caller opens around `remember()`.

    Writes nothing. Costs nothing for a statement that is not compared. Raises InvalidMemory as `remember()` does.
    """
    _check_source(provenance)
    if provenance.source == Source.HUMAN:
        return Prepared()
    return _prepare(statement, provenance, _judge(statement, provenance, judgement))


def place(statement: Statement, provenance: Provenance, *, at: datetime | None = None) -> Remembered:
    """Store a line of a file that people edit: through the gate, unless a person wrote it, and as it stands.

    It confirms and lowers nothing, since the file says a thing where and how its readers want it; what it contradicts
    becomes a question. The same active or held text in its scope is that memory (outcome "known"). A text that no
    person wrote and that a person deactivated is held. Raises InvalidMemory as `remember` does.
    """
    _check_source(provenance)
    when = to_utc(at or provenance.at)
    if why := forgotten.refusal(statement.observation):
        return Remembered("discarded", reason=why, is_forgotten=True)
    judgement = Judgement("allow") if provenance.typed else _judge(statement, provenance)
    if judgement.verdict == "discard":
        _note(judgement, statement, provenance, None, when)
        return Remembered("discarded", reason=judgement.reason)
    prepared = compare(_scope_sql(statement, provenance), statement, of_service="service" in statement.policy.scope)
    with writing():
        rows = _scope_rows(statement, provenance)
        if existing := same_observation(rows.active(), statement.observation):
            return Remembered("known", existing.pk)
        if judgement.verdict != "allow":
            return _hold(statement, provenance, when, judgement)
        rejected = None if provenance.typed else same_observation(rows.rejected(), statement.observation)
        if rejected is not None:
            why = f"a person deactivated it before, as memory {rejected.pk}"
            return _hold(statement, provenance, when, Judgement("hold", why, (Reason.REJECTED_BEFORE,)))
        memory = _new(statement, provenance, when, {}, reason="Written into the file.")
        keyword_index.put(memory)
        note_relations(memory, statement, provenance, prepared, at=when)
    return Remembered("created", memory.pk)


def allow_discarded(
    decision: GateDecision | int, *, by: str, at: datetime | None = None, text: str | None = None
) -> Remembered:
    """Make a memory of what the gate discarded, since the person `by` wants it; `text` is how they corrected it.

    It keeps its provenance, is matched like any other statement, and is approved. Raises MemoryNotFound, and
    InvalidMemory for what is no discard, was allowed already, or has lost its text.
    """
    pk, when = decision if isinstance(decision, int) else decision.pk, to_utc(at)
    row = _allowable(pk)
    statement = Statement(row.category, row.text, row.service or None, row.taxonomy, row.said_confidence)
    provenance = _provenance_of(row)
    prepared = _prepare(statement, provenance, Judgement("allow"))
    with writing():
        row = _allowable(pk)
        earlier = row.memory_id or (_said_in_session(statement, provenance) or (None,))[0]
        held = same_observation(_scope_rows(statement, provenance).held(), statement.observation)
        if earlier is not None or held is not None:
            result = Remembered("created", earlier if held is None else held.pk)
        else:
            result = _match(statement, provenance, when, prepared)
        memory_id = result.memory_id
        if memory_id is None:
            raise InvalidMemory(f"What it became was deleted since, so decision {pk} cannot be allowed.")
        GateDecision.objects.filter(pk=pk).update(memory=memory_id)
        if text is not None:
            verbs.edit(memory_id, by=by, at=when, observation=text, provenance=Provenance.typed_by(by))
        verbs.reactivate(memory_id, by=by, at=when, reason=ALLOWED)
        verbs.approve(memory_id, by=by, at=when, reason=ALLOWED)
        outcome = FactOutcome.MERGED if result.outcome == "reinforced" else FactOutcome.CREATED
        Fact.objects.filter(decision=row).update(memory=memory_id, outcome=outcome)
        gate_decisions.label(row, Label.EDITED if text is not None else Label.RELEASED, by=by, at=when)
    return result


def discard_again(decision: GateDecision | int, *, by: str, at: datetime | None = None) -> None:
    """Undo `allow_discarded`: the memory that it made is deactivated, and what it was made of is a discard again.

    A known memory that it confirmed keeps the confirmation. Raises MemoryNotFound, and InvalidMemory when it was not
    allowed.
    """
    pk, when = decision if isinstance(decision, int) else decision.pk, to_utc(at)
    with writing():
        row = gate_decisions.find(pk)
        if row.verdict != "discard" or row.label not in (Label.RELEASED, Label.EDITED) or row.memory_id is None:
            raise InvalidMemory(f"Decision {pk} is no discard that was allowed.")
        creation = MemoryChange.objects.filter(memory=row.memory_id, kind=Change.CREATED).first()
        if creation is not None and creation.after.get("observation") == fold(row.text)[: fields.LONGEST_OBSERVATION]:
            verbs.deactivate(row.memory_id, by=by, at=when, reason="Discarded again.")
        Fact.objects.filter(decision=row).update(outcome=FactOutcome.DISCARDED)
        gate_decisions.label(row, Label.UNDONE, by=by, at=when)


def _allowable(pk: int) -> GateDecision:
    row = gate_decisions.find_discard(pk)
    if not row.text:
        raise InvalidMemory(f"The text of decision {pk} is deleted; it is kept for 14 days.")
    return row


def _provenance_of(row: GateDecision) -> Provenance:
    """Return where a discarded statement came from; what a person typed is never discarded."""
    return Provenance(
        row.source,
        row.actor,
        session_id=row.session_id,
        tier=row.session.tier if row.session else 0,
        project_id=row.project_id,
        agent=row.agent,
        channel=row.channel,
        at=row.at,
        exposure=row.exposure,
        exposed_to=tuple(row.exposed_to),
    )


def decide(relations: Mapping[int, Relation], rows: Iterable[Memory]) -> Decision:
    """Decide what the relations of a statement to the known `rows` mean.

    Pure. The best match is reinforced: of equal ones the active, then the higher confidence, then the older. Active
    memories that contradict it are lowered, in the order of their ids.
    """
    agreeing, opposed = [], []
    for row in rows:
        match = relations[row.pk]
        if match.kind == Kind.REINFORCES:
            agreeing.append((row, match))
        elif match.kind == Kind.CONTRADICTS and row.active:
            opposed.append((row, match))
    agreeing.sort(key=lambda pair: (-pair[1].score, not pair[0].active, -pair[0].confidence, pair[0].pk))
    targets = ((_standing_for(row), match) for row, match in agreeing)
    best = next(((row, match) for row, match in targets if row is not None), None)
    if best is not None:
        opposed = [pair for pair in opposed if pair[0].pk != best[0].pk]
    return Decision(best, sorted(opposed, key=lambda pair: pair[0].pk))


def insert(memory: Memory, why: Why) -> Memory:
    """Save a new memory with the first row of its history. Inside `writing()` only."""
    new_row(memory)
    new_row(change_of(memory, Change.CREATED, {}, whole_row(memory), why))
    return memory


def insert_all(memories: Sequence[Memory], why: Why, batch: int = 1000) -> None:
    """Save many new memories with the first rows of their histories. Inside `writing()` only."""
    for start in range(0, len(memories), batch):
        rows = Memory.objects.bulk_create(memories[start : start + batch])
        MemoryChange.objects.bulk_create(change_of(row, Change.CREATED, {}, whole_row(row), why) for row in rows)


def _check_source(provenance: Provenance) -> None:
    if provenance.source not in Source.values:
        raise InvalidMemory(f"source is {provenance.source!r}; allowed are {', '.join(Source.values)}.")


def _judge(statement: Statement, provenance: Provenance, original: Judgement | None = None) -> Judgement:
    """Return the gate's verdict, or a given one that is as strict; what is not the session's own words is held."""
    judgement = judge(
        statement.text,
        statement.observation,
        taxonomy=statement.taxonomy,
        taint=provenance.taint,
        is_vouched_for=provenance.is_vouched_for,
    )
    return judgement if original is None else strictest(original, judgement)


def _note(
    judgement: Judgement, statement: Statement, provenance: Provenance, memory_id: int | None, at: datetime
) -> None:
    with writing():
        gate_decisions.note(
            judgement, channel=provenance.channel, statement=statement, provenance=provenance, memory=memory_id, at=at
        )


def _prepare(statement: Statement, provenance: Provenance, judgement: Judgement) -> Prepared:
    uncompared = judgement.verdict != "allow" or _by_scope_alone(statement, STRUCTURAL)
    if uncompared or _said_in_session(statement, provenance):
        return Prepared()
    return compare(_scope_sql(statement, provenance), statement, of_service="service" in statement.policy.scope)


def _by_scope_alone(statement: Statement, way: str) -> bool:
    """Whether CLAUDEOPS_MATCHING is `way`, which takes a scope for one subject; not where it holds many."""
    return bool(way == settings.CLAUDEOPS_MATCHING) and not statement.policy.of_many_subjects


def _scope(statement: Statement, provenance: Provenance) -> dict[str, Any]:
    """Return the fields that a memory must share to be repeated or contradicted by the statement."""
    values = {
        "project": provenance.project_id,
        "service": statement.service,
        "category": statement.category,
        "agent": _agent(statement, provenance),
    }
    return {"taxonomy": statement.taxonomy, **{name: values[name] for name in statement.policy.scope}}


def _agent(statement: Statement, provenance: Provenance) -> str | None:
    """Return the agent that the memory belongs to: in the agent taxonomy by its id, however it is named."""
    if provenance.agent is None or statement.taxonomy != AGENT.slug:
        return provenance.agent
    return fields.checked_agent(provenance.agent, statement.taxonomy)


def _scope_sql(statement: Statement, provenance: Provenance) -> Where:
    parts, params = [], []
    for name, value in _scope(statement, provenance).items():
        column = "memories.project_id" if name == "project" else f"memories.{name}"
        parts.append(f"{column} IS NULL" if value is None else f"{column} = %s")
        params += [] if value is None else [value]
    return Where(f"({' AND '.join(parts)})", tuple(params))


def _scope_rows(statement: Statement, provenance: Provenance) -> MemoryQuerySet:
    return Memory.objects.filter(**_scope(statement, provenance))


def _said_in_session(statement: Statement, provenance: Provenance) -> tuple[int | None] | None:
    """Return (the memory that this statement made or changed earlier in the session,), or None."""
    if provenance.session_id is None:
        return None
    # Raw SQL: every observation of a session runs this, and a queryset takes longer than the query.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT memory_id FROM memory_changes WHERE session_id = %s AND candidate_key = %s ORDER BY at, id LIMIT 1",
            [provenance.session_id, statement.key],
        )
        row = cursor.fetchone()
    return None if row is None else (row[0],)


def note_relations(
    memory: Memory, statement: Statement, provenance: Provenance, prepared: Prepared, *, at: datetime
) -> None:
    """Note what a memory that was not said by anybody, such as a copy, contradicts or may repeat: a person decides.

    No confidence moves. Inside `writing()` only.
    """
    relations = current_relations(prepared, _scope_sql(statement, provenance), statement)
    relations.pop(memory.pk, None)
    decision = decide(relations, _related_rows(relations, statement, provenance))
    for row, match in decision.contradicted:
        disagreements.note(row, memory, DisagreementKind.CONTRADICTION, at=at, evidence=match.evidence)
    if decision.reinforced is not None:
        row, match = decision.reinforced
        disagreements.note(row, memory, DisagreementKind.DUPLICATE, at=at, evidence=match.evidence)
    else:
        _note_likeness(memory, relations, at)


def contradicted_by(statement: Statement, provenance: Provenance) -> list[int]:
    """Return the ids of the active memories that a statement contradicts in its scope. Stores nothing."""
    relations = current_relations(
        compare(_scope_sql(statement, provenance), statement, of_service="service" in statement.policy.scope),
        _scope_sql(statement, provenance),
        statement,
    )
    decision = decide(relations, _related_rows(relations, statement, provenance))
    return [row.pk for row, _ in decision.contradicted]


def _held_before(statement: Statement, provenance: Provenance) -> Memory | None:
    """Return the held memory of the scope with this text; a queryset is made only where there is such a text at all."""
    if statement.observation.isascii() and not same_text(statement.observation):
        return None
    return same_observation(_scope_rows(statement, provenance).held(), statement.observation)


def same_observation(rows: MemoryQuerySet, observation: str) -> Memory | None:
    """Return the oldest of `rows` with this text, whatever its case."""
    # The database folds the case of ASCII letters only; for other texts all rows are read.
    if observation.isascii():
        same = same_text(observation)
        if not same:
            return None
        rows = rows.filter(pk__in=same)
    wanted = observation.lower()
    texts = rows.order_by("pk").values_list("pk", "observation").iterator()
    pk = next((pk for pk, text in texts if text.lower() == wanted), None)
    return None if pk is None else Memory.objects.get(pk=pk)


def _remember_human(statement: Statement, provenance: Provenance, at: datetime) -> Remembered:
    fields.checked_observation(statement.text)
    rows = _scope_rows(statement, provenance)
    with writing():
        existing = same_observation(rows.active(), statement.observation)
        if existing is not None:
            raise InvalidMemory(
                f"Memory {existing.pk} says exactly this already.", f"Edit it: manage.py memory edit {existing.pk} …"
            )
        memory = _new(statement, provenance, at, {}, reason="Written by a person.")
        if _by_scope_alone(statement, SUPERSEDE):
            _supersede_all(rows, memory, provenance, at)
    return Remembered("created", memory.pk)


def _hold(
    statement: Statement, provenance: Provenance, at: datetime, judgement: Judgement, *, is_noted: bool = False
) -> Remembered:
    """Store for review; nothing else changes. The same text is held once."""
    reason = judgement.reason
    existing = same_observation(_scope_rows(statement, provenance).held(), statement.observation)
    memory = existing or _new(statement, provenance, at, {}, reason=f"Held: {reason}", held=reason)
    if not is_noted:
        _note(judgement, statement, provenance, memory.pk, at)
    return _held_already(memory, reason) if existing else Remembered("held", memory.pk, reason=reason)


def _held_already(memory: Memory, reason: str) -> Remembered:
    state = "waits for review already" if memory.awaits_review else f"was rejected already, as memory {memory.pk}"
    return Remembered("held", memory.pk, reason=f"{reason}; {state}" if reason else state)


def _relation_to_first(statement: Statement, provenance: Provenance) -> dict[int, Relation]:
    """Return a relation that reinforces the first active memory of the scope, whatever both texts say."""
    first = _scope_rows(statement, provenance).allowed().active().order_by("pk").first()
    if first is None:
        return {}
    score = relation(first.observation, statement.observation, about=statement.service).score
    why = "It is the first memory of its scope, which any later one confirms (CLAUDEOPS_MATCHING=structural)."
    return {first.pk: Relation(Kind.REINFORCES, score, {"why": why})}


def _related_rows(relations: Mapping[int, Relation], statement: Statement, provenance: Provenance) -> list[Memory]:
    """Return the memories that the statement reinforces or contradicts, as they are now."""
    related = [pk for pk, match in relations.items() if match.kind != Kind.DISTINCT]
    if not related:
        return []
    rows = _scope_rows(statement, provenance).allowed().filter(pk__in=related)
    return list(rows.select_related("superseded_by").order_by())


def _standing_for(row: Memory) -> Memory | None:
    """Return what a restatement of `row` reinforces: a merged memory's target; None for one that has ended."""
    chain = {row.pk}
    target: Memory | None = row
    while target is not None and target.inactive_reason == Inactive.MERGED:
        target = target.superseded_by
        if target is None or target.pk in chain:
            return None
        chain.add(target.pk)
    if target is None or target.inactive_reason in (Inactive.EXPIRED, Inactive.SUPERSEDED):
        return None
    return target


def _match(statement: Statement, provenance: Provenance, at: datetime, prepared: Prepared) -> Remembered:
    """Relate the statement to what is known now, and write. Inside `writing()` only."""
    if _by_scope_alone(statement, STRUCTURAL):
        relations = _relation_to_first(statement, provenance)
    else:
        relations = current_relations(prepared, _scope_sql(statement, provenance), statement)
    decision = decide(relations, _related_rows(relations, statement, provenance))
    return _write(statement, provenance, at, decision, relations, prepared)


def _write(
    statement: Statement,
    provenance: Provenance,
    at: datetime,
    decision: Decision,
    relations: Mapping[int, Relation],
    prepared: Prepared,
) -> Remembered:
    if decision.reinforced is not None:
        memory, match = decision.reinforced
        if _of_voice(provenance, memory, Change.CREATED, Change.REINFORCED).exists():
            whose = provenance.actor if _is_token(provenance) else "this session"
            return Remembered("duplicate", memory.pk, reason=f"{whose} said so already, which counts once")
        echo = memory.pk in provenance.told
        confirms = memory.confirmed_at is None and _confirms(memory, statement, provenance, at)
        weight = (TOLD if statement.policy.merges else ECHO) if echo else CONFIRMS if confirms else ""
        verbs.reinforce(
            memory,
            by=provenance.actor,
            at=at,
            reason=f"{_in_session(provenance, 'Said again')} {weight}{match.why}",
            evidence=_evidence(statement, provenance, match, prepared),
            session_id=provenance.session_id,
            candidate_key=_session_key(statement, provenance),
            echo=echo,
            confirms=confirms,
            by_person=confirms and provenance.is_persons,
            restated=_first_confidence(statement, provenance),
        )
        outcome = "reinforced"
    else:
        ids = [row.pk for row, _ in decision.contradicted]
        evidence = {"contradicts": ids} if ids else {}
        memory = _new(statement, provenance, at, evidence, reason=_in_session(provenance, "First said"))
        keyword_index.put(memory)
        if prepared.model is not None and prepared.vector is not None:
            storage.store(memory, prepared.model, prepared.vector)
        outcome = "created"
    # What needs a confirmation itself ends and lowers nothing; a contradiction opens a question for a person.
    weak = trust.mode() != trust.OPEN and bool(provisional_reason(statement.text, provenance, statement.taxonomy))
    if _by_scope_alone(statement, SUPERSEDE):
        rows = _scope_rows(statement, provenance)
        return Remembered(outcome, memory.pk, () if weak else _supersede_all(rows, memory, provenance, at))
    lowered = []
    for row, match in decision.contradicted:
        disagreements.note(row, memory, DisagreementKind.CONTRADICTION, at=at, evidence=match.evidence)
        why: dict[str, Any] = {
            "by": provenance.actor,
            "at": at,
            "reason": f"Contradicted by memory {memory.pk}. {match.why}",
            "evidence": {**_evidence(statement, provenance, match, prepared), "by": memory.pk},
            "session_id": provenance.session_id,
        }
        if statement.policy.supersedes:
            if weak or not _may_supersede(row, memory, provenance, at):
                continue
            disagreements.supersede(row, memory, **why)
        elif weak or _of_voice(provenance, row, Change.CONTRADICTED).exists():
            continue
        else:
            verbs.contradict(row, **why)
        lowered.append(row.pk)
    if outcome == "created":
        _note_likeness(memory, relations, at)
    return Remembered(outcome, memory.pk, tuple(lowered))


def _note_likeness(memory: Memory, relations: Mapping[int, Relation], at: datetime) -> None:
    """Note the nearest memory that may be the same as a suspected duplicate."""
    unsure = nearest_unsure(relations.items())
    row = None if unsure is None else Memory.objects.filter(pk=unsure, active=True).first()
    if row is not None:
        disagreements.note(row, memory, DisagreementKind.DUPLICATE, at=at, evidence=relations[row.pk].evidence)


def _supersede_all(scope: MemoryQuerySet, memory: Memory, provenance: Provenance, at: datetime) -> tuple[int, ...]:
    """Supersede the other active memories of the scope by `memory`."""
    if not memory.active:
        return ()
    others = list(scope.allowed().filter(active=True).exclude(pk=memory.pk).order_by("pk"))
    for row in others:
        disagreements.supersede(row, memory, by=provenance.actor, at=at)
    return tuple(row.pk for row in others)


def _may_supersede(older: Memory, newer: Memory, provenance: Provenance, at: datetime) -> bool:
    """Whether a contradiction ends `older` without a person.

    `newer` is told, not to be trusted less, and was not said (at `at`) before the other was confirmed last, as in an
    old transcript. A memory that a person wrote, approved or changed stays until a person decides.
    """
    level = trust_of(provenance.source, provenance.exposure, provenance.exposed_to)
    if not newer.active or newer.provisional or trust.kept_back(newer) or at < older.updated_at:
        return False
    if is_lower(lowest(newer.trust, level), older.trust):
        return False
    if older.source == Source.HUMAN or older.approved_at is not None:
        return False
    return not MemoryChange.objects.filter(memory=older, by=By.PEOPLE).exclude(kind=Change.CREATED).exists()


def _of_voice(provenance: Provenance, memory: Memory, *kinds: Change) -> QuerySet[MemoryChange]:
    """Return what this voice (a session, its transcript, a token, a nameless client) did to the memory, or to one that
    was merged into it: the same voice counts once, in whatever words and by whichever door.
    """
    voice = Q()
    if provenance.session_id is not None:
        voice |= Q(session=provenance.session_id)
    if provenance.origin:
        voice |= Q(evidence__origin=provenance.origin)
    if _is_token(provenance):
        voice |= Q(actor=provenance.actor)
    elif not voice:
        voice = Q(actor=provenance.actor, session=None)
    merged = Q(superseded_by=memory.pk, inactive_reason=Inactive.MERGED)
    rows = Memory.objects.filter(Q(pk=memory.pk) | merged).order_by().values("pk")
    return MemoryChange.objects.filter(voice, memory__in=rows, kind__in=kinds)


def _is_token(provenance: Provenance) -> bool:
    return provenance.actor.startswith("token ")


def _confirms(memory: Memory, statement: Statement, provenance: Provenance, at: datetime) -> bool:
    """Whether a statement confirms a memory: a person says it, or a session that is independent of those before."""
    if provenance.is_persons:
        return True
    changes = MemoryChange.objects.filter(memory=memory, kind__in=(Change.CREATED, Change.REINFORCED)).order_by("pk")
    evidences = list(changes.values_list("evidence", flat=True))
    arrived = next((one[ARRIVED] for one in evidences if ARRIVED in one), None)
    return is_independent(
        memory,
        statement,
        provenance,
        at,
        said_by={str(one["origin"]) for one in evidences if one.get("origin")},
        arrived_at=datetime.fromisoformat(arrived) if arrived else None,
    )


def _new(
    statement: Statement,
    provenance: Provenance,
    at: datetime,
    evidence: dict[str, Any],
    *,
    reason: str,
    held: str = "",
) -> Memory:
    confidence = _first_confidence(statement, provenance)
    person = None if provenance.is_persons else vouched.vouched([statement.observation], provenance.project_id)
    decided = next(iter((person or {}).values()), None)
    confirmed_at = at if provenance.is_persons else decided.at if decided else None
    active = rules.is_active(confidence, statement.policy)
    memory = Memory(
        taxonomy=statement.taxonomy,
        project_id=provenance.project_id,
        agent=_agent(statement, provenance),
        service=statement.service,
        category=statement.category,
        observation=statement.observation,
        confidence=confidence,
        active=active,
        inactive_reason="" if active else Inactive.LOWERED,
        created_at=at,
        updated_at=at,
        session_id=provenance.session_id,
        tier=provenance.tier,
        source=provenance.source,
        verdict=Verdict.HOLD if held else Verdict.ALLOW,
        verdict_reason=held[:500],
        tags=list(statement.tags),
        relevance_score=statement.relevance_score,
        surface=statement.surface,
        exposure=provenance.exposure,
        exposed_to=list(provenance.exposed_to),
        provisional="" if confirmed_at else provisional_reason(statement.text, provenance, statement.taxonomy),
        confirmed_at=confirmed_at,
        trust=Trust.OPERATOR if confirmed_at else "",
        support=provenance.support.as_json() if provenance.support else {},
    )
    memory.expires_at = Lifetimes().end(memory, at) if statement.expires_at == "by type" else statement.expires_at
    runs: dict[str, Any] = {"runs": list(provenance.runs)} if provenance.runs else {}
    if statement.expires_at != "by type" and (statement.expires_at or provenance.typed):
        runs[OWN_END] = True
    if provenance.arrived_at is not None:
        runs[ARRIVED] = provenance.arrived_at.isoformat()
    evidence = {"channel": provenance.channel, **_origin(provenance), **runs, **evidence}
    key = _session_key(statement, provenance)
    if provenance.typed and not held:
        vouched.vouch([memory.observation], memory.project_id, by=provenance.actor, at=at)
    return insert(memory, Why(provenance.actor, at, reason, evidence, provenance.session_id, key))


def _first_confidence(statement: Statement, provenance: Provenance) -> float:
    """Select the confidence: a person's before the taxonomy's; an agent's only where the taxonomy sets none."""
    policy = statement.policy.first_confidence.get(provenance.source)
    own = statement.confidence
    first, second = (own, policy) if provenance.source == Source.HUMAN else (policy, own)
    return next((value for value in (first, second) if value is not None), DEFAULT_CONFIDENCE)


def _evidence(statement: Statement, provenance: Provenance, match: Relation, prepared: Prepared) -> dict[str, Any]:
    evidence = {
        "text": statement.observation,
        "channel": provenance.channel,
        **_origin(provenance),
        "score": match.score,
        "match": match.evidence,
    }
    return evidence | {"by words alone": prepared.off} if prepared.off else evidence


def _origin(provenance: Provenance) -> dict[str, str]:
    return {"origin": provenance.origin} if provenance.origin else {}


def _session_key(statement: Statement, provenance: Provenance) -> str | None:
    return None if provenance.session_id is None else statement.key


def _in_session(provenance: Provenance, words: str) -> str:
    return f"{words}." if provenance.session_id is None else f"{words} in session {provenance.session_id}."
