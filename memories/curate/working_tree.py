"""The MEMORY.md in a working tree: find its repository, read and write it, and see cheaply whether it changed.

A path is followed through no symbolic link below its repository, so that it never leaves it.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from django.conf import settings

from claudeops.lib.tracked_file import disk, git
from claudeops.lib.tracked_file import document as tracked
from claudeops.lib.tracked_file.disk import Unusable, words
from claudeops.lib.tracked_file.git import GitError, Repository
from memories.models import Project
from memories.models.project import is_obeyed

OWN_FOLDER = "memory"
"""The repository of our own, in the data folder."""
NAME = "MEMORY.md"
SETTLED = 100_000_000
"""Nanoseconds after which a file's time tells a later change apart from an earlier one."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is: a folder in its repository, and its path below that folder; `is_ours`: the repository is."""

    folder: Path
    path: str
    is_ours: bool


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a repository that is there: `path` is below the repository's root, with slashes."""

    repository: Repository
    path: str
    is_ours: bool

    @property
    def file(self) -> Path:
        return self.repository.root / self.path


def place_of(project: Project | None) -> Place:
    """Return where the file of a project (None: the global one) is, or would be, on this host."""
    if project is not None and project.path and project.memory_path:
        return Place(Path(project.path), project.memory_path, is_ours=False)
    if project is None and settings.CLAUDEOPS_MEMORY_FILE:
        chosen = Path(settings.CLAUDEOPS_MEMORY_FILE)
        return Place(chosen.parent, chosen.name, is_ours=False)
    path = NAME if project is None else f"projects/{project.slug}/{NAME}"
    return Place(Path(settings.CLAUDEOPS_DATA_DIR) / OWN_FOLDER, path, is_ours=True)


def find_spot(place: Place) -> Spot | None:
    """Return the place in its repository; None where there is no repository. Raises GitError and Unusable."""
    try:
        folder = place.folder.resolve()
    except (OSError, RuntimeError) as error:
        raise Unusable(f"{place.folder} cannot be read: {words(error)}.") from None
    repository = git.find_repository(folder)
    if repository is None or (place.is_ours and repository.root != folder):
        return None
    path = PurePosixPath(folder.relative_to(repository.root)) / place.path
    if ".." in path.parts or path.is_absolute():
        raise Unusable(f"{place.path} leads out of the repository.", "Give a path below the repository.")
    if not place.is_ours and is_obeyed(PurePosixPath(place.path), folder):
        raise Unusable(f"{path} is where programs obey what they read; it is left alone.", "Give another path.")
    return Spot(repository, str(path), place.is_ours)


def read_file(spot: Spot) -> bytes | None:
    """Return the bytes of the file, None when there is none. Raises Unusable."""
    stored = disk.read(spot.file)
    return None if stored.missing else stored.data


def decode(data: bytes) -> str:
    """Return the text of a file; a byte order mark stays in it. Raises Unusable."""
    try:
        return tracked.decode(data)
    except ValueError as error:
        raise Unusable(f"MEMORY.md cannot be read: {error}.") from None


def check_writable(spot: Spot) -> None:
    """Raise Unusable unless the file may be replaced. A file without a write bit is left alone, also by root."""
    read_file(spot)
    lock = spot.repository.git_dir / "index.lock"
    try:
        folder = next(one for one in spot.file.parents if one.exists())
        for path in (spot.file, folder):
            if path.exists() and not (os.access(path, os.W_OK) and path.stat().st_mode & 0o222):
                raise Unusable(f"{path} is read-only.", f"Make it writable: chmod u+w {path}")
        is_locked = lock.exists()
    except OSError as error:
        raise Unusable(f"{spot.file} cannot be looked at: {words(error)}.") from None
    if is_locked:
        raise GitError("The index is locked by another git process.", f"If none runs, remove {lock}")


def stamp(spot: Spot) -> str:
    """Return what changes when the file or HEAD does, by a few looks at files; "" when they changed just now."""
    try:
        status = os.lstat(spot.file)
        now = time.time_ns()
        if now - max(status.st_mtime_ns, status.st_ctime_ns) < SETTLED:
            return ""
        look: tuple[int, ...] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    except OSError:
        look = ()
    parts = (str(spot.file), *map(str, look), *git.stamp(spot.repository))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
