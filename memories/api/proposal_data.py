"""Serialise proposals to plain values, for the API and `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import prefetch_related_objects

from memories.models import Proposal

COLUMNS = (
    *("uuid", "kind", "section", "target", "text", "proposed_text", "state", "tier", "confidence", "trust", "why"),
    *("conflict", "by", "created_at", "expires_at", "decided_at", "decided_by", "commit", "problem"),
)
DECISION = ("id", "tier", "verdict", "rule", "reason", "by", "at", "before", "after", "model", "undone_at")


def all_as_data(rows: Sequence[Proposal]) -> list[dict[str, Any]]:
    """Return each of `rows`, which have their file and its project; times are UTC."""
    return [
        {"id": row.pk, "project": row.file.project.slug if row.file.project else None}
        | {name: getattr(row, name) for name in COLUMNS}
        for row in rows
    ]


def as_data(row: Proposal) -> dict[str, Any]:
    """Return a proposal with its evidence and its decisions, the oldest first."""
    prefetch_related_objects([row], "evidence", "decisions")
    [data] = all_as_data([row])
    return data | {
        "evidence": [
            {"memory_id": one.memory_id, "memory_uuid": one.memory_uuid, "session_id": one.session_id}
            | {"text": one.text, "trust": one.trust}
            for one in row.evidence.all()
        ],
        "decisions": [{name: getattr(one, name) for name in DECISION} for one in row.decisions.all()],
    }
