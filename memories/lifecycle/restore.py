"""Return a memory to an earlier state, by a change of its own, so that the history stays complete."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from memories.capture.fields import checked_category
from memories.errors import InvalidMemory, MemoryNotFound
from memories.lifecycle.lock import writing
from memories.lifecycle.verbs import check_unchanged, confirmed, policy
from memories.lifecycle.write import Why, apply, difference, locked
from memories.models import Change, Inactive, Memory, MemoryChange, Project, drop_lost_links, states_before, to_utc

STAYS = {
    *("updated_at", "decayed_until", "merged_count", "recall_count", "last_recalled_at", "stale_at"),
    *("told_count", "last_told_at"),
}
"""Columns that a roll back leaves: the time of confirmation (it is set to now), and the counters."""


def restore(
    memory: Memory | int,
    change: MemoryChange | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    only_latest: bool = False,
) -> MemoryChange | None:
    """Restore the state just before `change`, one of the memory's own; None when it is in that state.

    Later changes are reverted too, or with `only_latest` raise Conflict. Raises InvalidMemory for the creation, and
    MemoryNotFound for a missing memory or a change that is not its own.
    """
    wanted = change if isinstance(change, int) else change.pk
    with writing():
        row = locked(memory)
        later = list(MemoryChange.objects.filter(memory=row, pk__gte=wanted).order_by("-pk"))
        if not later or later[-1].pk != wanted:
            raise MemoryNotFound(f"Memory {row.pk} has no change {wanted}.")
        if any(one.kind == Change.CREATED for one in later):
            raise InvalidMemory(f"Before this, memory {row.pk} did not exist.", "Delete it instead.")
        if only_latest:
            check_unchanged(row, wanted)
        words = reason or f"Back to before it was {later[-1].label}."
        why = Why(by, to_utc(at), words, {"before_change": wanted})
        return apply(row, Change.RESTORED, states_before(later)[row.pk], why, caller=memory)


def roll_back(
    memory: Memory | int,
    change: MemoryChange | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    expected_change: int | None = None,
) -> MemoryChange | None:
    """Restore the state just after `change`, one of the memory's own, confirmed now; None when it is in that state.

    `expected_change` is the latest change the person saw: raises Conflict when another one came since. Raises
    InvalidMemory for a state that cannot be restored, and MemoryNotFound for a missing memory or a change that is not
    its own.
    """
    wanted = change if isinstance(change, int) else change.pk
    when = to_utc(at)
    with writing():
        row = locked(memory)
        if expected_change is not None:
            check_unchanged(row, expected_change)
        then, state = state_after(row, wanted)
        check_restorable(row, state)
        drop_lost_links([state])
        new = {name: value for name, value in state.items() if name not in STAYS}
        if not difference(row, new)[1]:
            return None
        expires_at = new.get("expires_at", row.expires_at)
        if new.get("active", row.active) and expires_at is not None and expires_at <= when:
            new["expires_at"] = None  # or the next sweep would end it again, as in `reactivate`
        words = reason or f"Back to how it was after it was {then.label}."
        why = Why(by, when, words, {"to_change": wanted})
        return apply(row, Change.RESTORED, new | confirmed(row, when), why, caller=memory)


def state_after(row: Memory, wanted: int) -> tuple[MemoryChange, dict[str, Any]]:
    """Return (the change, the columns changed since with their values just after it). Raises MemoryNotFound."""
    then = MemoryChange.objects.filter(memory=row, pk=wanted).first()
    if then is None:
        raise MemoryNotFound(f"Memory {row.pk} has no change {wanted}.")
    later = MemoryChange.objects.filter(memory=row, pk__gt=wanted).order_by("-pk")
    return then, states_before(later, keep_lost_links=True).get(row.pk, {})


def check_restorable(row: Memory, state: dict[str, Any]) -> None:
    """Raise InvalidMemory, with the reason, when the memory cannot have these columns again."""
    into = state.get("superseded_by_id", row.superseded_by_id)
    ended = state.get("inactive_reason", row.inactive_reason)
    was_part = "superseded_by_id" in state and ended in (Inactive.MERGED, Inactive.SUPERSEDED)
    if was_part and not Memory.objects.filter(pk=into or 0).exists():
        what = f"memory {into}" if into is not None else "another memory"
        raise InvalidMemory(
            f"Then it was part of {what}, which is deleted.", "Choose a state from before it went into that one."
        )
    project = state.get("project_id")
    if project is not None and not Project.objects.filter(pk=project).exists():
        raise InvalidMemory(f"Then it belonged to project {project}, which is gone.", "Choose a later state.")
    if "category" in state:
        checked_category(state["category"], policy(row))
