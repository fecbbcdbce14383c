"""The database of a run: migrated once, copied for each worker, put back after each test that commits.

Django migrates for each worker and empties all tables after each such test, which takes longer than most tests.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection

from claudeops.env import BASE_DIR
from claudeops.lib.locks import file_lock
from tests.support.processes import manage

PATIENCE = 60.0
"""Seconds in which what another process writes must have been committed before the tables are put back."""


def key() -> str:
    """Return what a migrated database depends on: the migrations, the versions of all that has some, and the triggers
    that are made once; the others are brought up to date after each `migrate`."""
    paths = [BASE_DIR / "requirements.txt", *sorted(BASE_DIR.glob("[!.]*/**/migrations/*.py"))]
    paths += [BASE_DIR / "memories" / "recall" / name for name in ("keyword_index.py", "narratives.py")]
    contents = b"\0".join(path.read_bytes() for path in paths)
    return hashlib.sha256(contents + sqlite3.sqlite_version.encode()).hexdigest()[:16]


def use(name: str) -> None:
    """Connect to another database from now on."""
    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


SUM = """SELECT coalesce(md5(string_agg(one::text, ',' ORDER BY one::text)), '') FROM "{}" one"""
"""Of all rows of a table of PostgreSQL."""


def migrated_sqlite(cache: Path) -> Path:
    """Return a migrated file in `cache`, a folder that other workers and later runs use, too; make it if missing."""
    path = cache / f"migrated-{key()}.sqlite3"
    with file_lock(path.with_suffix(".lock"), wait=True):
        if not path.exists():
            unfinished = path.with_suffix(".new")
            unfinished.unlink(missing_ok=True)
            process = manage("migrate", more={"DATABASE_URL": f"sqlite:///{unfinished}"})
            output = process.communicate()
            assert process.returncode == 0, output
            unfinished.rename(path)
    return path


class SQLite:
    def __init__(self, cache: Path, worker: str) -> None:
        self.cache = cache
        self.name = str(Path(settings.CLAUDEOPS_DATA_DIR) / "test.sqlite3")

    def make(self) -> None:
        shutil.copyfile(migrated_sqlite(self.cache), self.name)
        use(self.name)
        emit_post_migrate_signal(0, False, "default")  # triggers, groups and rights as the code has them now
        self.rows = sqlite3.connect(":memory:", check_same_thread=False)
        connection.connection.backup(self.rows)

    def put_back(self) -> None:
        """Write all pages anew through SQLite's own locks, since another process may have the file open."""
        connection.ensure_connection()
        end = time.monotonic() + PATIENCE

        def give_up(status: int, remaining: int, total: int) -> None:
            assert time.monotonic() < end, "a process still writes to the database of the test"

        self.rows.backup(connection.connection, progress=give_up)


class PostgreSQL:
    MIGRATED = "migrated"

    def __init__(self, cache: Path, worker: str) -> None:
        self.name = f"test_{worker}"

    def make(self) -> None:
        with file_lock(Path(os.environ["TEST_RUN_FOLDER"]) / "migrated.lock", wait=True):
            if not self._is_there():
                with connection._nodb_cursor() as cursor:
                    cursor.execute(f'CREATE DATABASE "{self.MIGRATED}"')
                use(self.MIGRATED)
                call_command("migrate", verbosity=0, interactive=False)
                self._keep_rows()
                connection.close()
            with connection._nodb_cursor() as cursor:
                cursor.execute(f'CREATE DATABASE "{self.name}" TEMPLATE "{self.MIGRATED}"')
        use(self.name)
        with connection.cursor() as cursor:
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            tables = {name for (name,) in cursor.fetchall()}
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'kept'")
            self.kept = {name: self._sum(cursor, name) for (name,) in cursor.fetchall()}
        filled = [f"SELECT '{name}' WHERE EXISTS (SELECT FROM \"{name}\")" for name in sorted(tables - set(self.kept))]
        changed = [f"SELECT '{name}' WHERE ({SUM.format(name)}) <> '{value}'" for name, value in self.kept.items()]
        self.differs = " UNION ALL ".join([*filled, *changed])

    def put_back(self) -> None:
        """Delete from the tables that have rows; copy back what migrating wrote, where it has changed."""
        with connection.cursor() as cursor:
            cursor.execute(self.differs)
            tables = [name for (name,) in cursor.fetchall()]
            if tables:
                deletions = [f'DELETE FROM "{name}"' for name in tables]
                copies = [f'INSERT INTO "{name}" SELECT * FROM kept."{name}"' for name in tables if name in self.kept]
                # Without triggers, those that check foreign keys among them: all rows go.
                cursor.execute(
                    ";".join(["BEGIN", "SET LOCAL session_replication_role = replica", *deletions, *copies, "COMMIT"])
                )

    def _is_there(self) -> bool:
        with connection._nodb_cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [self.MIGRATED])
            return cursor.fetchone() is not None

    @staticmethod
    def _keep_rows() -> None:
        with connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA kept")
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            for (name,) in cursor.fetchall():
                cursor.execute(f'SELECT EXISTS (SELECT FROM "{name}")')
                if cursor.fetchone()[0]:
                    cursor.execute(f'CREATE TABLE kept."{name}" AS TABLE "{name}"')

    @staticmethod
    def _sum(cursor: Any, name: str) -> str:
        cursor.execute(SUM.format(name))
        return str(cursor.fetchone()[0])
