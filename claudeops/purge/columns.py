"""Search the text columns of every model for texts, and put a mark in their places, in batches with a cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from django.db.models import CharField, Field, JSONField, Model, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django_q.models import OrmQ, PickledObjectField, Task

from claudeops.purge.texts import Needles
from claudeops.secret_scan.columns import can_be_masked, text_columns
from memories.lifecycle.lock import writing
from memories.models import RecallMark
from sessions_app.models import HookReceipt, InjectionReceipt, Purge, PurgeStep, Session

BATCH = 200
MARKED = "purged"
"""What stands in place of the SHA-256 of a text that is no longer what it was."""
HASHES: dict[tuple[type[Model], str], str] = {
    (InjectionReceipt, "text"): "sha256",
    (HookReceipt, "text"): "sha256",
    (Session, "prompt"): "prompt_sha256",
}
ONLY_TEXT = (RecallMark, Task)
"""Rows that are about a text alone: one with it is deleted. A finished task's arguments and result may hold any."""
OURS = (Purge, PurgeStep)

Cursor = dict[str, Any]


def tables() -> list[tuple[type[Model], list[Field[Any, Any]]]]:
    """Return the models with text, in a fixed order, with their columns of text."""
    found = [(model, fields) for model, fields in text_columns() if model not in OURS]
    return sorted(found, key=lambda pair: pair[0]._meta.label)


def scrub(
    needles: Needles,
    *,
    write: bool,
    note: Callable[[Cursor, Counter[str]], None],
    cursor: Cursor | None = None,
    without: Sequence[QuerySet[Any]] = (),
) -> None:
    """Go through all columns from `cursor` on, but for the rows of `without`; with `write` put marks.

    `note(cursor, counts)` is called after each batch with finds, in the transaction that writes it; `counts` says how
    many texts were found by "table.column". What stands in a column of names or keys is counted as "kept table.column".
    """
    start = cursor or {}
    for model, fields in tables():
        label = model._meta.label
        if label < start.get("table", ""):
            continue
        after = start.get("pk") if label == start.get("table") else None
        rows = _possible(needles, model, fields)
        for one in without:
            if one.model is model:
                rows = rows.exclude(pk__in=one.order_by().values("pk"))
        _table(needles, model, fields, rows, after, write, note)
        note({"table": label, "pk": None, "done": True}, Counter())
    _queue(needles, write, note)


def _table(
    needles: Needles,
    model: type[Model],
    fields: Sequence[Field[Any, Any]],
    rows: QuerySet[Any],
    after: Any,
    write: bool,
    note: Callable[[Cursor, Counter[str]], None],
) -> None:
    names = [field.attname for field in fields]
    label = model._meta.label
    while True:
        found = rows if after is None else rows.filter(pk__gt=after)
        batch = list(found.values_list("pk", *names)[:BATCH])
        if not batch:
            return
        after = batch[-1][0]
        hits = [
            pk
            for pk, *values in batch
            if any(_removed(needles, field, value)[1] for field, value in zip(fields, values, strict=True))
        ]
        if not hits:
            continue
        cursor = {"table": label, "pk": after if isinstance(after, int) else str(after)}
        if not write:
            note(cursor, _counted(needles, model, fields, model._base_manager.filter(pk__in=hits)))
            continue
        with writing():
            note(cursor, _rewritten(needles, model, fields, hits))


def _possible(needles: Needles, model: type[Model], fields: Sequence[Field[Any, Any]]) -> QuerySet[Any]:
    """Return the rows that may hold a text: the database looks for its words, where it has some."""
    rows = model._base_manager.order_by("pk")
    wanted = needles.searched_by_words
    if wanted is None or any(isinstance(field, PickledObjectField) for field in fields):
        return rows
    texts = {}
    for field in fields:
        if isinstance(field, JSONField):
            texts[f"{field.attname}_text"] = Cast(field.attname, TextField())
    names = [f"{f.attname}_text" if isinstance(f, JSONField) else f.attname for f in fields]
    conditions = [
        reduce(and_, (Q(**{f"{name}__icontains": word}) for word in words)) for name in names for words in wanted
    ]
    return rows.alias(**texts).filter(reduce(or_, conditions))


def _counted(
    needles: Needles, model: type[Model], fields: Sequence[Field[Any, Any]], rows: QuerySet[Any]
) -> Counter[str]:
    counts: Counter[str] = Counter()
    for values in rows.values_list(*(field.attname for field in fields)):
        for field, value in zip(fields, values, strict=True):
            number = _removed(needles, field, value)[1]
            kept = "" if model in ONLY_TEXT or can_be_masked(model, field) else "kept "
            counts[f"{kept}{model._meta.db_table}.{field.column}"] += number
    return +counts


def _removed(needles: Needles, field: Field[Any, Any], value: Any) -> tuple[Any, int]:
    value = plain(value) if isinstance(field, PickledObjectField) else value
    return needles.removed(value, cut_at=field.max_length if isinstance(field, CharField) else None)


def _rewritten(
    needles: Needles, model: type[Model], fields: Sequence[Field[Any, Any]], pks: Sequence[Any]
) -> Counter[str]:
    """Put marks into rows as they are now: locked, so that no change in between is lost."""
    rows = model._base_manager.select_for_update(of=("self",)).filter(pk__in=pks)
    counts = _counted(needles, model, fields, rows)
    if model in ONLY_TEXT:
        model._base_manager.filter(pk__in=pks).delete()
        return counts
    for pk, *values in list(rows.values_list("pk", *(field.attname for field in fields))):
        new: dict[str, Any] = {}
        for field, value in zip(fields, values, strict=True):
            text, number = _removed(needles, field, value)
            if not number or not can_be_masked(model, field):
                continue
            new[field.attname] = text[: field.max_length] if isinstance(text, str) else text
            if digest := HASHES.get((model, field.attname)):
                new[digest] = MARKED
        if new:
            model._base_manager.filter(pk=pk).update(**new)
    return counts


def _queue(needles: Needles, write: bool, note: Callable[[Cursor, Counter[str]], None]) -> None:
    """Take out of the queue what waits with a text: the arguments of a task are signed, so none can be changed."""
    found = [row.pk for row in OrmQ.objects.all() if needles.are_in(plain(row.task))]
    if found:
        with writing():
            if write:
                OrmQ.objects.filter(pk__in=found).delete()
            note({"table": "~queue", "pk": None}, Counter({"django_q_ormq.payload": len(found)}))


def plain(value: Any) -> Any:
    """Return a pickled value as plain data; an object as its text."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def held(needles: Needles, without: Sequence[QuerySet[Any]] = ()) -> Counter[str]:
    """Count what the columns hold now, by "table.column", without some rows."""
    counts: Counter[str] = Counter()
    scrub(needles, write=False, note=lambda _, found: counts.update(found), without=without)
    return counts
