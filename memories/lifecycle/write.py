"""Write one change of one memory, the row with its history. Callers decide the values and open the transaction."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from claudeops.lib.insert import insert
from memories.capture.statement import Provenance
from memories.errors import Conflict, MemoryNotFound
from memories.lifecycle import vouched
from memories.lifecycle.gate_decisions import label_changes
from memories.models import Memory, MemoryChange

REASON_LENGTH = 500


class Why(NamedTuple):
    """Who changed something, when (aware UTC), why, and on what evidence. `provenance` is that of a new text."""

    by: str
    at: datetime
    reason: str = ""
    evidence: dict[str, Any] | None = None
    session_id: int | None = None
    candidate_key: str | None = None
    provenance: Provenance | None = None


def json_value(value: Any) -> Any:
    """Convert a column's value to JSON; times in ISO 8601, UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, UUID):
        return str(value)
    return value


def whole_row(memory: Memory) -> dict[str, Any]:
    return {field.attname: json_value(getattr(memory, field.attname)) for field in Memory._meta.concrete_fields}


def locked(memory: Memory | int) -> Memory:
    """Return the current row, locked until the transaction ends. Raises MemoryNotFound."""
    pk = memory if isinstance(memory, int) else memory.pk
    row = Memory.objects.select_for_update(of=("self",)).filter(pk=pk).first()
    if row is None:
        raise MemoryNotFound(f"There is no memory {pk}.", "`manage.py memory list` shows what there is.")
    return row


def check_unchanged(row: Memory, expected: int) -> None:
    """Raise Conflict unless the latest change of the locked `row` is `expected` (0: it has none)."""
    latest = MemoryChange.objects.filter(memory=row).order_by("-pk").first()
    if (latest.pk if latest else 0) != expected:
        raise Conflict(
            f"Memory {row.pk} was changed meanwhile.",
            "Look at what it says now, then save again.",
            current=row,
            change=latest,
        )


def difference(row: Memory, new: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(before, after) of the columns in `new` that differ from the row; both empty when none does."""
    changed = {name: value for name, value in new.items() if getattr(row, name) != value}
    before = {name: json_value(getattr(row, name)) for name in changed}
    return before, {name: json_value(value) for name, value in changed.items()}


def change_of(row: Memory, kind: str, before: dict[str, Any], after: dict[str, Any], why: Why) -> MemoryChange:
    return MemoryChange(
        memory_id=row.pk,
        memory_uuid=row.uuid,
        kind=kind,
        at=why.at,
        before=before,
        after=after,
        reason=why.reason[:REASON_LENGTH],
        evidence=why.evidence or {},
        actor=why.by[:150],
        session_id=why.session_id,
        candidate_key=why.candidate_key,
    )


def apply(
    row: Memory, kind: str, new: dict[str, Any], why: Why, *, caller: Memory | int | None = None, always: bool = False
) -> MemoryChange | None:
    """Write `new` (columns by attname) to the locked `row`, with its change row; None when nothing differs.

    `always` writes the change row anyway: a confirmation at full confidence changes no column. `caller` is what the
    caller was given: a model instance is refreshed.
    """
    before, after = difference(row, new)
    if not after and not always:
        return None
    for name in after:
        setattr(row, name, new[name])
    if after:
        Memory.objects.filter(pk=row.pk).update(**{name: new[name] for name in after})
    if isinstance(caller, Memory):
        for field in Memory._meta.concrete_fields:
            setattr(caller, field.attname, getattr(row, field.attname))
    change = change_of(row, kind, before, after, why)
    insert(change)
    label_changes([change])
    vouched.follow([change])
    return change
