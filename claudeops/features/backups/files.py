"""Copy files with their hash, safely on disk when the function returns. Every function raises OSError."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from sessions_app.runner.launch import MCP_CONFIG

CHUNK = 1024 * 1024
ATTEMPTS = 3
"""How often a file is copied that changes meanwhile without growing: it is being masked."""
MARGIN = timedelta(seconds=2)
"""How much older than a backup a change must be for that backup to have it: clocks of file systems are coarse."""
NOT_COPIED = (MCP_CONFIG,)
"""Holds DATABASE_URL, and is of no use once its session has ended."""
TEMPORARY = "tmp"
"""The agent's own temporary folder in a session's."""


def raw_logs(sessions: Path, on_error: Callable[[OSError], object] | None = None) -> Iterator[str]:
    """Yield the files below the sessions' folder, relative to it, in order. Links are never followed.

    `on_error` gets the error of a folder that cannot be read.
    """
    for here, folders, names in os.walk(sessions, onerror=on_error):
        depth = len(Path(here).relative_to(sessions).parts)
        folders[:] = sorted(name for name in folders if not (depth == 2 and name == TEMPORARY))
        for name in sorted(names):
            path = Path(here) / name
            if name not in NOT_COPIED and stat.S_ISREG(path.lstat().st_mode):
                yield str(path.relative_to(sessions))


def copy(source: Path, target: Path) -> tuple[int, str]:
    """Copy a file with its times and its owner's rights; return (bytes, SHA-256). It may grow meanwhile.

    A file that changes without growing is copied again: masking rewrites it in place.
    """
    for _ in range(ATTEMPTS):
        size, digest, steady = _copy_once(source, target)
        if steady:
            break
    return size, digest


def _copy_once(source: Path, target: Path) -> tuple[int, str, bool]:
    digest = hashlib.sha256()
    with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb") as read:  # noqa: PTH123  (a descriptor)
        before = os.fstat(read.fileno())
        remaining = before.st_size
        target.unlink(missing_ok=True)
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target_file:  # noqa: PTH123
            while remaining and (data := read.read(min(remaining, CHUNK))):
                digest.update(data)
                target_file.write(data)
                remaining -= len(data)
            target_file.flush()
            os.fchmod(target_file.fileno(), stat.S_IMODE(before.st_mode) & 0o700)
            os.utime(target_file.fileno(), ns=(before.st_mtime_ns, before.st_mtime_ns))
            os.fsync(target_file.fileno())
        after = os.fstat(read.fileno())
    steady = after.st_mtime_ns == before.st_mtime_ns or after.st_size > before.st_size
    return before.st_size - remaining, digest.hexdigest(), steady


def is_unchanged(live: Path, earlier: Path, since: datetime) -> bool:
    """Whether `earlier`, a copy of a backup begun at `since`, is what `live` still holds.

    The change time of the file decides: unlike the modification time no program can set it.
    """
    try:
        now, then = live.lstat(), earlier.lstat()
    except FileNotFoundError:
        return False
    same = now.st_size == then.st_size and now.st_mtime_ns == then.st_mtime_ns
    return same and now.st_ctime < (since - MARGIN).timestamp()


def link(earlier: Path, target: Path) -> bool:
    """Link a file of an earlier backup. False where the file system has no hard links, or no more for this file."""
    try:
        os.link(earlier, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def hash_of(path: Path) -> tuple[int, str]:
    """Return (bytes, SHA-256)."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()


def sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(top: Path) -> None:
    for here, _folders, _names in os.walk(top):
        sync_folder(Path(here))
