"""Let one process at a time do a piece of work; the others skip it. A lock is released when its process dies."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from django.db import connection


@contextlib.contextmanager
def single_flight(key: int, path: Path) -> Iterator[bool]:
    """Yield whether this process has the lock: on PostgreSQL an advisory lock on `key`, on SQLite the file `path`."""
    if connection.vendor != "postgresql":
        with file_lock(path) as has_lock:
            yield has_lock
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        has_lock = bool(cursor.fetchone()[0])
    try:
        yield has_lock
    finally:
        if has_lock:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])


def one_at_a_time(key: int) -> None:
    """Hold back others with this `key` until the transaction ends, on PostgreSQL. SQLite has one writer anyhow."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


@contextlib.contextmanager
def file_lock(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Yield whether this process has the lock file at `path`, created when missing. With `wait`, wait for it.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
