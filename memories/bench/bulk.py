"""Writing rows by the hundred thousand into a scratch database: without triggers, and indexes made afterwards at once.

What the triggers of `memories` would put in line, the caller writes itself. Never for a database that is anybody's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.color import no_style
from django.db import connection, models

from memories.bench.making import Block, Table
from memories.models import Embedding, Memory, MemoryTerms

TABLES = tuple(model._meta.db_table for model in (Memory, MemoryTerms, Embedding))
KILOBYTES = 400_000
"""Memory for the pages of the database on SQLite, and for sorting what is indexed on PostgreSQL."""


def insert(model: type[models.Model], block: Block) -> None:
    """Rows of all columns into a model's table, in the order of `Table`."""
    table = connection.ops.quote_name(model._meta.db_table)
    names = Table(model, ()).columns
    columns = ", ".join(map(connection.ops.quote_name, names))
    with connection.cursor() as cursor:
        if isinstance(block, bytes):
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                copy.write(block)
        else:
            marks = ", ".join(["%s"] * len(names))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", block)  # noqa: S608


@contextmanager
def at_rest(*, many: bool) -> Iterator[None]:
    """Without the triggers of `memories`; with `many` also without the indexes. All made again as they were.

    An index that is made of all rows is a little denser than one that grew, as after a VACUUM FULL.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            made = _postgresql(cursor, many)
        else:
            made = _sqlite(cursor, many)
        yield
        for statement in made:
            cursor.execute(statement)


def settle() -> None:
    """What autovacuum does soon after so many rows came in, and the numbers that follow the highest ids."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Memory, Embedding]):
            cursor.execute(statement)
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()  # a new one is as careful as usual, and has no more memory than usual


def _postgresql(cursor: Any, many: bool) -> list[str]:
    cursor.execute("SET synchronous_commit = off")  # nobody misses this database after a power cut
    cursor.execute("SELECT set_config('maintenance_work_mem', %s, false)", [f"{KILOBYTES}kB"])
    cursor.execute("ALTER TABLE memories DISABLE TRIGGER USER")
    made = ["ALTER TABLE memories ENABLE TRIGGER USER"]
    if many:
        cursor.execute(
            "SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "WHERE i.indrelid = ANY(%s::regclass[]) AND NOT EXISTS "
            "(SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid)",
            [list(TABLES)],
        )
        made += _dropped(cursor, "INDEX", cursor.fetchall())
    return made


def _sqlite(cursor: Any, many: bool) -> list[str]:
    cursor.execute("PRAGMA synchronous = OFF")
    cursor.execute(f"PRAGMA cache_size = -{KILOBYTES}")
    cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'memories'")
    made = _dropped(cursor, "TRIGGER", cursor.fetchall())
    if many:
        marks = ", ".join(["%s"] * len(TABLES))
        cursor.execute(
            f"SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ({marks})",  # noqa: S608
            TABLES,
        )
        made += _dropped(cursor, "INDEX", cursor.fetchall())
    return made


def _dropped(cursor: Any, kind: str, found: list[tuple[str, str]]) -> list[str]:
    """Drop each of these by name. Returns what makes them again."""
    for name, _ in found:
        cursor.execute(f"DROP {kind} {connection.ops.quote_name(name)}")
    return [made for _, made in found]
