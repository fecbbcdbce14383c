"""Restore a backup: stage a copy, then put it in the place of what is there, which is set aside by rename.

Until everything is staged nothing changes. Then a plan of renames is written down and carried out. Killed in between,
it is completed by `finish`; until then check claudeops.E003 keeps every other command from starting.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import psutil
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from claudeops.backups import database, files
from claudeops.backups.errors import BackupError, cannot_write
from claudeops.backups.folder import STAMP, locked, plan_file
from claudeops.backups.make import KEY_FILES
from claudeops.backups.manifest import KEYS, LOGS, Manifest
from claudeops.backups.verify import verify
from claudeops.lib import database_version
from claudeops.lib.locks import file_lock
from claudeops.overview.health import ALIVE
from sessions_app.models import WorkerHeartbeat
from sessions_app.runner.raw_log import sessions_folder

STAGED = ".restore"
ASIDE = "before-restore-"
CACHES = ("vectors",)
"""Folders of the data folder that are made anew from the database."""
BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside its file."""
NOT_RESTORED = "Nothing was restored"
UP_LOCK = "up.lock"

SETTLE = 5
"""Seconds that PostgreSQL is given to end the connections of processes that are gone, as it takes itself."""

LINK, MOVE, REPLACE, SWAP = "link", "move", "replace", "swap"
Step = tuple[str, str, str]


@dataclass(slots=True)
class Restored:
    """`at` is the time of the backup (UTC). `aside` names what holds the state before: folders, and a database of
    PostgreSQL."""

    backup: str
    at: datetime
    aside: list[str] = field(default_factory=list)


def restore(path: Path, *, overwrite: bool = False, at: datetime | None = None) -> Restored:
    """Put the backup in `path` in the place of the database, the raw logs and the keys.

    Checks the whole backup first. Raises BackupError: when it is damaged or does not fit, when something runs, and when
    there is something to overwrite without `overwrite`. Nothing is changed then.
    """
    at = at or timezone.now()
    with ExitStack() as stack:
        try:
            _take_locks(stack)
            if plan_file().exists():
                raise BackupError(
                    "restore_unfinished", "An earlier restore was interrupted.", "Run: manage.py restore --finish"
                )
            _require_nothing_runs()
            if not overwrite:
                _require_empty()
            checked = verify(path)
            if checked.problems:
                raise BackupError("damaged_backup", f"{path}: {checked.problems[0]}", "Use another backup.")
            _require_fit(checked.manifest)
            _stage(path, checked.manifest)
            _write_plan(path.name, checked.manifest, at)
        except BaseException as error:
            if not plan_file().exists():
                with suppress(OSError):  # the next restore removes it
                    _clear_staged()
            if (said := _said(error)) is error:
                raise
            raise said from error
        return _carry_out()


def finish() -> Restored:
    """Complete a restore that was interrupted. Raises BackupError when there is none."""
    with ExitStack() as stack:
        try:
            _take_locks(stack)
            if not plan_file().exists():
                raise BackupError("nothing_to_finish", "No restore was interrupted.", "Give the backup to restore.")
            _require_nothing_runs()
        except (OSError, DatabaseError) as error:
            raise _said(error) from error
        return _carry_out()


def _said(error: BaseException) -> BaseException:
    """Return the error for people of what stopped a restore; others as they are."""
    if isinstance(error, OSError):
        return cannot_write(NOT_RESTORED, error, settings.CLAUDEOPS_DATA_DIR)
    if isinstance(error, DatabaseError):
        said = str(error).partition("\n")[0]
        return BackupError("no_answer", f"{NOT_RESTORED}: the database does not answer: {said}.", "Check DATABASE_URL.")
    return error


# What must hold before.


def _take_locks(stack: ExitStack) -> None:
    stack.enter_context(locked())
    if not stack.enter_context(file_lock(Path(settings.CLAUDEOPS_DATA_DIR) / UP_LOCK)):
        raise _runs("`manage.py up` runs")


def _runs(what: str) -> BackupError:
    return BackupError("running", f"{what}. {NOT_RESTORED}.", "Stop the web server and the workers, then run it again.")


def _require_nothing_runs() -> None:
    with suppress(DatabaseError):  # a damaged or missing database has no living workers
        if not (connection.vendor == "sqlite" and database.is_empty()):
            for beat in WorkerHeartbeat.objects.filter(beat_at__gte=timezone.now() - ALIVE):
                if beat.host != settings.CLAUDEOPS_HOST or psutil.pid_exists(beat.pid):
                    raise _runs(f"A worker runs on {beat.host} (process {beat.pid})")
    if connection.vendor == "postgresql" and (others := _other_connections()):
        raise _runs(f"The database is in use by {others} other connections")
    connection.close()
    for process, name in _users():
        raise _runs(f"Process {process.pid} has {name} open")


