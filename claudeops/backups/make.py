"""Make a backup while everything runs, and remove the oldest ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone

from claudeops import __version__
from claudeops.backups import database, files, manifest
from claudeops.backups.folder import (
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
from claudeops.backups.manifest import DATABASE, KEYS, LOGS, Entry, Manifest
from claudeops.lib.whole_file import whole_file
from claudeops.workers.first_account import FILE as FIRST_SIGN_IN
from sessions_app.runner.raw_log import sessions_folder

KEY_FILES = ("secret_key", FIRST_SIGN_IN)
NOT_MADE = "No backup was made"


@dataclass(slots=True)
class Made:
    """A new backup. `linked` files are shared with the backup before; `removed` are names of older ones."""

    path: Path
    manifest: Manifest
    linked: int = 0
    removed: list[str] = field(default_factory=list)


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
        days = [time_of(path.name) for path in complete(folder) if path.name.endswith(DAILY)]
        if any(day and day.date() == at.date() for day in days):
            return None
        return _make(folder, DAILY, keep=settings.CLAUDEOPS_BACKUP_KEEP, keys=True, full=False, at=at)


@contextmanager
def _prepared(to: Path | None) -> Iterator[Path]:
    """Make the folder, take the locks, and clear what a killed backup left. Raises BackupError."""
    folder = (backups_folder() if to is None else to).absolute()
    sessions = sessions_folder().resolve()
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
                    files.remove(path)
        except OSError as error:
            raise cannot_write(NOT_MADE, error, folder) from error
        yield folder


def _make(folder: Path, suffix: str, *, keep: int | None, keys: bool, full: bool, at: datetime) -> Made:
    at = at.replace(microsecond=0)
    while any((folder / f"{at:{STAMP}}{ending}").exists() for ending in ("", DAILY)):
        at += timedelta(seconds=1)
    name = f"{at:{STAMP}}{suffix}"
    partial = folder / f"{name}{PARTIAL}"
    before = None if full else next(reversed(complete(folder)), None)
    try:
        partial.mkdir(mode=0o700)
        made = _fill(partial, before, keys=keys, daily=bool(suffix), at=at)
        made.path = folder / name
        partial.rename(made.path)
        files.sync_folder(folder)
    except BaseException as error:
        with suppress(OSError):  # the next backup removes it
            files.remove(partial)
        if isinstance(error, OSError):
            raise cannot_write(NOT_MADE, error, partial) from error
        raise
    if keep is not None:
        made.removed = remove_oldest(folder, keep, spare=made.path, ending=suffix)
    return made


def _fill(partial: Path, before: Path | None, *, keys: bool, daily: bool, at: datetime) -> Made:
    """Write all files of the backup; the manifest is the last one.

    The database comes first: logs only grow, so that every line that it knows of is in them.
    """
    began = timezone.now()
    for part in (DATABASE, LOGS, KEYS):
        (partial / part).mkdir(mode=0o700)
    copied = partial / DATABASE / database.FILES[connection.vendor]
    snapshot = database.copy(copied)
    entries = [Entry(f"{DATABASE}/{copied.name}", *files.hash_of(copied))]
    logs, linked, unreadable = _copy_logs(partial, before)
    entries += logs
    for name in KEY_FILES if keys else ():
        source = Path(settings.CLAUDEOPS_DATA_DIR) / name
        if source.is_file():
            entries.append(Entry(f"{KEYS}/{name}", *files.copy(source, partial / KEYS / name)))
    written = Manifest(
        at=at,
        began=began,
        version=__version__,
        vendor=connection.vendor,
        host=settings.CLAUDEOPS_HOST,
        data_folder=str(settings.CLAUDEOPS_DATA_DIR),
        daily=daily,
        migrations=snapshot.migrations,
        files=tuple(entries),
        missing_logs=tuple(manifest.missing(snapshot, entries)),
        unreadable=tuple(unreadable),
    )
    with whole_file(partial / MANIFEST) as out:
        out.write(written.as_json())
    files.sync_folders(partial)
    return Made(partial, written, linked)


def _copy_logs(partial: Path, before: Path | None) -> tuple[list[Entry], int, list[str]]:
    """Copy the raw logs, or link what is unchanged since the backup `before`.

    Returns them, how many are links, and what cannot be read: no agent prevents backups by the rights of its files.
    """
    earlier = _read(before)
    known = {entry.path: entry for entry in earlier.of(LOGS)} if earlier else {}
    entries: list[Entry] = []
    linked = 0
    unreadable: list[str] = []

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # there is no session yet, or a failed import has removed its own
            unreadable.append(str(error.filename))

    for name in files.raw_logs(sessions_folder(), note):
        path, live, target = f"{LOGS}/{name}", sessions_folder() / name, partial / LOGS / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        unchanged = before and earlier and path in known and files.is_unchanged(live, before / path, earlier.began)
        if before and unchanged and files.link(before / path, target):
            entries.append(known[path])
            linked += 1
            continue
        try:
            entries.append(Entry(path, *files.copy(live, target)))
        except PermissionError:
            unreadable.append(path)
        except FileNotFoundError:  # an import that failed has removed its own
            if live.exists():
                raise
    return entries, linked, unreadable


def _read(before: Path | None) -> Manifest | None:
    try:
        return manifest.read(before) if before else None
    except BackupError:
        return None


def remove_oldest(folder: Path, keep: int, *, spare: Path, ending: str = "") -> list[str]:
    """Remove complete backups of this data folder but for the newest `keep`, never `spare`; return their names.

    Of daily ones alone with `ending`. Each is renamed before it is deleted, so that half a backup never looks whole.
    """
    others = []
    for path in complete(folder):
        found = _read(path)
        if found and path != spare and path.name.endswith(ending) and _is_mine(found):
            others.append(path)
    removed = []
    for path in others[: max(0, len(others) + 1 - keep)]:
        doomed = path.with_name(f"{path.name}{PARTIAL}")
        try:
            path.rename(doomed)
            files.remove(doomed)
        except OSError as error:
            raise BackupError(
                "not_removed",
                f"The backup {spare.name} was made, but {path.name} was not removed: {error.strerror}.",
                "Remove it by hand.",
            ) from error
        removed.append(path.name)
    return removed


def _is_mine(found: Manifest) -> bool:
    return (found.host, found.data_folder) == (settings.CLAUDEOPS_HOST, str(settings.CLAUDEOPS_DATA_DIR))
