"""Check a backup: every size and hash, the database's own integrity, and that every log in the database is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from claudeops.backups import database, files, manifest
from claudeops.backups.errors import BackupError, printable
from claudeops.backups.make import missing
from claudeops.backups.manifest import DATABASE, KEYS, Entry, Manifest


@dataclass(slots=True)
class Verified:
    """`problems` and `notes` are sentences for people; a backup with a problem cannot be restored."""

    path: Path
    manifest: Manifest
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def verify(path: Path) -> Verified:
    """Check the backup in `path`. Raises BackupError when its manifest cannot be read or a program is missing."""
    found = Verified(path, manifest.read(path))
    # Keys may be kept elsewhere; a folder `keys` that is there must be whole.
    apart = not any((path / entry.path).exists() for entry in found.manifest.of(KEYS))
    for entry in found.manifest.files:
        if not (entry.part == KEYS and apart) and (problem := _problem(path, entry)):
            found.problems.append(problem)
    if apart:
        found.notes.append("It holds no keys.")
    if not any(problem.startswith(DATABASE) for problem in found.problems):
        _check_database(found)
    if found.manifest.missing_logs:
        found.notes.append(f"Raw logs that were gone already when it was made: {len(found.manifest.missing_logs)}.")
    if found.manifest.unreadable:
        found.notes.append(f"Files of sessions that could not be read then: {len(found.manifest.unreadable)}.")
    return found


def _problem(folder: Path, entry: Entry) -> str:
    path = folder / entry.path
    if path.is_symlink() or not path.is_file():
        return f"{printable(entry.path)} is missing."
    try:
        size, digest = files.hash_of(path)
    except OSError as error:
        return f"{printable(entry.path)} cannot be read: {error.strerror}."
    if size != entry.size:
        return f"{printable(entry.path)} has {size} bytes instead of {entry.size}."
    return "" if digest == entry.sha256 else f"{printable(entry.path)} has another content: its SHA-256 differs."


def _check_database(found: Verified) -> None:
    path = found.path / found.manifest.database.path
    try:
        if found.manifest.vendor == "sqlite":
            snapshot = database.check_sqlite(path, found.manifest.host)
            lost = set(missing(snapshot, found.manifest.files)) - set(found.manifest.missing_logs)
            found.problems += [
                f"{printable(log)} ends before what the database has read of it." for log in sorted(lost)
            ]
        else:
            database.check_postgresql(path)
    except BackupError as error:
        if error.code == "program_missing":
            raise
        found.problems.append(str(error))