def _other_connections() -> int:
    """Count the other clients of the database, after SETTLE seconds for those that just left."""
    with connection.cursor() as cursor:
        for _ in range(SETTLE * 10):
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'"
            )
            others = int(cursor.fetchone()[0])
            if not others:
                return 0
            cursor.execute("SELECT pg_sleep(0.1)")
    return others


def _users() -> Iterator[tuple[psutil.Process, str]]:
    """Yield the other processes with an open file of the database or a raw log: a web server, a session that runs."""
    own = str(connection.settings_dict["NAME"]) if connection.vendor == "sqlite" else ""
    sessions = f"{sessions_folder().resolve()}{os.sep}"
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with suppress(psutil.Error, OSError):
            for opened in process.open_files():
                if (own and opened.path.startswith(str(Path(own).resolve()))) or opened.path.startswith(sessions):
                    yield process, opened.path


def _require_empty() -> None:
    logs = next(files.raw_logs(sessions_folder()), None)
    if logs is None and database.is_empty():
        return
    what = "The database" if not database.is_empty() else str(sessions_folder())
    raise BackupError(
        "not_empty",
        f"{what} is not empty. {NOT_RESTORED}.",
        "--overwrite restores nevertheless and sets aside what is there.",
    )


def _require_fit(found: Manifest) -> None:
    if found.vendor != connection.vendor:
        raise BackupError(
            "other_database",
            f"The backup is of {found.vendor}, DATABASE_URL names {connection.vendor}.",
            "Restore it with a DATABASE_URL of that kind; docs/production.md says how to move to PostgreSQL.",
        )
    if ".".join(database_version.EARLIEST) in found.migrations:
        raise BackupError("earlier_backup", database_version.EARLIER, database_version.EXPORT)
    migrations = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    known = {f"{app}.{name}" for app, name in migrations}
    if newer := sorted(set(found.migrations) - known):
        raise BackupError(
            "newer_backup",
            f"The backup is of claudeops {found.version}, with migrations that this version does not know: {newer[0]}.",
            "Update claudeops first.",
        )


# Stage, plan, carry out.


def _staged() -> Path:
    return Path(settings.CLAUDEOPS_DATA_DIR) / STAGED


def _live_database() -> Path:
    return Path(connection.settings_dict["NAME"]).absolute()


def _staged_database() -> Path:
    """Return where the new SQLite file waits: in the folder of the live one, so that a rename puts it in place."""
    live = _live_database()
    return live.with_name(f"{STAGED}.{live.name}")


def _other_name(name: str, ending: str) -> str:
    return f"{name[: 62 - len(ending)]}_{ending}"  # PostgreSQL cuts names at 63 bytes


def _clear_staged() -> None:
    files.remove(_staged())
    if connection.vendor == "sqlite":
        _staged_database().unlink(missing_ok=True)
        return
    with suppress(DatabaseError), database.maintenance() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {connection.ops.quote_name(_staged_name())}")


def _staged_name() -> str:
    return _other_name(str(connection.settings_dict["NAME"]), "restore")


def _stage(path: Path, found: Manifest) -> None:
    """Copy everything: raw logs are masked in place, so the house must not share a file with its backup."""
    _clear_staged()
    staged = _staged()
    for part in (LOGS, KEYS):
        (staged / part).mkdir(parents=True, mode=0o700)
    for entry in (*found.of(LOGS), *(key for key in found.of(KEYS) if (path / key.path).exists())):
        target = staged / entry.path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.copy(path / entry.path, target)
    files.sync_folders(staged)
    if found.vendor == "sqlite":
        target = _staged_database()
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.copy(path / found.database.path, target)
        target.chmod(0o600)
        files.sync_folder(target.parent)
    else:
        _stage_postgresql(path / found.database.path)


