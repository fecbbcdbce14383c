"""Make a backup while everything runs, and remove the oldest ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone

from claudeops import __version__
from claudeops.features.backups import database, files, manifest
from claudeops.features.backups.folder import (
    DAILY,
    MANIFEST,
    PARTIAL,
    STAMP,
    BackupError,
    backups_folder,
    cannot_write,
    complete,
    locked,
    time_of,
)
from claudeops.features.backups.manifest import DATABASE, KEYS, LOGS, Entry, Manifest
from claudeops.lib.files import whole_file
from claudeops.workers.up import FILE as FIRST_SIGN_IN
from sessions_app.runner.raw_log import sessions_folder

KEY_FILES = ("secret_key", FIRST_SIGN_IN)
NOT_MADE = "No backup was made"


@dataclass(slots=True)
class Made:
    """A new backup. `linked` files are shared with the backup before; `removed` are names of older ones."""

    path: Path
    manifest: Manifest
    linked: int
    removed: list[str]


def make(
    to: Path | None = None,
    *,
    keep: int | None = None,
    keys: bool = True,
    full: bool = False,
    at: datetime | None = None,
) -> Made:
    """Make a backup in `to` (the folder of the settings when None), then remove all but the newest `keep` there.

    Without `keys` it holds no key. With `full` every raw log is copied anew. Raises BackupError; nothing is left then.
    """
    with _prepared(to) as folder:
        return _make(folder, "", keep=keep, keys=keys, full=full, at=at or timezone.now())


def make_daily(at: datetime | None = None) -> Made | None:
    """Make the backup of the day (UTC), unless there is one. Removes only older daily ones. Raises BackupError."""
    at = at or timezone.now()
    with _prepared(None) as folder:
        if list(folder.glob(f"{at:%Y%m%d}T*{DAILY}/{MANIFEST}")):
            return None
        return _make(folder, DAILY, keep=settings.CLAUDEOPS_BACKUP_KEEP, keys=True, full=False, at=at)


@contextmanager
def _prepared(to: Path | None) -> Iterator[Path]:
    """Make the folder, take the locks, and clear what a killed backup left. Raises BackupError."""
    folder, sessions = (to or backups_folder()).absolute(), sessions_folder().resolve()
    if folder.resolve().is_relative_to(sessions):
        raise BackupError(
            "wrong_folder", f"{folder} lies in {sessions}, which is backed up itself.", "Choose another folder."
        )
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            stack.enter_context(locked(folder))
            for path in folder.glob(f"*{PARTIAL}"):
                if time_of(path.name.removesuffix(PARTIAL)):
                    shutil.rmtree(path)
        except OSError as error:
            raise cannot_write(NOT_MADE, error, folder) from error
        yield folder


def _make(folder: Path, suffix: str, *, keep: int | None, keys: bool, full: bool, at: datetime) -> Made:
    """Write all files of the backup under another name, the manifest last.

    The database comes first: logs only grow, so that every line that it knows of is in them.
    """
    at = at.replace(microsecond=0)
    while any((folder / f"{at:{STAMP}}{ending}").exists() for ending in ("", DAILY)):
        at += timedelta(seconds=1)
    path = folder / f"{at:{STAMP}}{suffix}"
    partial = path.with_name(f"{path.name}{PARTIAL}")
    before = None if full else next(reversed(complete(folder)), None)
    contents = Manifest(
        at=at,
        began=timezone.now(),
        version=__version__,
        vendor=connection.vendor,
        host=settings.CLAUDEOPS_HOST,
        data_folder=str(settings.CLAUDEOPS_DATA_DIR),
        daily=bool(suffix),
    )
    try:
        for directory in (partial, *(partial / part for part in (DATABASE, LOGS, KEYS))):
            directory.mkdir(mode=0o700)
        copied = partial / DATABASE / database.FILES[connection.vendor]
        snapshot = database.copy(copied)
        contents.migrations = list(snapshot.migrations)
        contents.files.append(Entry(f"{DATABASE}/{copied.name}", *files.hash_of(copied)))
        linked = _copy_logs(partial, before, contents)
        for name in KEY_FILES if keys else ():
            source = Path(settings.CLAUDEOPS_DATA_DIR) / name
            if source.is_file():
                contents.files.append(Entry(f"{KEYS}/{name}", *files.copy(source, partial / KEYS / name)))
        contents.missing_logs = manifest.missing(snapshot, contents.files)
        with whole_file(partial / MANIFEST) as out:
            out.write(contents.as_json())
        files.sync_folders(partial)
        partial.rename(path)
        files.sync_folder(folder)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)  # else the next backup removes it
        if isinstance(error, OSError):
            raise cannot_write(NOT_MADE, error, partial) from error
        raise
    removed = [] if keep is None else remove_oldest(folder, keep, spare=path, ending=suffix)
    return Made(path, contents, linked, removed)


def _copy_logs(partial: Path, before: Path | None, contents: Manifest) -> int:
    """Copy the raw logs, or link what is unchanged since the backup `before`; return how many are links.

    What cannot be read is named: no agent prevents backups by the rights of its files.
    """
    earlier = _read(before)
    by_path = {entry.path: entry for entry in earlier.of(LOGS)} if earlier else {}
    linked = 0

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # there is no session yet, or a failed import has removed its own
            contents.unreadable.append(str(error.filename))

    for name in files.raw_logs(sessions_folder(), note):
        path, live, target = f"{LOGS}/{name}", sessions_folder() / name, partial / LOGS / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        unchanged = before and earlier and path in by_path and files.is_unchanged(live, before / path, earlier.began)
        if before and unchanged and files.link(before / path, target):
            contents.files.append(by_path[path])
            linked += 1
            continue
        try:
            contents.files.append(Entry(path, *files.copy(live, target)))
        except PermissionError:
            contents.unreadable.append(path)
        except FileNotFoundError:  # an import that failed has removed its own
            if live.exists():
                raise
    return linked


def _read(before: Path | None) -> Manifest | None:
    try:
        return manifest.read(before) if before else None
    except BackupError:
        return None


def remove_oldest(folder: Path, keep: int, *, spare: Path, ending: str = "") -> list[str]:
    """Remove complete backups of this data folder but for the newest `keep`, never `spare`; return their names.

    Of daily ones alone with `ending`. Each is renamed before it is deleted, so that half a backup never looks whole.
    """
    mine = (settings.CLAUDEOPS_HOST, str(settings.CLAUDEOPS_DATA_DIR))
    others = []
    for path in complete(folder):
        contents = _read(path) if path != spare and path.name.endswith(ending) else None
        if contents and (contents.host, contents.data_folder) == mine:
            others.append(path)
    removed = []
    for path in others[: max(0, len(others) + 1 - keep)]:
        doomed = path.with_name(f"{path.name}{PARTIAL}")
        try:
            path.rename(doomed)
            shutil.rmtree(doomed)
        except OSError as error:
            raise BackupError(
                "not_removed",
                f"The backup {spare.name} was made, but {path.name} was not removed: {error.strerror}.",
                "Remove it by hand.",
            ) from error
        removed.append(path.name)
    return removed
