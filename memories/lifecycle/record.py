"""How a change is written: the row and its history, together or not at all. Below every verb.

Knows no policy: what the new values are is the caller's.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, models
from django.utils import timezone

from memories.errors import MemoryNotFound
from memories.models import Memory, MemoryChange

REASON_LENGTH = 500


class Why(NamedTuple):
    """Who changed something, when (aware UTC), why, and on what evidence."""

    by: str
    at: datetime
    reason: str = ""
    evidence: dict[str, Any] | None = None
    session_id: int | None = None
    candidate_key: str | None = None


def moment(at: datetime | None) -> datetime:
    """`at`, or now. Raises ValueError for a time without a zone."""
    if at is None:
        return timezone.now()
    if timezone.is_naive(at):
        raise ValueError("at needs a time zone.")
    return at.astimezone(UTC)


def plain(value: Any) -> Any:
    """A field's value as it goes into a change row's JSON; times in ISO 8601, UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, UUID):
        return str(value)
    return value


def whole_row(memory: Memory) -> dict[str, Any]:
    """Every column of a memory, as it goes into a change row's JSON."""
    return {field.attname: plain(getattr(memory, field.attname)) for field in Memory._meta.concrete_fields}


def locked(memory: Memory | int) -> Memory:
    """The row as it is now, held for this transaction. Raises MemoryNotFound."""
    pk = memory if isinstance(memory, int) else memory.pk
    row = Memory.objects.select_for_update(of=("self",)).filter(pk=pk).first()
    if row is None:
        raise MemoryNotFound(f"There is no memory {pk}.", "`manage.py memory list` shows what there is.")
    return row


def difference(row: Memory, new: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(before, after) of the columns in `new` that differ from the row; both empty when none does."""
    moved = {name: value for name, value in new.items() if getattr(row, name) != value}
    return {name: plain(getattr(row, name)) for name in moved}, {name: plain(value) for name, value in moved.items()}


def change_of(row: Memory, kind: str, before: dict[str, Any], after: dict[str, Any], why: Why) -> MemoryChange:
    """A change row, not saved yet."""
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


def added(row: models.Model) -> None:
    """Insert a new row, as `save(force_insert=True)` does but past the ORM: a session pays for it with each word.

    For models without parents; the row has its id then. Raises what the database says.
    """
    sql, columns = _insertion(type(row), connection.vendor)
    with connection.cursor() as cursor:
        cursor.execute(sql, [field.get_db_prep_save(field.pre_save(row, True), connection) for field in columns])
        row.pk = cursor.lastrowid if connection.vendor == "sqlite" else cursor.fetchone()[0]
    row._state.adding, row._state.db = False, connection.alias


@cache
def _insertion(model: type[models.Model], vendor: str) -> tuple[str, tuple[models.Field[Any, Any], ...]]:
    """The statement that inserts a row of `model`, and the fields that it takes."""
    columns = tuple(field for field in model._meta.local_concrete_fields if not (field.primary_key or field.generated))
    quoted = ", ".join(connection.ops.quote_name(str(field.column)) for field in columns)
    marks = ", ".join(["%s"] * len(columns))
    back = "" if vendor == "sqlite" else " RETURNING id"
    return f"INSERT INTO {model._meta.db_table} ({quoted}) VALUES ({marks}){back}", columns  # noqa: S608


def apply(
    row: Memory, kind: str, new: dict[str, Any], why: Why, *, handed: Memory | int | None = None, always: bool = False
) -> MemoryChange | None:
    """Write `new` (columns by attname) to the locked row, with its change row.

    Nothing is written and None returned when nothing differs, unless `always`: some things are worth a row
    though they move nothing (a confirmation at full confidence). A model instance that was handed in is
    brought up to date.
    """
    before, after = difference(row, new)
    if not after and not always:
        return None
    moved = {name: new[name] for name in after}
    if moved:
        Memory.objects.filter(pk=row.pk).update(**moved)
        for name, value in moved.items():
            setattr(row, name, value)
    if isinstance(handed, Memory):
        for field in Memory._meta.concrete_fields:
            setattr(handed, field.attname, getattr(row, field.attname))
    change = change_of(row, kind, before, after, why)
    added(change)
    return change
