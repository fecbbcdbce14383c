"""Limit how long the queries of a block may take: what is beyond it fails as an OperationalError, and nothing waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from django.db import connection, transaction

STEPS = 1_000
"""Instructions of SQLite between two looks at the clock."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Let the queries inside end after `seconds`: on SQLite those of the block together, on PostgreSQL each of them.

    Inside a transaction a failure rolls back to the beginning of the block, and the transaction goes on.
    """
    limit = _on_postgresql if connection.vendor == "postgresql" else _on_sqlite
    with limit(seconds), transaction.atomic() if connection.in_atomic_block else nullcontext():
        yield


@contextmanager
def _on_sqlite(seconds: float) -> Iterator[None]:
    connection.ensure_connection()
    raw, ends = connection.connection, time.monotonic() + seconds
    raw.set_progress_handler(lambda: time.monotonic() >= ends, STEPS)
    try:
        yield
    finally:
        raw.set_progress_handler(None, STEPS)


@contextmanager
def _on_postgresql(seconds: float) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        before = cursor.fetchone()[0]
    _set(f"{max(1, int(seconds * 1000))}ms")
    try:
        yield
    finally:
        _set(before)


def _set(value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, %s)", [value, connection.in_atomic_block])
