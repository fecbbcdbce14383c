"""Search the text columns of every model, found by introspection, and mask them in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models import Field, Model
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

TEXTS = (models.CharField, models.TextField, models.JSONField, PickledObjectField)


def text_columns() -> Iterator[tuple[type[Model], list[Field[Any, Any]]]]:
    """Yield each stored model with its columns of text, JSON and pickled values, but no column with fixed choices."""
    for model in apps.get_models():
        label = model._meta.label
        if model._meta.app_label in NOT_OURS or label in SIGNED or label in DERIVED or model._meta.proxy:
            continue
        found = [field for field in model._meta.concrete_fields if isinstance(field, TEXTS) and not field.choices]
        if found:
            yield model, found


def can_be_masked(model: type[Model], field: Field[Any, Any]) -> bool:
    """Whether the column holds text from outside. Names, keys and paths are not changed: rows are found by them."""
    other = isinstance(field, PickledObjectField) or model._meta.label == "admin.LogEntry"
    return isinstance(field, Masked) or (model, field.name) in WRITTEN_MASKED or other


def scan(*, masking: bool) -> Iterator[tuple[str, Counter[str], bool]]:
    """Yield (table.column, kinds, whether they are left) for each batch of rows with a credential."""
    for model, fields in text_columns():
        start = None
        while True:
            rows = model._base_manager.order_by("pk")
            rows = rows if start is None else rows.filter(pk__gt=start)
            batch = list(rows.values_list("pk", *(field.attname for field in fields))[:BATCH])
            if not batch:
                break
            start = batch[-1][0]
            yield from _batch(model, fields, batch, masking=masking)


def _batch(
    model: type[Model], fields: Sequence[Field[Any, Any]], batch: Sequence[tuple[Any, ...]], *, masking: bool
) -> Iterator[tuple[str, Counter[str], bool]]:
    hits: dict[Any, None] = {}
    for pk, *values in batch:
        for field, value in zip(fields, values, strict=True):
            kinds = masked(value)[1]
            if not kinds:
                continue
            rewrite = masking and can_be_masked(model, field)
            if rewrite:
                hits[pk] = None
            yield f"{model._meta.db_table}.{field.column}", kinds, not rewrite
    if hits:
        _rewrite(model, [field for field in fields if can_be_masked(model, field)], list(hits))


def _rewrite(model: type[Model], fields: Sequence[Field[Any, Any]], pks: Sequence[Any]) -> None:
    """Mask the rows as they are now: locked, so that no change in between is lost."""
    with writing():
        rows = model._base_manager.select_for_update(of=("self",)).filter(pk__in=pks)
        for pk, *values in rows.values_list("pk", *(field.attname for field in fields)):
            new = {}
            for field, value in zip(fields, values, strict=True):
                text, kinds = masked(value)
                if kinds:
                    length = getattr(field, "max_length", None)
                    new[field.attname] = text[:length] if isinstance(text, str) else text
            if new:
                model._base_manager.filter(pk=pk).update(**new)


def masked(value: Any) -> tuple[Any, Counter[str]]:
    """Mask a column's value; return it, and how many credentials of each kind it held."""
    if isinstance(value, str):
        text, kinds = mask_counted(value)
        return text, Counter(kinds if text != value else {})
    if not isinstance(value, list | tuple | dict):
        return value, Counter()
    found = mask_value(value)
    if found == value:
        return value, Counter()
    # What stands under the name of a secret is masked as a whole and has no kind of its own.
    kinds = sum((Counter(mask_counted(text)[1]) for text in _texts(value)), Counter())
    return found, kinds or Counter({"named value": 1})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from (*_texts(key), *_texts(one))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
