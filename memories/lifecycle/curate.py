"""What an operator does to memories for good: merging several into one, deleting.

The history outlives both. What these share with `memories/bulk.py` is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from memories.capture.fields import checked_observation
from memories.errors import InvalidMemory
from memories.lifecycle.lock import writing
from memories.lifecycle.record import Why, apply, change_of, locked, moment, whole_row
from memories.models import Change, Inactive, Memory, MemoryChange
from memories.taxonomy import TAXONOMIES

SCOPE_COLUMNS = {"project": "project_id", "service": "service", "category": "category", "agent": "agent"}


def check_mergeable(target: Memory, others: Iterable[Memory]) -> None:
    """Raises InvalidMemory, naming the first memory that does not belong to the target's scope.

    Only what could have been one memory can become one: same taxonomy, and the fields that its taxonomy
    compares within. Anything else would move knowledge to where it does not apply.
    """
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
            mine, its = getattr(target, column), getattr(other, column)
            if mine != its:
                raise InvalidMemory(
                    f"Memories {target.pk} and {other.pk} differ in their {name} ({_shown(mine)}, {_shown(its)}); "
                    f"only memories of the same {', '.join(columns)} can be merged.",
                    "Edit one of them first, so that both belong to the same.",
                )


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def merged_target(target: Memory, others: Sequence[Memory], observation: str | None, at: datetime) -> dict[str, Any]:
    """The target's columns after the merge: the text that was given, the best confidence, freshly confirmed."""
    return {
        "observation": target.observation if observation is None else checked_observation(observation),
        "confidence": max([target.confidence, *(other.confidence for other in others)]),
        "updated_at": max(target.updated_at, at),
        "merged_count": target.merged_count + len(others),
    }


def merged_away(target: Memory) -> dict[str, Any]:
    """The columns of a memory that went into `target`."""
    return {"active": False, "inactive_reason": Inactive.MERGED, "superseded_by_id": target.pk}


def merge(
    target: Memory | int,
    others: Iterable[Memory | int],
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    observation: str | None = None,
) -> MemoryChange | None:
    """Make `others` part of `target`: they become inactive and point to it, it counts them.

    The target keeps its text unless `observation` gives another, and takes the highest confidence of all.
    Writes one change row for each memory; returns the target's. Raises InvalidMemory when they do not belong
    to one scope, when the target is inactive, or when there is nothing to merge.
    """
    why = Why(by, moment(at), reason)
    with writing():
        row = locked(target)
        ids = dict.fromkeys(other if isinstance(other, int) else other.pk for other in others)
        rows = [locked(pk) for pk in sorted(ids)]
        if not rows:
            raise InvalidMemory("There is nothing to merge.", "Name at least one memory besides the target.")
        check_mergeable(row, rows)
        # Before the rows change: they are in the evidence as they were.
        evidence = {"merged": [{"id": other.pk, "observation": other.observation} for other in rows]}
        new = merged_target(row, rows, observation, why.at)
        for other in rows:
            apply(other, Change.MERGED, merged_away(row), why._replace(evidence={"into": row.pk}))
        return apply(row, Change.MERGED, new, why._replace(evidence=evidence), handed=target)


def delete(memory: Memory | int, *, by: str, at: datetime | None = None, reason: str = "") -> MemoryChange | None:
    """Remove a memory. Its history stays, under its UUID; `before` of the last row is the whole memory."""
    why = Why(by, moment(at), reason)
    with writing():
        row = locked(memory)
        change = change_of(row, Change.DELETED, whole_row(row), {}, why)
        change.memory_id = None
        change.save(force_insert=True)
        row.delete()
        return change
