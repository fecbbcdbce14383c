"""Say whether the database's tables are those of this version of the code, and what to do where they are not."""

from __future__ import annotations

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

EARLIEST = "memories", "0001_memories"
"""The first migration of the versions before the migrations began anew with `0001_initial`."""

EARLIER = "The database was made by an earlier version of claudeops, whose tables this version cannot change."
EXPORT = (
    "With the earlier version run: manage.py memory export FILE. Give this version a new data folder "
    "(CLAUDEOPS_DATA_DIR; on PostgreSQL also a new database in DATABASE_URL), then run: manage.py migrate, and "
    "manage.py memory import --trust FILE. Sessions and their logs stay with the earlier version."
)


def unapplied() -> int:
    """Count the migrations to apply. Raises DatabaseError when the database does not answer."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def difference() -> tuple[str, str] | None:
    """Return (what differs, what to do); None when the tables are this version's. Raises as `unapplied` does."""
    if is_earlier():
        return EARLIER, EXPORT
    pending = unapplied()
    text = f"{pending} migration{' is' if pending == 1 else 's are'} not applied."
    return (text, "Run: manage.py migrate") if pending else None


def is_earlier() -> bool:
    """Whether a version with other migrations made the database."""
    return EARLIEST in MigrationRecorder(connection).applied_migrations()
