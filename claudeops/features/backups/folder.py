"""The folder of backups: their names, which are complete, how old the last one is, its lock; errors of backups."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection

from claudeops.lib import outage
from claudeops.lib.cli import Refusal
from claudeops.lib.locks import file_lock

MANIFEST = "manifest.json"
PARTIAL = ".partial"
DAILY = "-daily"
NAME = re.compile(rf"(\d{{8}}T\d{{6}}Z)(?:{DAILY})?")
STAMP = "%Y%m%dT%H%M%SZ"
LOCK = "backup.lock"
UNFINISHED = "restore-unfinished"
OLD = timedelta(days=2)
"""An older last backup is a warning where one is made each day."""
AHEAD = timedelta(minutes=5)
"""A name that is later than now by more does not count as the last backup: the clock was wrong."""


class BackupError(Refusal):
    pass


def printable(path: object) -> str:
    """Return a path for people. An agent may have named the file: no control character reaches a terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(path))


def cannot_write(what: str, error: OSError, path: os.PathLike[str] | str) -> BackupError:
    """Return the error of a file that could not be read or written. `what` says in words what was not done."""
    place = printable(error.filename if error.filename else path)
    if full := outage.named_in(error):
        return BackupError(full.code, f"{what}: {place}: {full.message}", full.fix)
    return BackupError("cannot_write", f"{what}: {place}: {error.strerror or error}.", "Nothing was changed.")


def backups_folder() -> Path:
    return Path(settings.CLAUDEOPS_BACKUP_DIR or Path(settings.CLAUDEOPS_DATA_DIR) / "backups")


def unfinished_file() -> Path:
    """Return the file that is there while a restore puts things in place, and after one was interrupted then."""
    return Path(settings.CLAUDEOPS_DATA_DIR) / UNFINISHED


def is_daily_on() -> bool:
    """Whether workers make a backup each day. On PostgreSQL its own tools do."""
    return settings.CLAUDEOPS_BACKUP_KEEP > 0 and connection.vendor == "sqlite"


def time_of(name: str) -> datetime | None:
    """Return when the backup of this name was begun (UTC); None for another name."""
    match = NAME.fullmatch(name)
    try:
        return datetime.strptime(match[1], STAMP).replace(tzinfo=UTC) if match else None
    except ValueError:  # 20261399T000000Z
        return None


def complete(folder: Path) -> list[Path]:
    """Return the complete backups in `folder`, the oldest first. Raises BackupError when it cannot be read."""
    try:
        if not folder.is_dir():
            return []
        backups = [path for path in folder.iterdir() if time_of(path.name) and (path / MANIFEST).is_file()]
    except OSError as error:
        raise BackupError("cannot_read", f"{folder} cannot be read: {error.strerror}.", "Check its rights.") from error
    return sorted(backups, key=lambda path: path.name)


def last_made(at: datetime) -> datetime | None:
    """Return when the last backup in the folder of the settings was begun; None without one."""
    try:
        times = [time_of(path.name) for path in complete(backups_folder())]
    except BackupError:
        return None
    return max((time for time in times if time and time <= at + AHEAD), default=None)


def is_late(made: datetime | None, at: datetime) -> bool:
    """Whether the last backup, made at `made`, is too old at `at` (UTC), or there is none."""
    return made is None or made < at - OLD


def resolve(named: str) -> Path:
    """Return the folder of a complete backup: a path, or a name in the folder of the settings. Raises BackupError."""
    folder = backups_folder()
    path = next((one for one in (folder / named, Path(named)) if named and _is_folder(one)), None)
    if path is None:
        names = [one.name for one in complete(folder)]
        fix = f"In {folder}: {', '.join(names[-5:])}." if names else f"There is none in {folder}."
        raise BackupError("backup_not_found", f"There is no backup {named!r}.", fix)
    if path.name.endswith(PARTIAL) or not (path / MANIFEST).is_file():
        raise BackupError(
            "not_a_backup", f"{path} is not a complete backup: it has no {MANIFEST}.", "Give the folder of a whole one."
        )
    return path


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # the name is too long, or a folder above may not be read
        return False


@contextmanager
def locked(folder: Path | None = None) -> Iterator[None]:
    """Hold the locks of this data folder and of `folder`. Raises BackupError when another process has one; OSError."""
    with ExitStack() as stack:
        for path in (Path(settings.CLAUDEOPS_DATA_DIR) / LOCK, *([folder / f".{LOCK}"] if folder else [])):
            if not stack.enter_context(file_lock(path)):
                raise BackupError("busy", "Another backup or restore is running.", "Wait until it has ended.")
        yield
