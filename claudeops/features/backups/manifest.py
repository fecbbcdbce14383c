"""The manifest of a backup, which says what it holds with sizes and SHA-256; and the check of a backup by it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from claudeops.features.backups import database, files
from claudeops.features.backups.database import Snapshot
from claudeops.features.backups.folder import MANIFEST, BackupError, printable
from claudeops.lib import outside_json

FORMAT = 1
DATABASE, LOGS, KEYS = "database", "sessions", "keys"
"""The parts: the first name of a file's path."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: its path in the backup (POSIX, relative), bytes, SHA-256 in hexadecimal."""

    path: str
    size: int
    sha256: str

    @property
    def part(self) -> str:
        return PurePosixPath(self.path).parts[0]


@dataclass(slots=True)
class Manifest:
    """`at` is the time in its name, `began` that of the clock when it was begun (UTC). `migrations` are those applied,
    as app.name.

    `missing_logs` are raw logs that a session names and that were not in the data folder any more; `unreadable` are
    files and folders of sessions that claudeops may not read.
    """

    at: datetime
    began: datetime
    version: str
    vendor: str
    host: str
    data_folder: str
    daily: bool
    migrations: list[str] = field(default_factory=list)
    files: list[Entry] = field(default_factory=list)
    missing_logs: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    format: int = FORMAT

    @property
    def database(self) -> Entry:
        return next(entry for entry in self.files if entry.part == DATABASE)

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.files)

    def of(self, part: str) -> list[Entry]:
        return [entry for entry in self.files if entry.part == part]

    def as_json(self) -> str:
        return json.dumps({**asdict(self), "at": self.at.isoformat(), "began": self.began.isoformat()}, indent=1) + "\n"


def read(folder: Path) -> Manifest:
    """Read the manifest of the backup in `folder`. Raises BackupError when it is damaged or of a newer format."""
    path = folder / MANIFEST
    try:
        data = outside_json.loads(path.read_text(encoding="utf-8"))
        if int(data["format"]) > FORMAT:
            raise BackupError(
                "newer_backup", f"{folder} has the format of a newer claudeops ({data['version']}).", "Update first."
            )
        manifest = Manifest(
            **{
                **data,
                "at": datetime.fromisoformat(data["at"]),
                "began": datetime.fromisoformat(data["began"]),
                **{name: list(data[name]) for name in ("migrations", "missing_logs", "unreadable")},
                "files": [_entry(one) for one in data["files"]],
            }
        )
        manifest.database  # noqa: B018  (raises StopIteration without one)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise BackupError(
            "damaged_backup", f"{path} cannot be read: {error or type(error).__name__}.", "Use another backup."
        ) from error
    return manifest


def _entry(data: dict[str, Any]) -> Entry:
    path = PurePosixPath(data["path"])
    if path.is_absolute() or ".." in path.parts or len(path.parts) < 2 or path.parts[0] not in (DATABASE, LOGS, KEYS):
        raise ValueError(f"{str(path)!r} is no file of a backup")
    return Entry(str(path), int(data["size"]), str(data["sha256"]))


def missing(snapshot: Snapshot, entries: Sequence[Entry]) -> list[str]:
    """Name the raw logs that the database has read further than the backup goes."""
    sizes = {entry.path: entry.size for entry in entries}
    return sorted({log for log, read in snapshot.logs if sizes.get(os.path.normpath(log), -1) < read})


@dataclass(slots=True)
class Verified:
    """`problems` and `notes` are sentences for people; a backup with a problem cannot be restored."""

    path: Path
    manifest: Manifest
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def verify(path: Path) -> Verified:
    """Check the backup in `path`. Raises BackupError when its manifest cannot be read or a program is missing."""
    report = Verified(path, read(path))
    # Keys may be kept elsewhere; a folder `keys` that is there must be whole.
    apart = not any((path / entry.path).exists() for entry in report.manifest.of(KEYS))
    for entry in report.manifest.files:
        if not (entry.part == KEYS and apart) and (problem := _problem(path, entry)):
            report.problems.append(problem)
    if apart:
        report.notes.append("It holds no keys.")
    if not any(problem.startswith(DATABASE) for problem in report.problems):
        _check_database(report)
    if report.manifest.missing_logs:
        report.notes.append(f"Raw logs that were gone already when it was made: {len(report.manifest.missing_logs)}.")
    if report.manifest.unreadable:
        report.notes.append(f"Files of sessions that could not be read then: {len(report.manifest.unreadable)}.")
    return report


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


def _check_database(report: Verified) -> None:
    path = report.path / report.manifest.database.path
    try:
        if report.manifest.vendor == "sqlite":
            snapshot = database.check_sqlite(path, report.manifest.host)
            lost = set(missing(snapshot, report.manifest.files)) - set(report.manifest.missing_logs)
            report.problems += [
                f"{printable(log)} ends before what the database has read of it." for log in sorted(lost)
            ]
        else:
            database.check_postgresql(path)
    except BackupError as error:
        if error.code == "program_missing":
            raise
        report.problems.append(str(error))
