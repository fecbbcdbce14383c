"""Search the text columns of every model for texts, and put a mark in their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from django.db.models import CharField, JSONField, Model, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django_q.models import OrmQ, PickledObjectField, Task

from claudeops.features.purge.needles import Needles
from claudeops.features.secret_scan.columns import AnyField, can_be_masked, change_columns, put
from memories.lifecycle.lock import writing
from memories.models import RecallMark
from sessions_app.models import HookReceipt, InjectionReceipt, Purge, Session

MARKED = "purged"
"""What stands in place of the SHA-256 of a text that is no longer what it was."""
HASHES: dict[tuple[type[Model], str], str] = {
    (InjectionReceipt, "text"): "sha256",
    (HookReceipt, "text"): "sha256",
    (Session, "prompt"): "prompt_sha256",
}
ONLY_TEXT = (RecallMark, Task)
"""Rows that are about a text alone: one with it is deleted. A finished task's arguments and result may hold any."""

Note = Callable[[Counter[str]], None]


def scrub(needles: Needles, *, write: bool, note: Note, without: Sequence[QuerySet[Any]] = ()) -> None:
    """Go through all columns, but for the rows of `without`; with `write` put marks.

    `note` is called after each batch with finds, in the transaction that writes it, with how many texts were found by
    "table.column". What stands in a column of names or keys is counted as "kept table.column".
    """

    def rows_of(model: type[Model], fields: list[AnyField]) -> QuerySet[Any]:
        rows = _possible(needles, model, fields)
        for one in without:
            if one.model is model:
                rows = rows.exclude(pk__in=one.order_by().values("pk"))
        return rows

    def change(field: AnyField, value: Any) -> tuple[Any, Counter[str]]:
        value = plain(value) if isinstance(field, PickledObjectField) else value
        text, number = needles.removed(value, cut_at=field.max_length if isinstance(field, CharField) else None)
        return text, Counter(texts=number) if number else Counter()

    def count(model: type[Model], found: Counter[tuple[AnyField, str]]) -> None:
        counts: Counter[str] = Counter()
        for (field, _), number in found.items():
            prefix = "" if model in ONLY_TEXT or can_be_masked(model, field) else "kept "
            counts[f"{prefix}{model._meta.db_table}.{field.column}"] += number
        note(counts)

    if not needles:
        return
    change_columns(change, count, write=write, rows_of=rows_of, put=_mark)
    # The arguments of a task in the queue are signed, so that none can be changed.
    waiting = [row.pk for row in OrmQ.objects.all() if needles.are_in(plain(row.task))]
    if waiting:
        with writing():
            if write:
                OrmQ.objects.filter(pk__in=waiting).delete()
            note(Counter({"django_q_ormq.payload": len(waiting)}))


def _possible(needles: Needles, model: type[Model], fields: list[AnyField]) -> QuerySet[Any]:
    """Return the rows that may hold a text: the database looks for its words, where it has some."""
    rows = model._base_manager.all()
    if model is Purge:
        return rows.none()
    wanted = needles.searched_by_words
    if wanted is None or any(isinstance(field, PickledObjectField) for field in fields):
        return rows
    names = {field: f"{field.attname}_text" if isinstance(field, JSONField) else field.attname for field in fields}
    texts = {name: Cast(field.attname, TextField()) for field, name in names.items() if name != field.attname}
    conditions = [
        reduce(and_, (Q(**{f"{name}__icontains": word}) for word in words))
        for name in names.values()
        for words in wanted
    ]
    return rows.alias(**texts).filter(reduce(or_, conditions))


def _mark(model: type[Model], pk: Any, new: dict[str, Any]) -> None:
    if model in ONLY_TEXT:
        model._base_manager.filter(pk=pk).delete()
        return
    put(model, pk, new | {HASHES[model, name]: MARKED for name in new if (model, name) in HASHES})


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
    scrub(needles, write=False, note=counts.update, without=without)
    return counts
