"""Memories and changes as plain values, for the API, MCP and `--json`."""

from __future__ import annotations

from typing import Any

from memories.models import Memory, MemoryChange

COLUMNS = (
    "uuid",
    "taxonomy",
    "agent",
    "service",
    "category",
    "observation",
    "confidence",
    "active",
    "inactive_reason",
    "verdict",
    "verdict_reason",
    "persistent",
    "tier",
    "source",
    "session_id",
    "tags",
    "merged_count",
    "superseded_by_id",
    "created_at",
    "updated_at",
    "expires_at",
    "decayed_until",
    "approved_at",
)


def as_data(memory: Memory) -> dict[str, Any]:
    """One memory; its project by slug, times aware and UTC."""
    data = {"id": memory.pk, "project": memory.project.slug if memory.project else None}
    return data | {name: getattr(memory, name) for name in COLUMNS}


def change_data(change: MemoryChange) -> dict[str, Any]:
    names = ("kind", "at", "actor", "session_id", "reason", "before", "after", "evidence")
    return {name: getattr(change, name) for name in names}
