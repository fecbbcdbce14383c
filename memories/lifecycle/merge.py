"""Merge several memories into one, and delete memories. The history is kept."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from memories.capture.statement import Provenance
from memories.errors import InvalidMemory
from memories.lifecycle.bulk_write import batches, change_all, delete_all, delete_rows
from memories.lifecycle.lock import writing
from memories.lifecycle.new_text import checked_text
from memories.lifecycle.rules import after_edit
from memories.lifecycle.write import Why, apply, check_unchanged, locked
from memories.models import Change, Disagreement, Fact, GateDecision, Inactive, Memory, MemoryChange, to_utc
from memories.taxonomy import TAXONOMIES

SCOPE_COLUMNS = {"project": "project_id", "service": "service", "category": "category", "agent": "agent"}

MOST_NAMED = 100
"""Memories that the evidence of a merge names; each merged memory also has its own change row."""


def check_mergeable(target: Memory, others: Iterable[Memory]) -> None:
    """Raise InvalidMemory unless the target is active and all others share its taxonomy and scope."""
    if not target.active:
        raise InvalidMemory(
            f"Memory {target.pk} is inactive and cannot take others in.",
            "Reactivate it first, or merge into an active one.",
        )
    columns = {"taxonomy": "taxonomy"}
    columns |= {name: SCOPE_COLUMNS[name] for name in TAXONOMIES[target.taxonomy].scope}
    for other in others:
        if other.pk == target.pk:
            raise InvalidMemory(f"Memory {target.pk} cannot be merged into itself.", "Leave it out of the others.")
        if other.inactive_reason == Inactive.MERGED:
            raise InvalidMemory(f"Memory {other.pk} was merged already.", "Leave it out.")
        for name, column in columns.items():
            ours, theirs = getattr(target, column), getattr(other, column)
            if ours != theirs:
                raise InvalidMemory(
                    f"Memories {target.pk} and {other.pk} differ in their {name} ({_shown(ours)}, {_shown(theirs)}); "
                    f"only memories of the same {', '.join(columns)} can be merged.",
                    "Edit one of them first, so that both belong to the same.",
                )


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def merge(
    target: Memory | int,
    others: QuerySet[Memory] | Iterable[Memory | int],
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    observation: str | None = None,
    provenance: Provenance | None = None,
    evidence: dict[str, Any] | None = None,
    confirms: bool = True,
) -> MemoryChange | None:
    """Merge `others` into `target`: they become inactive and point to it.

    The target keeps its text unless `observation` is given, takes the highest confidence, and counts them. A new text
    passes the gate unless `provenance` says that a person typed it (raises TextHeld). `evidence` is stored with each
    change. Without `confirms` the target is as fresh as the freshest of them, not as of `at`. Returns the target's
    change row. Raises InvalidMemory for different scopes, an inactive target, or nothing to merge.
    """
    why, more = Why(by, to_utc(at), reason), evidence or {}
    with writing():
        into = locked(target)
        if not isinstance(others, QuerySet):
            others = Memory.objects.filter(pk__in=[locked(other).pk for other in others])
        text = into.observation
        if observation is not None:
            text = checked_text(observation, provenance, current=into.observation, taxonomy=into.taxonomy)
        count, confidence, fresh = 0, into.confidence, into.updated_at
        provisional: set[str] = set()
        trusts: set[str] = set()
        named: list[dict[str, Any]] = []
        for other in others.order_by("pk").iterator():
            check_mergeable(into, [other])
            count += 1
            provisional.add(other.provisional)
            trusts.add(other.trust)
            if provenance is None or provenance.typed:  # who does not approve raises nothing
                confidence = max(confidence, other.confidence)
            fresh = max(fresh, other.updated_at)
            if count <= MOST_NAMED:
                named.append({"id": other.pk, "observation": other.observation})
        if not count:
            raise InvalidMemory("There is nothing to merge.", "Choose at least two memories.")
        new = {
            "observation": text,
            "confidence": confidence,
            "updated_at": max(into.updated_at, why.at) if confirms else fresh,
            "merged_count": into.merged_count + count,
        } | after_edit(into, text, provenance, why.at, also=sorted(provisional), lineage=trusts)
        merged = {"active": False, "inactive_reason": Inactive.MERGED, "superseded_by_id": into.pk}
        change_all(others, Change.MERGED, why._replace(evidence={**more, "into": into.pk}), lambda row: merged)
        details = {**more, "merged": named, "count": count}
        return apply(into, Change.MERGED, new, why._replace(evidence=details), caller=target)


def delete(
    memory: Memory | int, *, by: str, at: datetime | None = None, reason: str = "", expected_change: int | None = None
) -> MemoryChange | None:
    """Delete a memory. Its history stays, under its UUID; `before` of the last row is the whole memory.

    `expected_change` is the latest change that the caller saw (0: none): raises Conflict when another one came since.
    """
    with writing():
        row = locked(memory)
        if expected_change is not None:
            check_unchanged(row, expected_change)
        delete_all(Memory.objects.filter(pk=row.pk), Why(by, to_utc(at), reason))
        return MemoryChange.objects.order_by("-pk").first()  # ours: we hold the write lock


def erase_all(queryset: QuerySet[Memory]) -> int:
    """Erase memories for good and return how many; nothing says afterwards that they existed.

    Triggers delete their terms and vectors. Records of sessions stay: what an agent said is in its log, what a session
    was told in its receipt.
    """
    count = 0
    with writing():
        for rows in batches(queryset):
            ids = [row.pk for row in rows]
            Disagreement.objects.filter(Q(older__in=ids) | Q(newer__in=ids)).delete()
            Fact.objects.filter(memory__in=ids).delete()
            GateDecision.objects.filter(memory__in=ids).delete()
            MemoryChange.objects.filter(memory_uuid__in=[row.uuid for row in rows]).delete()
            delete_rows(ids)
            count += len(rows)
    return count
