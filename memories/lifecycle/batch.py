"""Changing many memories in one transaction: read narrow, decide in Python, write set by set.

On SQLite a transaction is the only writer while it lasts, so what is done to each of 100,000 rows is little:
no model instance is made, and history rows go in with executemany. Knows no policy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from django.db import connection, models
from django.db.models import QuerySet

from memories.lifecycle.lock import writing
from memories.lifecycle.record import REASON_LENGTH, Why, difference, plain
from memories.models import Change, Memory, MemoryChange

BATCH = 1000
"""Rows in memory at once; also far below what either database takes as parameters of one statement."""

FEW = 10
"""Rows that get the same values, below which a statement of their own costs more than it saves."""

STATE = (
    "id",
    "uuid",
    "taxonomy",
    "confidence",
    "active",
    "inactive_reason",
    "persistent",
    "updated_at",
    "decayed_until",
    "expires_at",
    "superseded_by_id",
    "merged_count",
    "observation",
)
"""What the verbs look at or change."""

FIELDS = {field.attname: field for field in Memory._meta.concrete_fields}
WHOLE = tuple(FIELDS)


def batches(queryset: QuerySet[Memory], columns: Sequence[str]) -> Iterator[list[Any]]:
    """`columns` of the memories of `queryset`, as named tuples, locked, in batches by id.

    The ids are taken first: what is done may change what the queryset filters by.
    """
    ids = sorted(queryset.order_by().values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        rows = Memory.objects.select_for_update(of=("self",)).filter(pk__in=ids[start : start + BATCH])
        yield list(rows.order_by("pk").values_list(*columns, named=True))


def change_all(
    queryset: QuerySet[Memory], kind: str, why: Why, new_of: Callable[[Any], dict[str, Any]]
) -> tuple[int, int]:
    """Give every memory the columns `new_of` names for it, with its change row. Returns (changed, unchanged).

    `new_of` gets an object with the columns of STATE.
    """
    changed = unchanged = 0
    with writing():
        for rows in batches(queryset, STATE):
            told: list[tuple[int | None, Any, dict[str, Any], dict[str, Any]]] = []
            groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
            for row in rows:
                new = new_of(row)
                before, after = difference(row, new)
                if after:
                    told.append((row.id, row.uuid, before, after))
                    groups.setdefault(tuple((name, new[name]) for name in sorted(after)), []).append(row.id)
            _write(groups)
            tell_all(told, kind, why)
            changed += len(told)
            unchanged += len(rows) - len(told)
    return changed, unchanged


def _write(groups: dict[tuple[tuple[str, Any], ...], list[int]]) -> None:
    """One UPDATE for the many rows that get the same values; those that each get their own go in with executemany."""
    own: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for values, ids in groups.items():
        if len(ids) >= FEW:
            Memory.objects.filter(pk__in=ids).update(**dict(values))
            continue
        fields = [FIELDS[name] for name, _ in values]
        stored = [field.get_db_prep_save(value, connection) for field, (_, value) in zip(fields, values, strict=True)]
        columns = tuple(str(field.column) for field in fields)
        own.setdefault(columns, []).extend((*stored, pk) for pk in ids)
    with connection.cursor() as cursor:
        for columns, rows in own.items():
            moved = ", ".join(f'"{column}" = %s' for column in columns)
            cursor.executemany(f'UPDATE memories SET {moved} WHERE "id" = %s', rows)  # noqa: S608  (columns of the model)


def delete_all(queryset: QuerySet[Memory], why: Why) -> int:
    """Remove memories; the last row of each one's history holds it whole. Returns how many."""
    count = 0
    with writing():
        for rows in batches(queryset, WHOLE):
            whole = ({name: plain(value) for name, value in zip(WHOLE, row, strict=True)} for row in rows)
            tell_all(
                ((None, row.uuid, before, {}) for row, before in zip(rows, whole, strict=True)), Change.DELETED, why
            )
            _remove([row.id for row in rows])
            count += len(rows)
    return count


def tell_all(entries: Iterable[tuple[int | None, Any, dict[str, Any], dict[str, Any]]], kind: str, why: Why) -> None:
    """Write change rows: (memory id or None, its UUID, before, after) each."""
    as_json = "%s::jsonb" if connection.vendor == "postgresql" else "%s"
    uuid = MemoryChange._meta.get_field("memory_uuid")
    at = connection.ops.adapt_datetimefield_value(why.at)
    evidence = json.dumps(why.evidence or {}, ensure_ascii=False)
    reason, actor = why.reason[:REASON_LENGTH], why.by[:150]
    rows = [
        (
            memory_id,
            uuid.get_db_prep_value(memory_uuid, connection),
            kind,
            at,
            json.dumps(before, ensure_ascii=False),
            json.dumps(after, ensure_ascii=False),
            reason,
            evidence,
            actor,
            why.session_id,
        )
        for memory_id, memory_uuid, before, after in entries
    ]
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO memory_changes "  # noqa: S608  (the driver's own cast)
            "(memory_id, memory_uuid, kind, at, before, after, reason, evidence, actor, session_id) "
            f"VALUES (%s, %s, %s, %s, {as_json}, {as_json}, %s, {as_json}, %s, %s)",
            rows,
        )


def _remove(ids: list[int]) -> None:
    """Delete rows and let go of what points to them, as their foreign keys say.

    Django's own delete() loads what it deletes and works in hundreds; this is what it comes to.
    """
    for relation in Memory._meta.related_objects:
        pointing = relation.related_model._base_manager.filter(**{f"{relation.field.name}__in": ids})
        if relation.on_delete is models.SET_NULL:
            pointing.update(**{relation.field.name: None})
        else:
            pointing.delete()
    rows = Memory.objects.filter(pk__in=ids)
    rows._raw_delete(rows.db)
