"""Undo a bulk action by new changes.

All change rows of one action have the same kind, actor and time. Memories that changed since are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from memories.errors import Conflict, InvalidMemory, MemoryNotFound
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.bulk_write import BATCH, change_all
from memories.lifecycle.lock import writing
from memories.lifecycle.write import Why
from memories.models import Change, Memory, MemoryChange, states_before, to_utc

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
