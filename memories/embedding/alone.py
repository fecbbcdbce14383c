"""Work that only one process does at a time, whichever gets to it first; another one leaves it and does not wait.

What holds the place is let go of by the database or the system when its process dies. Knows nothing of the work.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection


@contextlib.contextmanager
def alone(key: int, name: str) -> Iterator[bool]:
    """Whether this is the only one: on PostgreSQL of all hosts, by `key`; on SQLite of the one there is, by a lock
    file called `name` in the data folder."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
            taken = bool(cursor.fetchone()[0])
        try:
            yield taken
        finally:
            if taken:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
        return
    folder = Path(settings.CLAUDEOPS_DATA_DIR)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / name).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
