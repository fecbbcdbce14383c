"""The manifest of a backup: what it holds, with sizes and SHA-256. Pure, but for reading and writing the file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from claudeops.backups.errors import BackupError
from claudeops.backups.folder import MANIFEST
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


@dataclass(frozen=True, slots=True)
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
    migrations: tuple[str, ...]
    files: tuple[Entry, ...]
    missing_logs: tuple[str, ...]
    unreadable: tuple[str, ...]
    format: int = field(default=FORMAT)

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
        found = outside_json.loads(path.read_text(encoding="utf-8"))
        if int(found["format"]) > FORMAT:
            raise BackupError(
                "newer_backup", f"{folder} has the format of a newer claudeops ({found['version']}).", "Update first."
            )
        manifest = Manifest(
            **{
                **found,
                "at": datetime.fromisoformat(found["at"]),
                "began": datetime.fromisoformat(found["began"]),
                "migrations": tuple(found["migrations"]),
                "missing_logs": tuple(found["missing_logs"]),
                "unreadable": tuple(found["unreadable"]),
                "files": tuple(_entry(one) for one in found["files"]),
            }
        )
        manifest.database  # noqa: B018  (raises StopIteration without one)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise BackupError(
            "damaged_backup", f"{path} cannot be read: {error or type(error).__name__}.", "Use another backup."
        ) from error
    return manifest


def _entry(found: dict[str, Any]) -> Entry:
    path = PurePosixPath(found["path"])
    if path.is_absolute() or ".." in path.parts or len(path.parts) < 2 or path.parts[0] not in (DATABASE, LOGS, KEYS):
        raise ValueError(f"{str(path)!r} is no file of a backup")
    return Entry(str(path), int(found["size"]), str(found["sha256"]))
