"""Taking back what one person did to many memories in one action: as changes of their own, so that no history is lost.

An action is known by any of its change rows: all of them have its kind, its actor and its moment. What somebody
changed since stays as it is; a merge goes back whole or not at all. Knows no page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from memories.errors import Conflict, InvalidMemory, MemoryNotFound
from memories.lifecycle.batch import BATCH, FIELDS, change_all
from memories.lifecycle.lock import writing
from memories.lifecycle.record import Why, moment
from memories.models import Change, Memory, MemoryChange

UNDOABLE = frozenset(
    (Change.DEACTIVATED, Change.REACTIVATED, Change.CONFIDENCE_SET, Change.PERSISTENT_SET, Change.MERGED)
)
"""The kinds of change that bulk actions make and that leave a memory to go back to."""

LINK = "superseded_by_id"


@dataclass(frozen=True, slots=True)
class Undone:
    """What became of the memories of the action; each is counted once.

    `back` are as they were before; `already` were brought back by an earlier undo; `changed_since` and `deleted_since`
    are left alone.
    """

    back: int
    already: int = 0
    changed_since: int = 0
    deleted_since: int = 0

    @property
    def message(self) -> str:
        if not self.back and self.already:
            told = [f"{_are(self.already)} as {_they(self.already)} before already"]
        else:
            told = [f"{_are(self.back)} as {_they(self.back)} before"]
        for count, what in ((self.changed_since, "changed"), (self.deleted_since, "deleted")):
            if count:
                told.append(f"{count:,} {'was' if count == 1 else 'were'} {what} since and left alone")
        return "; ".join(told) + "."


def _are(count: int) -> str:
    return "1 memory is" if count == 1 else f"{count:,} memories are"


def _they(count: int) -> str:
    return "it was" if count == 1 else "they were"


def undo(change: MemoryChange | int, *, by: str, at: datetime | None = None, reason: str = "") -> Undone:
    """Give the memories of the action that `change` belongs to the state they had just before it.

    A second time changes nothing. Raises MemoryNotFound for a change that there is not, InvalidMemory for one of a
    kind that cannot be taken back, and Conflict for a merge of which any memory was changed or deleted since.
    """
    wanted = change if isinstance(change, int) else change.pk
    with writing():
        first = MemoryChange.objects.filter(pk=wanted).first()
        if first is None:
            raise MemoryNotFound(f"There is no change {wanted}.")
        if first.kind not in UNDOABLE:
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
        told = reason or f"Back to before it was {first.get_kind_display()}, with the others of that action."
        why = Why(by, moment(at), told, {"undone": name})
        back = 0
        for states in _states(rows.filter(~later)):
            back += sum(change_all(Memory.objects.filter(pk__in=states), Change.RESTORED, why, _of(states)))
    return Undone(back, already, since, deleted)


def action_of(change: MemoryChange) -> QuerySet[MemoryChange]:
    """The change rows of the action that `change` belongs to."""
    return MemoryChange.objects.filter(at=change.at, actor=change.actor, kind=change.kind)


def _after(name: int) -> tuple[Exists, Exists]:
    """Of a change row: its memory changed again; an undo of the action (`name`: its first id) is among that."""
    after = MemoryChange.objects.filter(memory=OuterRef("memory"), pk__gt=OuterRef("pk")).order_by()
    return Exists(after), Exists(after.filter(kind=Change.RESTORED, evidence__undone=name))


def _not_whole(since: int, deleted: int) -> str:
    parts = [f"{count:,} {what}" for count, what in ((since, "changed"), (deleted, "deleted")) if count]
    return f"The merge stays: of its memories {' and '.join(parts)} since, and a merge goes back whole or not at all."


def _of(states: dict[int, dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    return lambda row: states[row.id]


def _states(rows: QuerySet[MemoryChange]) -> Iterator[dict[int, dict[str, Any]]]:
    """For each memory of `rows` its columns as they were before, in batches."""
    found = list(rows.values_list("pk", flat=True))  # first of all: what is undone moves the rows out of the queryset
    for start in range(0, len(found), BATCH):
        batch = MemoryChange.objects.filter(pk__in=found[start : start + BATCH])
        states = {
            pk: {name: FIELDS[name].to_python(value) for name, value in before.items() if name in FIELDS}
            for pk, before in batch.values_list("memory", "before")
        }
        pointed = {state[LINK] for state in states.values() if state.get(LINK)}
        there = set(Memory.objects.filter(pk__in=pointed).values_list("pk", flat=True)) if pointed else set()
        for state in states.values():
            if state.get(LINK) and state[LINK] not in there:
                state[LINK] = None  # what it pointed to is gone
        yield states
