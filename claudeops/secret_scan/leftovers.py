"""Remove what databases keep of values that were overwritten or deleted."""

from __future__ import annotations

from django.db import DatabaseError, connection

BUSY = "The old values are still in free pages of the database ({error}). Stop the workers, then run this again."


def remove() -> list[str]:
    """Rewrite the full-text indexes and the free pages; return what could not be done, in sentences for people.

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
