"""What the tests of pgvector ask of the database and of a recall."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import numpy as np
import pytest
from django.conf import settings
from django.db import connection, connections

from memories.models import Embedding
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, pgvector, recall

by_itself = pytest.mark.django_db(transaction=True)
"""An index is not made inside a transaction."""
EVERYTHING = Filters(project=ANY_PROJECT, agent=ANY_AGENT)
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def needs_postgresql() -> None:
    """Leave a module out where the suite runs on SQLite. The PostgreSQL that it starts brings the extension."""
    if "postgresql" not in settings.DATABASES["default"]["ENGINE"]:
        pytest.skip("needs a PostgreSQL with pgvector: TEST_DATABASE=postgresql", allow_module_level=True)


def served(model) -> str:
    pgvector.forget()
    return pgvector.served_by(model)


def sql(statement: str, *params):
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall() if cursor.description else None


def assert_in_step() -> None:
    """The copy holds each vector that is not due once, at half precision, and nothing else."""
    due = {pk for (pk,) in sql("SELECT embedding_id FROM embedding_vectors_due")}
    copied = {
        pk: rest for pk, *rest in sql("SELECT embedding_id, model_id, memory_id, vector::text FROM embedding_vectors")
    }
    there = {row.pk: row for row in Embedding.objects.all()}
    assert set(copied) | due == set(there)
    assert not set(copied) & due
    for pk, (model_id, memory_id, text) in copied.items():
        assert (model_id, memory_id) == (there[pk].model_id, there[pk].memory_id)
        stored = np.frombuffer(bytes(there[pk].vector), dtype="<f4")
        assert np.allclose(np.fromstring(text.strip("[]"), sep=","), stored, atol=2e-3)


def ids(query: str, filters: Filters = Filters(), **kwargs) -> list[int]:  # noqa: B008
    return [hit.memory_id for hit in recall(query, filters, **kwargs).hits]


def second_connection():
    """A connection of its own to the same database, closed at the end."""
    other = connections["default"].copy()
    other.ensure_connection()
    return _Closing(other)


class _Closing:
    def __init__(self, other):
        self.other = other

    def __enter__(self):
        return self.other

    def __exit__(self, *error):
        self.other.close()


def wait_until(what, seconds=60.0):
    """Poll until `what()` holds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