def _stage_postgresql(dump: Path) -> None:
    live, staged = str(connection.settings_dict["NAME"]), _staged_name()
    try:
        with database.maintenance() as cursor:
            cursor.execute(
                "SELECT pg_encoding_to_char(encoding), datcollate, datctype FROM pg_database WHERE datname = %s", [live]
            )
            cursor.execute(
                f"CREATE DATABASE {connection.ops.quote_name(staged)} TEMPLATE template0 "
                "ENCODING %s LC_COLLATE %s LC_CTYPE %s",
                cursor.fetchone(),
            )
    except DatabaseError as error:
        raise BackupError(
            "not_restored",
            f"{NOT_RESTORED}: the database {staged} was not made: {str(error).partition(chr(10))[0]}.",
            "Give the role the right to make databases: ALTER ROLE … CREATEDB.",
        ) from error
    database.run("pg_restore", "--exit-on-error", "--no-owner", "--dbname", database.conninfo(staged), str(dump))


def _write_plan(name: str, found: Manifest, at: datetime) -> None:
    data = Path(settings.CLAUDEOPS_DATA_DIR)
    steps: list[Step] = []
    aside = data / f"{ASIDE}{at:{STAMP}}"
    staged = _staged()
    steps += _replace(sessions_folder(), staged / LOGS, aside)
    for key in KEY_FILES:
        # The first password is of the database that goes; the secret key stays unless the backup has one.
        if (staged / KEYS / key).exists() or key != KEY_FILES[0]:
            steps += _replace(data / key, staged / KEYS / key, aside)
    for cache in CACHES:
        steps += _replace(data / cache, None, aside)
    folders = [aside]
    if connection.vendor == "sqlite":
        live = _live_database()
        beside = live.parent / aside.name
        folders.append(beside)
        if live.exists():
            steps.append((LINK, str(live), str(beside / live.name)))  # so that there is a database at any time
        for ending in BESIDE:
            steps += _replace(live.with_name(live.name + ending), None, beside)
        steps.append((REPLACE, str(_staged_database()), str(live)))
    else:
        current = str(connection.settings_dict["NAME"])
        old = _other_name(current, f"before_restore_{at:{STAMP}}".lower())
        steps.insert(0, (SWAP, _staged_name(), old))  # the step that others can prevent
    plan = {"backup": name, "at": found.at.isoformat(), "aside": sorted({str(one) for one in folders}), "steps": steps}
    files.write(plan_file(), json.dumps(plan, indent=1) + "\n")


def _replace(live: Path, new: Path | None, aside: Path) -> list[Step]:
    steps: list[Step] = [(MOVE, str(live), str(aside / live.name))] if live.exists() else []
    if new is not None and new.exists():
        steps.append((MOVE, str(new), str(live)))
    return steps


def _carry_out() -> Restored:
    """Carry out the plan; a step that is done is passed over. Raises BackupError; `finish` goes on then."""
    try:
        plan = json.loads(plan_file().read_text(encoding="utf-8"))
        done = Restored(plan["backup"], datetime.fromisoformat(plan["at"]))
        for folder in plan["aside"]:
            Path(folder).mkdir(exist_ok=True, mode=0o700)
        for kind, source, target in plan["steps"]:
            _step(kind, source, target)
        for parent in {Path(target).parent for kind, _, target in plan["steps"] if kind != SWAP}:
            files.sync_folder(parent)
        done.aside = [one for one in plan["aside"] if any(Path(one).iterdir())]
        for one in set(plan["aside"]) - set(done.aside):
            Path(one).rmdir()
        done.aside += [f"database {target}" for kind, _, target in plan["steps"] if kind == SWAP]
        plan_file().unlink()
        _clear_staged()
    except (OSError, DatabaseError, ValueError, KeyError) as error:
        raise BackupError(
            "restore_unfinished",
            f"The restore is not complete: {str(error).partition(chr(10))[0]}.",
            "Mend this, then run: manage.py restore --finish",
        ) from error
    return done


def _step(kind: str, source: str, target: str) -> None:
    if kind == SWAP:
        _swap(source, target)
        return
    old, new = Path(source), Path(target)
    if not old.exists() or (kind != REPLACE and new.exists()):
        return
    if kind == LINK:
        new.hardlink_to(old)
    else:
        old.rename(new)


def _swap(staged: str, old: str) -> None:
    """Rename the live database to `old` and the staged one to its name, in one transaction."""
    live, quote = str(connection.settings_dict["NAME"]), connection.ops.quote_name
    with database.maintenance() as cursor:
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [staged])
        if cursor.fetchone() is None:
            return
        cursor.execute(
            f"BEGIN; ALTER DATABASE {quote(live)} RENAME TO {quote(old)}; "
            f"ALTER DATABASE {quote(staged)} RENAME TO {quote(live)}; COMMIT"
        )
