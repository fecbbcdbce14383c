"""Copy and check the database: VACUUM INTO on SQLite, pg_dump and pg_restore on PostgreSQL."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from claudeops.features.backups.files import sync_file
from claudeops.features.backups.folder import BackupError
from claudeops.lib import outage

FILES = {"sqlite": "claudeops.sqlite3", "postgresql": "claudeops.dump"}
LOGS = "SELECT log_file, ingest_offset FROM sessions WHERE log_file <> '' AND ingest_offset > 0 AND host = {}"
MIGRATIONS = "SELECT app || '.' || name FROM django_migrations ORDER BY app, name"


class Snapshot(NamedTuple):
    """What the copy of the database says: the migrations applied (app.name), and of a host's sessions the raw log and
    how many bytes of it are in the database."""

    migrations: list[str]
    logs: list[tuple[str, int]]


def copy(target: Path) -> Snapshot:
    """Copy the database to `target` while others write; the copy is of one moment. Raises BackupError."""
    if connection.in_atomic_block:
        raise transaction.TransactionManagementError("A backup cannot be made inside a transaction.")
    try:
        if is_empty():
            raise BackupError("empty", "No backup was made: the database is empty.", "Run: manage.py migrate")
        return _copy_sqlite(target) if connection.vendor == "sqlite" else _copy_postgresql(target)
    except DatabaseError as error:
        cause = outage.named_in(error)
        reason = cause.message if cause else f"{_first_line(error)}."
        raise BackupError(
            cause.code if cause else "not_copied",
            f"No backup was made: the database was not copied to {target.parents[2]}: {reason}",
            cause.fix if cause else "Run: manage.py doctor",
        ) from error


def _copy_sqlite(target: Path) -> Snapshot:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(target)])
    target.chmod(0o600)
    sync_file(target)
    return check_sqlite(target, settings.CLAUDEOPS_HOST)


def check_sqlite(path: Path, host: str) -> Snapshot:
    """Check every page of a copy, and read what it says of `host`. Raises BackupError when it is damaged."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as copied:
            problems = [str(row[0]) for row in copied.execute("PRAGMA integrity_check(5)")]
            if problems != ["ok"]:
                raise _damaged(path, problems[0])
            migrations = [name for (name,) in copied.execute(MIGRATIONS)]
            return Snapshot(migrations, copied.execute(LOGS.format("?"), [host]).fetchall())
    except sqlite3.Error as error:
        raise _damaged(path, _first_line(error)) from error


def _copy_postgresql(target: Path) -> Snapshot:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT pg_export_snapshot()")
        exported = str(cursor.fetchone()[0])
        cursor.execute(MIGRATIONS)
        migrations = [name for (name,) in cursor.fetchall()]
        cursor.execute(LOGS.format("%s"), [settings.CLAUDEOPS_HOST])
        logs = cursor.fetchall()
        run("pg_dump", "--format=custom", f"--snapshot={exported}", f"--file={target}", "--dbname", conninfo())
    target.chmod(0o600)
    sync_file(target)
    check_postgresql(target)
    return Snapshot(migrations, logs)


def check_postgresql(path: Path) -> None:
    """Read a whole dump. Raises BackupError when it is damaged or the program is missing."""
    run("pg_restore", f"--file={os.devnull}", str(path), what=f"{path} is damaged")


def is_empty() -> bool:
    """Whether the configured database holds nothing. A SQLite file that cannot be read does hold something."""
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        if not path.is_file() or not path.stat().st_size:
            return True
        try:
            with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as live:
                return not live.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.Error:
            return False
    return not connection.introspection.table_names()


# PostgreSQL's programs.


def conninfo(name: str = "") -> str:
    """Return libpq's connection string of the database, or of the one called `name`, without the password."""
    from psycopg import pq  # not for SQLite: importing it takes a tenth of a second
    from psycopg.conninfo import make_conninfo

    keywords = {one.keyword.decode() for one in pq.Conninfo.get_defaults()} - {"password"}
    parameters = {key: value for key, value in connection.get_connection_params().items() if key in keywords}
    return make_conninfo(**{**parameters, **({"dbname": name} if name else {})})


def run(program: str, *arguments: str, what: str = "") -> None:
    """Run one of PostgreSQL's programs with the password in its environment. Raises BackupError.

    `what` says in words what a failure means.
    """
    executable = shutil.which(program)
    if executable is None:
        raise BackupError(
            "program_missing",
            f"{program} is not on the PATH; backups of PostgreSQL need pg_dump and pg_restore.",
            "Install PostgreSQL's client programs, of the server's version or a newer one.",
        )
    password = connection.get_connection_params().get("password")
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    process = subprocess.run(
        [executable, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if "error" in line] or process.stderr.splitlines()
        reason = (lines or [f"exit code {process.returncode}"])[0].strip()
        raise BackupError("program_failed", f"{what or f'{program} failed'}: {reason}")


@contextmanager
def maintenance() -> Iterator[Any]:
    """Yield a cursor of another database of the same server; the configured one is not connected to meanwhile."""
    connection.close()
    with connection._nodb_cursor() as cursor:
        yield cursor


def _damaged(path: Path, why: str) -> BackupError:
    return BackupError("damaged", f"{path} is damaged: {why}.", "Use another backup.")


def _first_line(error: Exception) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__).rstrip(".")
