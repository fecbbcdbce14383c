"""Undo a bulk action by new changes.

All change rows of one action have the same kind, actor and time. Memories that changed since are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from memories.capture.fields import checked_category
from memories.errors import Conflict, InvalidMemory, MemoryNotFound
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.bulk_write import BATCH, change_all
from memories.lifecycle.lock import writing
from memories.lifecycle.verbs import check_unchanged, confirmed, policy
from memories.lifecycle.write import Why, apply, difference, locked
from memories.models import Change, Inactive, Memory, MemoryChange, Project, drop_lost_links, states_before, to_utc

UNDOABLE = frozenset(action.kind for action in BULK_ACTIONS.values() if action.kind != Change.DELETED)
"""The kinds of change that bulk actions make, except deletion, which leaves no memory to restore."""


@dataclass(frozen=True, slots=True)
class Undone:
    """Counts of memories: `back` restored now, `already` by an earlier undo, the others left alone."""

    back: int
    already: int = 0
    changed_since: int = 0
    deleted_since: int = 0

    @property
    def message(self) -> str:
        if not self.back and self.already:
            parts = [f"{_are(self.already)} as {_they(self.already)} before already"]
        else:
            parts = [f"{_are(self.back)} as {_they(self.back)} before"]
        for count, what in ((self.changed_since, "changed"), (self.deleted_since, "deleted")):
            if count:
                parts.append(f"{count:,} {'was' if count == 1 else 'were'} {what} since and left alone")
        return "; ".join(parts) + "."


def _are(count: int) -> str:
    return "1 memory is" if count == 1 else f"{count:,} memories are"


def _they(count: int) -> str:
    return "it was" if count == 1 else "they were"


def undo(change: MemoryChange | int, *, by: str, at: datetime | None = None, reason: str = "") -> Undone:
    """Restore the memories of the action that `change` belongs to; idempotent.

    What a session did is refused: changes of one moment are no single action there, so that with a wrong confirmation
    the right ones beside it would go back too. `restore` brings one memory back to before it.

    Raises MemoryNotFound, InvalidMemory for a kind without undo and for a session's change, and Conflict for a merge
    with a memory that was changed or deleted since.
    """
    wanted = change if isinstance(change, int) else change.pk
    with writing():
        first = MemoryChange.objects.filter(pk=wanted).first()
        if first is None:
            raise MemoryNotFound(f"There is no change {wanted}.")
        if first.kind not in UNDOABLE or first.session_id is not None or first.evidence.get("origin"):
            raise InvalidMemory(
                f"What was {first.get_kind_display()} cannot be taken back here.",
                "The page of a memory shows its history, and what it can go back to.",
            )
        action = action_of(first)
        name = action.values_list("pk", flat=True).order_by("pk").first()
        deleted = action.filter(memory=None).count()
        rows = action.filter(memory__isnull=False)
        later, undone = _after(name or first.pk)
        already = rows.filter(undone).count()
        since = rows.filter(~undone, later).count()
        if first.kind == Change.MERGED and not already and (since or deleted):
            raise Conflict(_not_whole(since, deleted), "The page of each memory shows what was done to it.")
        words = reason or f"Back to before it was {first.get_kind_display()}, with the others of that action."
        why = Why(by, to_utc(at), words, {"undone": name})
        back = 0
        ids = list(rows.filter(~later).values_list("pk", flat=True))  # first: an undo moves rows out of the queryset
        for start in range(0, len(ids), BATCH):
            states = states_before(MemoryChange.objects.filter(pk__in=ids[start : start + BATCH]))
            back += sum(change_all(Memory.objects.filter(pk__in=states), Change.RESTORED, why, _state_in(states)))
    return Undone(back, already, since, deleted)


def action_of(change: MemoryChange) -> QuerySet[MemoryChange]:
    return MemoryChange.objects.filter(at=change.at, actor=change.actor, kind=change.kind)


def _after(name: int) -> tuple[Exists, Exists]:
    """Conditions on a change row: its memory was changed again; the action with first row `name` was undone on it."""
    after = MemoryChange.objects.filter(memory=OuterRef("memory"), pk__gt=OuterRef("pk")).order_by()
    return Exists(after), Exists(after.filter(kind=Change.RESTORED, evidence__undone=name))


def _not_whole(since: int, deleted: int) -> str:
    parts = [f"{count:,} {what}" for count, what in ((since, "changed"), (deleted, "deleted")) if count]
    return f"The merge stays: of its memories {' and '.join(parts)} since, and a merge goes back whole or not at all."


def _state_in(states: dict[int, dict[str, Any]]) -> Callable[[Memory], dict[str, Any]]:
    return lambda row: states[row.pk]


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
