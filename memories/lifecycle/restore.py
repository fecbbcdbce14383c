"""Back to an earlier state of a memory: as a change of its own, so that nothing of the history is lost.

Reads the change rows backwards; knows no page.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from memories.capture.fields import checked_category
from memories.errors import InvalidMemory, MemoryNotFound
from memories.lifecycle.lock import writing
from memories.lifecycle.record import Why, apply, difference, locked, moment
from memories.lifecycle.verbs import check_unchanged, confirmed, policy
from memories.models import Change, Inactive, Memory, MemoryChange, Project

IDENTITY = ("id", "uuid")

STAYS = {"updated_at", "decayed_until", "merged_count", "recall_count", "last_recalled_at", "stale_at"}
"""What a roll back leaves: when it was confirmed (it is now), and what is counted of others and of its use."""


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


def roll_back(
    memory: Memory | int,
    change: MemoryChange | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    expected_change: int | None = None,
) -> MemoryChange | None:
    """Give `memory` the state it had just after `change`, one of its own changes; it counts as confirmed now.

    None when it is in that state. `expected_change` is the id of the latest change the person saw: raises Conflict
    when another one came since. Raises InvalidMemory, with the reason, for a state that cannot be had again, and
    MemoryNotFound for a memory that is gone or a change that is not its own.
    """
    wanted = change if isinstance(change, int) else change.pk
    when = moment(at)
    with writing():
        row = locked(memory)
        if expected_change is not None:
            check_unchanged(row, expected_change)
        then, state = state_after(row, wanted)
        check_restorable(row, state)
        new = {name: value for name, value in _with_live_links(state).items() if name not in STAYS}
        if not difference(row, new)[1]:
            return None
        expires_at = new.get("expires_at", row.expires_at)
        if new.get("active", row.active) and expires_at is not None and expires_at <= when:
            new["expires_at"] = None  # or the next sweep would end it again, as in `reactivate`
        told = reason or f"Back to how it was after it was {then.get_kind_display()}."
        why = Why(by, when, told, {"to_change": wanted})
        return apply(row, Change.RESTORED, new | confirmed(row, when), why, handed=memory)


def state_after(row: Memory, wanted: int) -> tuple[MemoryChange, dict[str, Any]]:
    """The change of this id, and the columns that changed since, as they were just after it; links as they were.

    Raises MemoryNotFound for a change that is not the memory's own.
    """
    then = MemoryChange.objects.filter(memory=row, pk=wanted).first()
    if then is None:
        raise MemoryNotFound(f"Memory {row.pk} has no change {wanted}.")
    later = MemoryChange.objects.filter(memory=row, pk__gt=wanted).order_by("-pk")
    return then, _columns(later.values_list("before", flat=True))


def check_restorable(row: Memory, state: dict[str, Any]) -> None:
    """Raises InvalidMemory, saying why, when the memory cannot have these columns again."""
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


def state_before(changes: list[MemoryChange]) -> dict[str, Any]:
    """The columns that `changes` (the latest first) moved, as they were before all of them; lost links are None."""
    return _with_live_links(_columns(change.before for change in changes))


def _with_live_links(state: dict[str, Any]) -> dict[str, Any]:
    fields = {field.attname: field for field in Memory._meta.concrete_fields}
    kept = dict(state)
    for name, value in state.items():
        target = fields[name].remote_field
        if target and value is not None and not target.model._default_manager.filter(pk=value).exists():
            kept[name] = None  # what it pointed to is gone
    return kept


def _columns(befores: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What changes (the latest first) say was before all of them, as the model has it."""
    found: dict[str, Any] = {}
    for before in befores:
        found.update(before)
    fields = {field.attname: field for field in Memory._meta.concrete_fields}
    return {
        name: fields[name].to_python(value) for name, value in found.items() if name in fields and name not in IDENTITY
    }
