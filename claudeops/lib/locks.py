"""Let one process at a time do a piece of work; the others skip it instead of waiting.

The database or the kernel releases a lock when its process dies.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from django.db import connection


@contextlib.contextmanager
def single_flight(key: int, path: Path) -> Iterator[bool]:
    """Yield whether this process may do the work.

    On PostgreSQL all hosts share an advisory lock named `key`; on SQLite the one host uses a lock file at `path`.
    """
    if connection.vendor != "postgresql":
        with file_lock(path) as taken:
            yield taken
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        taken = bool(cursor.fetchone()[0])
    try:
        yield taken
    finally:
        if taken:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[bool]:
    """Yield whether this process holds the lock file at `path`, which is made when it is missing. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
