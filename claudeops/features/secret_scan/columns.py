"""Go through the text columns of every model, found by introspection, and change what they hold, in batches.

A scan masks credentials by it, a purge puts marks in the place of texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, TypeAlias

from django.apps import apps
from django.db import DatabaseError, connection, models
from django.db.models import Field, Model, QuerySet
from django_q.models import PickledObjectField

from claudeops.lib.masked import Masked
from claudeops.lib.secrets import mask_counted, mask_value
from memories.lifecycle.lock import writing
from sessions_app.models import LogEntry, Session

BATCH = 200
NOT_OURS = frozenset({"auth", "axes", "contenttypes", "sessions"})
"""Apps whose columns hold password hashes, failed sign-ins, signed data and names that Django makes."""
SIGNED = frozenset({"django_q.OrmQ", "django_q.Schedule"})
"""Queued tasks: signed, or a call with ids."""
DERIVED = frozenset({"memories.MemoryTerms"})
"""Made again from the texts that are masked."""
WRITTEN_MASKED = frozenset({(LogEntry, "text"), (Session, "ingest_state")})
"""Written by the ingester alone, which masks what it reads; masking each batch once more would take its time."""
BUSY = "The old values are still in free pages of the database ({error}). Stop the workers, then run this again."

TEXTS = (models.CharField, models.TextField, models.JSONField, PickledObjectField)


def text_columns() -> Iterator[tuple[type[Model], list[Field[Any, Any]]]]:
    """Yield each stored model with its columns of text, JSON and pickled values, but no column with fixed choices."""
    for model in apps.get_models():
        label = model._meta.label
        if model._meta.app_label in NOT_OURS or label in SIGNED or label in DERIVED or model._meta.proxy:
            continue
        fields = [field for field in model._meta.concrete_fields if isinstance(field, TEXTS) and not field.choices]
        if fields:
            yield model, fields


def can_be_masked(model: type[Model], field: Field[Any, Any]) -> bool:
    """Whether the column holds text from outside. Names, keys and paths are not changed: rows are found by them."""
    other = isinstance(field, PickledObjectField) or model._meta.label == "admin.LogEntry"
    return isinstance(field, Masked) or (model, field.name) in WRITTEN_MASKED or other


AnyField: TypeAlias = "Field[Any, Any]"
Change = Callable[["Field[Any, Any]", Any], tuple[Any, Counter[str]]]
"""Returns the new value for one of a column, and what was found in it, by kind."""


def put(model: type[Model], pk: Any, new: dict[str, Any]) -> None:
    if new:
        model._base_manager.filter(pk=pk).update(**new)


def change_columns(
    change: Change,
    note: Callable[[type[Model], Counter[tuple[AnyField, str]]], None],
    *,
    write: bool,
    rows_of: Callable[[type[Model], list[AnyField]], QuerySet[Any]] | None = None,
    put: Callable[[type[Model], Any, dict[str, Any]], None] = put,
) -> None:
    """Go through all rows with text (of those that `rows_of` returns) by their keys, and with `write` change them.

    `note(model, counts)` is called after each batch with finds, in the transaction that writes it; `counts` is by
    field and kind. `put` gets the new values of a row with finds: of columns that hold text from outside.
    """
    for model, fields in text_columns():
        rows = (rows_of(model, fields) if rows_of else model._base_manager.all()).order_by("pk")
        names = [field.attname for field in fields]
        after = None
        while batch := list((rows if after is None else rows.filter(pk__gt=after)).values_list("pk", *names)[:BATCH]):
            after = batch[-1][0]
            pairs = ((pk, zip(fields, values, strict=True)) for pk, *values in batch)
            hits = [pk for pk, pair in pairs if any(change(field, value)[1] for field, value in pair)]
            if not hits:
                continue
            counts: Counter[tuple[AnyField, str]] = Counter()
            with writing() if write else nullcontext():
                # The rows as they are now: locked, so that no change in between is lost.
                stored = model._base_manager.select_for_update(of=("self",)) if write else model._base_manager
                for pk, *values in list(stored.filter(pk__in=hits).values_list("pk", *names)):
                    new = {}
                    for field, value in zip(fields, values, strict=True):
                        text, kinds = change(field, value)
                        counts.update({(field, kind): number for kind, number in kinds.items()})
                        if kinds and can_be_masked(model, field):
                            new[field.attname] = text[: field.max_length] if isinstance(text, str) else text
                    if write:
                        put(model, pk, new)
                note(model, counts)


def masked(value: Any) -> tuple[Any, Counter[str]]:
    """Mask a column's value; return it, and how many credentials of each kind it held."""
    if isinstance(value, str):
        text, kinds = mask_counted(value)
        return text, Counter(kinds if text != value else {})
    if not isinstance(value, list | tuple | dict):
        return value, Counter()
    new_value = mask_value(value)
    if new_value == value:
        return value, Counter()
    # What stands under the name of a secret is masked as a whole and has no kind of its own.
    kinds = sum((Counter(mask_counted(text)[1]) for text in _texts(value)), Counter())
    return new_value, kinds or Counter({"named value": 1})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from (*_texts(key), *_texts(one))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def remove_leftovers() -> list[str]:
    """Rewrite the full-text indexes and the free pages, which keep what was overwritten or deleted.

    Returns what could not be done, in sentences for people.
    On PostgreSQL free space is released for reuse: the bytes go when it is written again, or by VACUUM FULL.
    """
    try:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("VACUUM")
                return []
            for table in ("memory_terms_fts", "segment_words"):
                cursor.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608  (names of ours)
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            busy = cursor.fetchone()[0]
    except DatabaseError as error:
        return [BUSY.format(error=str(error).partition("\n")[0])]
    return [BUSY.format(error="it is in use")] if busy else []
