"""Serialise memories and changes to plain values, for the API, MCP and `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import prefetch_related_objects

from memories.models import Change, Memory, MemoryChange, Proposal, Verdict
from memories.queries.numbers import uses_of

COLUMNS = (
    *("uuid", "taxonomy", "agent", "service", "category", "observation", "confidence", "active", "inactive_reason"),
    *("verdict", "verdict_reason", "provisional", "confirmed_at", "persistent", "tier", "source", "exposure"),
    *("exposed_to", "trust", "session_id", "tags", "merged_count", "superseded_by_id", "created_at", "updated_at"),
    *("expires_at", "surface", "decayed_until", "approved_at"),
)
HISTORY_COLUMNS = ("id", "kind", "at", "actor", "session_id", "reason")


def as_data(memory: Memory) -> dict[str, Any]:
    """As `all_as_data()`, for one memory."""
    return all_as_data([memory])[0]


def all_as_data(memories: Sequence[Memory]) -> list[dict[str, Any]]:
    """Return each of `memories`: its project by slug, times aware and UTC, its uses counted in one query for all."""
    uses = uses_of([memory.pk for memory in memories])
    return [
        {"id": memory.pk, "project": memory.project.slug if memory.project else None}
        | {name: getattr(memory, name) for name in COLUMNS}
        # Its quotes stay on the pages of people: those from outside were not judged.
        | {"unconfirmed": bool(memory.unconfirmed), "support": str(memory.support.get("by", ""))}
        | {"used_count": uses[memory.pk].used, "helped_count": uses[memory.pk].helped}
        for memory in memories
    ]


def change_data(change: MemoryChange) -> dict[str, Any]:
    names = ("kind", "at", "actor", "session_id", "reason", "before", "after", "evidence")
    return {name: getattr(change, name) for name in names}


def history_of(memory: Memory, *, held_texts: bool, limit: int, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Return `limit` changes of a memory, the latest first, and how many there are.

    Without `held_texts` the texts of the changes up to the approval of a memory that was held are left out.
    """
    rows = MemoryChange.objects.filter(memory=memory).defer("evidence").order_by("-at", "-pk")
    approved = None if held_texts else rows.filter(kind=Change.APPROVED, before__verdict=Verdict.HOLD).first()
    entries = []
    for change in rows[offset : offset + limit]:
        states = {"before": change.before, "after": change.after}
        if approved is not None and (change.at, change.pk) <= (approved.at, approved.pk):
            states = {
                name: {column: value for column, value in state.items() if column != "observation"}
                for name, state in states.items()
            }
        entries.append({name: getattr(change, name) for name in HISTORY_COLUMNS} | states)
    return entries, rows.count()


PROPOSAL_COLUMNS = (
    *("uuid", "kind", "section", "target", "text", "proposed_text", "state", "tier", "confidence", "trust", "why"),
    *("conflict", "by", "created_at", "expires_at", "decided_at", "decided_by", "commit", "problem"),
)
DECISION = ("id", "tier", "verdict", "rule", "reason", "by", "at", "before", "after", "model", "undone_at")


def proposals_as_data(rows: Sequence[Proposal]) -> list[dict[str, Any]]:
    """Return each of `rows`, which have their file and its project; times are UTC."""
    return [
        {"id": row.pk, "project": row.file.project.slug if row.file.project else None}
        | {name: getattr(row, name) for name in PROPOSAL_COLUMNS}
        for row in rows
    ]


def proposal_as_data(row: Proposal) -> dict[str, Any]:
    """Return a proposal with its evidence and its decisions, the oldest first."""
    prefetch_related_objects([row], "evidence", "decisions")
    [data] = proposals_as_data([row])
    return data | {
        "evidence": [
            {"memory_id": one.memory_id, "memory_uuid": one.memory_uuid, "session_id": one.session_id}
            | {"text": one.text, "trust": one.trust}
            for one in row.evidence.all()
        ],
        "decisions": [{name: getattr(one, name) for name in DECISION} for one in row.decisions.all()],
    }
