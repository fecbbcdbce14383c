"""Restore a backup: stage a copy, then put it in the place of what is there, which is set aside by rename.

Until everything is staged nothing changes. Killed while it puts things in place, it is run again: it starts over, and
what was set aside first stays set aside. Until then check claudeops.E003 keeps every other command from starting.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from claudeops.features.backups import database, files
from claudeops.features.backups.folder import STAMP, BackupError, cannot_write, locked, unfinished_file
from claudeops.features.backups.make import KEY_FILES
from claudeops.features.backups.manifest import KEYS, LOGS, Manifest, verify
from claudeops.lib import database_version
from claudeops.lib.files import whole_file
from claudeops.lib.locks import file_lock
from sessions_app.models import WorkerHeartbeat
from sessions_app.queue.dispatch import HOST_ALIVE
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
    with ExitStack() as stack:
        try:
            stack.enter_context(locked())
            if not stack.enter_context(file_lock(Path(settings.CLAUDEOPS_DATA_DIR) / UP_LOCK)):
                raise _runs("`manage.py up` runs")
            is_again = unfinished_file().exists()
            stamp = unfinished_file().read_text() if is_again else f"{at or timezone.now():{STAMP}}"
            _require_nothing_runs()
            if not (overwrite or is_again):
                _require_empty()
            checked = verify(path)
            if checked.problems:
                raise BackupError("damaged_backup", f"{path}: {checked.problems[0]}", "Use another backup.")
            _require_fit(checked.manifest)
            _clear_staged()
            _stage(path, checked.manifest)
            with whole_file(unfinished_file()) as out:
                out.write(stamp)
            aside = _put_in_place(stamp)
            _clear_staged()
            unfinished_file().unlink()
        except BaseException as error:
            is_begun = unfinished_file().exists()
            if not is_begun:
                with suppress(OSError):  # the next restore removes it
                    _clear_staged()
            if isinstance(error, OSError | DatabaseError):
                raise _refusal(error, is_begun) from error
            raise
        return Restored(path.name, checked.manifest.at, aside)


def _refusal(error: OSError | DatabaseError, is_begun: bool) -> BackupError:
    first = str(error).partition("\n")[0]
    if is_begun:
        message = f"The restore is not complete: {first}."
        return BackupError("restore_unfinished", message, "Mend this, then run it again.")
    if isinstance(error, OSError):
        return cannot_write(NOT_RESTORED, error, settings.CLAUDEOPS_DATA_DIR)
    message = f"{NOT_RESTORED}: the database does not answer: {first}."
    return BackupError("no_answer", message, "Check DATABASE_URL.")


# What must hold before.


def _runs(what: str) -> BackupError:
    return BackupError("running", f"{what}. {NOT_RESTORED}.", "Stop the web server and the workers, then run it again.")


def _require_nothing_runs() -> None:
    with suppress(DatabaseError):  # a damaged or missing database has no living workers
        if not (connection.vendor == "sqlite" and database.is_empty()):
            for beat in WorkerHeartbeat.objects.filter(beat_at__gte=timezone.now() - HOST_ALIVE):
                if beat.host != settings.CLAUDEOPS_HOST or psutil.pid_exists(beat.pid):
                    raise _runs(f"A worker runs on {beat.host} (process {beat.pid})")
    if connection.vendor == "postgresql" and (others := _other_connections()):
        raise _runs(f"The database is in use by {others} other connections")
    connection.close()
    # A web server has the database open, a session that runs its raw log.
    places = [f"{sessions_folder().resolve()}{os.sep}"]
    places += [str(Path(connection.settings_dict["NAME"]).resolve())] if connection.vendor == "sqlite" else []
    for process in psutil.process_iter():
        opened: list[Any] = []
        with suppress(psutil.Error, OSError):
            opened = process.open_files() if process.pid != os.getpid() else []
        for file in opened:
            if file.path.startswith(tuple(places)):
                raise _runs(f"Process {process.pid} has {file.path} open")


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


def _require_empty() -> None:
    is_empty = database.is_empty()
    if is_empty and next(files.raw_logs(sessions_folder()), None) is None:
        return
    what = str(sessions_folder()) if is_empty else "The database"
    raise BackupError(
        "not_empty",
        f"{what} is not empty. {NOT_RESTORED}.",
        "--overwrite restores nevertheless and sets aside what is there.",
    )


def _require_fit(manifest: Manifest) -> None:
    if manifest.vendor != connection.vendor:
        raise BackupError(
            "other_database",
            f"The backup is of {manifest.vendor}, DATABASE_URL names {connection.vendor}.",
            "Restore it with a DATABASE_URL of that kind; docs/production.md says how to move to PostgreSQL.",
        )
    if ".".join(database_version.EARLIEST) in manifest.migrations:
        raise BackupError("earlier_backup", database_version.EARLIER, database_version.EXPORT)
    migrations = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    available = {f"{app}.{name}" for app, name in migrations}
    if newer := sorted(set(manifest.migrations) - available):
        raise BackupError(
            "newer_backup",
            f"The backup is of claudeops {manifest.version}, with migrations that this version does not know: "
            f"{newer[0]}.",
            "Update claudeops first.",
        )


# Stage, and put in place.


def _staged() -> Path:
    return Path(settings.CLAUDEOPS_DATA_DIR) / STAGED


def _staged_database() -> Path:
    """Return where the new SQLite file waits: in the folder of the live one, so that a rename puts it in place."""
    live = _live_database()
    return live.with_name(f"{STAGED}.{live.name}")


def _live_database() -> Path:
    return Path(connection.settings_dict["NAME"]).absolute()


def _named(ending: str) -> str:
    """Return the name of a database of PostgreSQL beside the configured one: PostgreSQL cuts names at 63 bytes."""
    return f"{str(connection.settings_dict['NAME'])[: 62 - len(ending)]}_{ending}"


def _clear_staged() -> None:
    if _staged().is_dir():
        shutil.rmtree(_staged())
    if connection.vendor == "sqlite":
        _staged_database().unlink(missing_ok=True)
        return
    with suppress(DatabaseError), database.maintenance() as cursor:
        for ending in ("restore", "replaced"):
            cursor.execute(f"DROP DATABASE IF EXISTS {connection.ops.quote_name(_named(ending))}")


def _stage(path: Path, manifest: Manifest) -> None:
    """Copy everything: raw logs are masked in place, so the house must not share a file with its backup."""
    for part in (LOGS, KEYS):
        (_staged() / part).mkdir(parents=True, mode=0o700)
    for entry in (*manifest.of(LOGS), *(key for key in manifest.of(KEYS) if (path / key.path).exists())):
        target = _staged() / entry.path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.copy(path / entry.path, target)
    files.sync_folders(_staged())
    if manifest.vendor == "sqlite":
        target = _staged_database()
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.copy(path / manifest.database.path, target)
        target.chmod(0o600)
    else:
        _stage_postgresql(path / manifest.database.path)


def _stage_postgresql(dump: Path) -> None:
    live, staged = str(connection.settings_dict["NAME"]), _named("restore")
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


def _put_in_place(stamp: str) -> list[str]:
    """Put what is staged in its place; return where that which was there is set aside."""
    data, staged = Path(settings.CLAUDEOPS_DATA_DIR), _staged()
    aside = data / f"{ASIDE}{stamp}"
    moves = [(sessions_folder(), staged / LOGS, aside)]
    # The first password is of the database that goes; the secret key stays unless the backup has one.
    moves += [
        (data / key, staged / KEYS / key, aside)
        for key in KEY_FILES
        if key != KEY_FILES[0] or (staged / KEYS / key).exists()
    ]
    moves += [(data / cache, staged / cache, aside) for cache in CACHES]
    names = []
    if connection.vendor == "sqlite":
        live = _live_database()
        beside = live.parent / aside.name
        moves += [(live.with_name(live.name + ending), staged / ending, beside) for ending in BESIDE]
        moves.append((live, _staged_database(), beside))
    else:
        old = _named(f"before_restore_{stamp}".lower())
        names.append(f"database {old}")
        _swap_databases(old)  # the step that others can prevent
    for move in moves:
        _move(*move)
    folders = {folder for _, _, folder in moves}
    for folder in {folder.parent for folder in folders} | {folder for folder in folders if folder.exists()}:
        files.sync_folder(folder)
    return [*sorted(str(folder) for folder in folders if folder.exists()), *names]


def _move(live: Path, new: Path, aside: Path) -> None:
    """Put `new`, if there is one, in the place of `live`, which is set aside unless an interrupted restore made it."""
    if live.exists() and not (aside / live.name).exists():
        aside.mkdir(exist_ok=True, mode=0o700)
        live.rename(aside / live.name)
    elif live.is_dir():
        shutil.rmtree(live)
    else:
        live.unlink(missing_ok=True)
    if new.exists():
        new.rename(live)


def _swap_databases(old: str) -> None:
    """Rename the live database to `old` and the staged one to its name, in one transaction.

    Where there is `old`, an interrupted restore has made the live one, which goes.
    """
    live, quote = str(connection.settings_dict["NAME"]), connection.ops.quote_name
    with database.maintenance() as cursor:
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [old])
        goes = _named("replaced") if cursor.fetchone() else old
        cursor.execute(
            f"BEGIN; ALTER DATABASE {quote(live)} RENAME TO {quote(goes)}; "
            f"ALTER DATABASE {quote(_named('restore'))} RENAME TO {quote(live)}; COMMIT"
        )
