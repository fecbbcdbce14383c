"""Delete the rows that are about a chosen memory or session alone, found by their links. Idempotent."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import Q, QuerySet

from claudeops.features.purge.choice import BATCH, Chosen, batches
from memories.lifecycle.forgotten import MARK
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

Rows = tuple[str, QuerySet[Any], dict[str, Any]]
"""The name in the receipt ("": not counted), the rows, and their new values; without those the rows are deleted."""
WRITTEN_BY_SESSION: dict[str, Any] = {
    "response": MARK,
    "summary": MARK,
    "structured": None,
    "escalation": {},
    "error": "",
    "log_file": "",
    "ingest_offset": 0,
}


def rows_of(chosen: Chosen) -> Iterator[Rows]:
    """Yield what is deleted and overwritten, in this order."""
    for ids in batches(chosen.proposals):
        yield "", ProposalDecision.objects.filter(proposal__in=ids), {}
        yield _all(Proposal.objects.filter(pk__in=ids))
    for ids in batches(chosen.segments):
        parts = TranscriptPart.objects.filter(segments__in=ids, state=PartState.DONE)
        yield "", parts, {"answer": MARK}
        yield "segments.narrative", Segment.objects.filter(pk__in=ids).exclude(narrative=MARK), {"narrative": MARK}
    for ids in batches(chosen.memories):
        yield from map(_all, _of_memories(ids))
    for pk in chosen.sessions:
        for model in (LogEntry, Event, GateDecision, AgentCapture, Transcript):
            yield _all(model._base_manager.filter(session=pk))
        session = Session.objects.filter(pk=pk).exclude(log_file="", response=MARK)
        yield "", session, WRITTEN_BY_SESSION
    if chosen.person:
        yield from _of_person(chosen.person)


def _all(rows: QuerySet[Any]) -> Rows:
    return rows.model._meta.db_table, rows, {}


def _of_memories(ids: list[int]) -> list[QuerySet[Any]]:
    uuids = list(MemoryChange.objects.filter(memory__in=ids).values_list("memory_uuid", flat=True).distinct())
    uuids += list(Memory.objects.filter(pk__in=ids).values_list("uuid", flat=True))
    return [
        ProposalEvidence.objects.filter(Q(memory__in=ids) | Q(memory_uuid__in=uuids)),
        AgentFileEntry.objects.filter(memory__in=ids),
        AgentFileConflict.objects.filter(Q(memory__in=ids) | Q(other__in=ids)),
        AgentCapture.objects.filter(memory_id__in=ids),
        Injected.objects.filter(memory_id__in=ids),
        UsedMemory.objects.filter(memory_id__in=ids),
        Disagreement.objects.filter(Q(older__in=ids) | Q(newer__in=ids)),
        Fact.objects.filter(memory__in=ids),
        GateDecision.objects.filter(memory__in=ids),
        MemoryChange.objects.filter(memory__in=ids),
        Memory.objects.filter(pk__in=ids),
    ]


def _of_person(name: str) -> Iterator[Rows]:
    """Yield the rows with words that a person wrote beside memories."""
    for model, writer, column in (
        (MemoryChange, "actor", "reason"),
        (GateThreshold, "by", "reason"),
        (ProposalDecision, "by", "reason"),
        (Recalled, "actor", "query"),
        (Session, "requested_by", "task"),
    ):
        rows = model._base_manager.filter(**{writer: name}).exclude(**{f"{column}__in": ("", MARK)})
        also: dict[str, Any] = {"brief": {}} if column == "task" else {}
        yield f"{model._meta.db_table}.{column}", rows, {column: MARK, **also}


def counts(chosen: Chosen) -> Counter[str]:
    """Count what `remove` would."""
    totals: Counter[str] = Counter()
    for name, rows, _ in rows_of(chosen):
        totals[name] += rows.count() if name else 0
    return +totals


def deleted(chosen: Chosen) -> list[QuerySet[Any]]:
    """Return the rows that go, so that a plan does not count their texts, too; [] when they are too many."""
    few = len(chosen.memories) <= BATCH
    return [rows for _, rows, values in rows_of(chosen) if not values] if few else []


def remove(chosen: Chosen, note: Callable[[Counter[str]], None]) -> None:
    """Delete and overwrite, in short transactions; `note` is called in each with how many rows went, by table."""
    for session in Session.objects.filter(pk__in=chosen.sessions):
        shutil.rmtree(folder_of(session), ignore_errors=True)
    for name, rows, values in rows_of(chosen):
        with writing():
            note(Counter({name: rows.count()}) if name else Counter())
            if values:
                rows.update(**values)
            elif rows.model is Memory:
                erase_all(rows)
            else:
                rows.delete()
