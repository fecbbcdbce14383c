"""Back to an earlier state of a memory: as a change of its own, so that nothing of the history is lost.

Reads the change rows backwards; knows no page.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from memories.errors import InvalidMemory, MemoryNotFound
from memories.lifecycle.lock import writing
from memories.lifecycle.record import Why, apply, locked, moment
from memories.lifecycle.verbs import check_unchanged
from memories.models import Change, Memory, MemoryChange

IDENTITY = ("id", "uuid")


def restore(
    memory: Memory | int,
    change: MemoryChange | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    only_latest: bool = False,
) -> MemoryChange | None:
    """Give `memory` the state it had just before `change`, one of its own changes; what came after goes back too.

    None when it is in that state. With `only_latest` raises Conflict when other changes came after `change`: an
    undo takes back what a person did and nothing else. Raises InvalidMemory for its creation, before which there
    was nothing, and MemoryNotFound for a memory that is gone or a change that is not its own.
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
        first = later[-1]
        told = reason or f"Back to before it was {first.get_kind_display()}."
        why = Why(by, moment(at), told, {"before_change": wanted})
        return apply(row, Change.RESTORED, state_before(later), why, handed=memory)


def state_before(changes: list[MemoryChange]) -> dict[str, Any]:
    """The columns that `changes` (the latest first) moved, as they were before all of them."""
    found: dict[str, Any] = {}
    for change in changes:
        found.update(change.before)
    fields = {field.attname: field for field in Memory._meta.concrete_fields}
    state = {
        name: fields[name].to_python(value) for name, value in found.items() if name in fields and name not in IDENTITY
    }
    for name, value in state.items():
        target = fields[name].remote_field
        if target and value is not None and not target.model._default_manager.filter(pk=value).exists():
            state[name] = None  # what it pointed to is gone
    return state
