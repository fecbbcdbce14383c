"""Change or delete many memories in one transaction, in batches, with a change row each. Knows no policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db import connection
from django.db.models import SET_NULL, ManyToOneRel, QuerySet

from memories.lifecycle import vouched
from memories.lifecycle.gate_decisions import label_changes
from memories.lifecycle.lock import writing
from memories.lifecycle.write import Why, change_of, difference, whole_row
from memories.models import Change, Memory, MemoryChange

FIELDS = {field.attname: field for field in Memory._meta.concrete_fields}

BATCH = 500
"""Rows in memory at once; both databases take more parameters than that in one statement."""


def batches(queryset: QuerySet[Memory]) -> Iterator[list[Memory]]:
    """Yield locked memories by id, in batches; ids are read first, since callers change what `queryset` filters by."""
    ids = sorted(queryset.order_by().values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        rows = Memory.objects.select_for_update(of=("self",)).filter(pk__in=ids[start : start + BATCH])
        yield list(rows.order_by("pk"))


def write_all(changes: Iterable[tuple[Memory, str, dict[str, Any], Why]]) -> int:
    """Write (locked row, kind, new columns, why) for each memory that differs; return how many.

    The UPDATE bypasses the ORM: `bulk_update()` and one `update()` a row take several times as long.
    """
    history: list[MemoryChange] = []
    updates: dict[tuple[str, ...], list[list[Any]]] = defaultdict(list)
    for row, kind, new, why in changes:
        before, after = difference(row, new)
        if after:
            history.append(change_of(row, kind, before, after, why))
            values = [FIELDS[name].get_db_prep_save(new[name], connection) for name in after]
            updates[tuple(after)].append([*values, row.pk])
    with connection.cursor() as cursor:
        for names, rows in updates.items():
            columns = ", ".join(f"{FIELDS[name].column} = %s" for name in names)
            cursor.executemany(f"UPDATE memories SET {columns} WHERE id = %s", rows)  # noqa: S608  (model columns)
    MemoryChange.objects.bulk_create(history)
    label_changes(history)
    vouched.follow(history)
    return len(history)


def change_all(
    queryset: QuerySet[Memory], kind: str, why: Why, columns_of: Callable[[Memory], dict[str, Any]]
) -> tuple[int, int]:
    """Give each memory the columns that `columns_of` returns. Returns (changed, unchanged)."""
    changed = count = 0
    with writing():
        for rows in batches(queryset):
            changed += write_all((row, kind, columns_of(row), why) for row in rows)
            count += len(rows)
    return changed, count - changed


def delete_all(queryset: QuerySet[Memory], why: Why) -> int:
    """Delete memories and return how many; the last row of each one's history holds it whole."""
    count = 0
    with writing():
        for rows in batches(queryset):
            history = [change_of(row, Change.DELETED, whole_row(row), {}, why) for row in rows]
            label_changes(history)
            vouched.follow(history)
            for change in history:
                change.memory_id = None
            MemoryChange.objects.bulk_create(history)
            delete_rows([row.pk for row in rows])
            count += len(rows)
    return count


def delete_rows(ids: list[int]) -> None:
    """Delete memories by one statement a table; Django's delete() reads what it deletes, 100 rows at a time."""
    for relation in Memory._meta.get_fields(include_hidden=True):  # also those without a name on this side ("+")
        if not isinstance(relation, ManyToOneRel):
            continue
        pointing = relation.related_model._base_manager.filter(**{f"{relation.field.name}__in": ids})
        if relation.on_delete is SET_NULL:
            pointing.update(**{relation.field.name: None})
        else:
            pointing.delete()
    rows = Memory.objects.filter(pk__in=ids)
    rows._raw_delete(rows.db)
