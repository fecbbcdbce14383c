"""Delete the rows that are about a chosen memory or session alone, found by their links. Idempotent."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.db.models import Model, Q, QuerySet

from claudeops.purge.choice import BATCH, Chosen, batches
from claudeops.purge.texts import MARK
from memories.lifecycle.lock import writing
from memories.lifecycle.merge import erase_all
from memories.models import (
    AgentCapture,
    AgentFileConflict,
    AgentFileEntry,
    Disagreement,
    Fact,
    GateDecision,
    GateThreshold,
    Memory,
    MemoryChange,
    PartState,
    Proposal,
    ProposalDecision,
    ProposalEvidence,
    Recalled,
    Segment,
    Transcript,
    TranscriptPart,
)
from sessions_app.models import Event, Injected, LogEntry, Session, UsedMemory
from sessions_app.runner.launch import folder_of

Note = Callable[[Counter[str]], None]
"""Called in the transaction that removed so many rows, by table."""


def of_memories(ids: list[int]) -> list[QuerySet[Any]]:
    """Return the rows that go with some memories, and are not deleted by `erase_all`."""
    uuids = list(MemoryChange.objects.filter(memory__in=ids).values_list("memory_uuid", flat=True).distinct())
    uuids += list(Memory.objects.filter(pk__in=ids).values_list("uuid", flat=True))
    return [
        ProposalEvidence.objects.filter(Q(memory__in=ids) | Q(memory_uuid__in=uuids)),
        AgentFileEntry.objects.filter(memory__in=ids),
        AgentFileConflict.objects.filter(Q(memory__in=ids) | Q(other__in=ids)),
        AgentCapture.objects.filter(memory_id__in=ids),
        Injected.objects.filter(memory_id__in=ids),
        UsedMemory.objects.filter(memory_id__in=ids),
    ]


def erased(ids: list[int]) -> list[QuerySet[Any]]:
    """Return the rows that `erase_all` deletes with some memories."""
    return [
        MemoryChange.objects.filter(memory__in=ids),
        Disagreement.objects.filter(Q(older__in=ids) | Q(newer__in=ids)),
        Fact.objects.filter(memory__in=ids),
        GateDecision.objects.filter(memory__in=ids),
        Memory.objects.filter(pk__in=ids),
    ]


def of_session(pk: int) -> list[QuerySet[Any]]:
    """Return the rows that a session wrote."""
    return [
        LogEntry.objects.filter(session=pk),
        Event.objects.filter(session=pk),
        GateDecision.objects.filter(session=pk),
        AgentCapture.objects.filter(session=pk),
        Transcript.objects.filter(session=pk),
    ]


WRITTEN_BY_SESSION: dict[str, Any] = {
    "response": MARK,
    "summary": MARK,
    "structured": None,
    "escalation": {},
    "error": "",
    "log_file": "",
    "ingest_offset": 0,
}


def of_person(name: str) -> list[tuple[QuerySet[Any], str]]:
    """Return the rows with words that a person wrote beside memories, and the column."""
    return [
        (MemoryChange.objects.filter(actor=name).exclude(reason__in=("", MARK)), "reason"),
        (GateThreshold.objects.filter(by=name).exclude(reason__in=("", MARK)), "reason"),
        (ProposalDecision.objects.filter(by=name).exclude(reason__in=("", MARK)), "reason"),
        (Recalled.objects.filter(actor=name).exclude(query=MARK), "query"),
        (Session.objects.filter(requested_by=name).exclude(task__in=("", MARK)), "task"),
    ]


def counts(chosen: Chosen) -> Counter[str]:
    """Count what `remove` would."""
    found: Counter[str] = Counter()
    for ids in batches(chosen.memories):
        for one in (*of_memories(ids), *erased(ids)):
            found[_table(one.model)] += one.count()
    for ids in batches(chosen.proposals):
        found[_table(Proposal)] += Proposal.objects.filter(pk__in=ids).count()
    for ids in batches(chosen.segments):
        found["segments.narrative"] += Segment.objects.filter(pk__in=ids).exclude(narrative=MARK).count()
    for pk in chosen.sessions:
        for one in of_session(pk):
            found[_table(one.model)] += one.count()
    for words, column in of_person(chosen.person) if chosen.person else ():
        found[f"{_table(words.model)}.{column}"] += words.count()
    return +found


def rows(chosen: Chosen) -> list[QuerySet[Any]]:
    """Return the rows that are deleted, so that a plan does not count their texts, too; [] when they are too many."""
    found = [one for pk in chosen.sessions for one in of_session(pk)]
    found.append(Proposal.objects.filter(pk__in=chosen.proposals[:BATCH]))
    found.append(ProposalDecision.objects.filter(proposal__in=chosen.proposals[:BATCH]))
    if len(chosen.memories) <= BATCH:
        found += [*of_memories(chosen.memories), *erased(chosen.memories)]
    return found


def remove(chosen: Chosen, note: Note) -> None:
    """Delete and overwrite, in short transactions."""
    for ids in batches(chosen.proposals):
        with writing():
            proposals = Proposal.objects.filter(pk__in=ids)
            note(Counter({_table(Proposal): proposals.count()}))
            proposals.delete()
    for ids in batches(chosen.segments):
        with writing():
            segments = Segment.objects.filter(pk__in=ids).exclude(narrative=MARK)
            note(Counter({"segments.narrative": segments.count()}))
            TranscriptPart.objects.filter(segments__in=ids, state=PartState.DONE).update(answer=MARK)
            segments.update(narrative=MARK)
    for ids in batches(chosen.memories):
        with writing():
            linked, others = of_memories(ids), erased(ids)
            note(Counter({_table(one.model): one.count() for one in (*linked, *others)}))
            for one in linked:
                one.delete()
            erase_all(Memory.objects.filter(pk__in=ids))
    for pk in chosen.sessions:
        _session(pk, note)
    for words, column in of_person(chosen.person) if chosen.person else ():
        with writing():
            note(Counter({f"{_table(words.model)}.{column}": words.count()}))
            words.update(**{column: MARK}, **({"brief": {}} if column == "task" else {}))


def _session(pk: int, note: Note) -> None:
    session = Session.objects.filter(pk=pk).first()
    if session is None:
        return
    shutil.rmtree(folder_of(session), ignore_errors=True)
    with writing():
        for one in of_session(pk):
            note(Counter({_table(one.model): one.count()}))
            one.delete()
        Session.objects.filter(pk=pk).exclude(log_file="", response=MARK).update(**WRITTEN_BY_SESSION)


def _table(model: type[Model]) -> str:
    return model._meta.db_table
