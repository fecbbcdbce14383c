"""Read and write a file in a folder that agents can write in, too: whole or not at all, and through no link."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from claudeops.lib.domain_error import DomainError
from claudeops.lib.files import replace_in
from claudeops.lib.tracked_file.document import LARGEST

SEARCH = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
"""Open a folder to look for names in it, which needs no right to list them."""


class Problem(StrEnum):
    """Why a file cannot be used."""

    UNREADABLE = "unreadable"
    CONFLICT = "conflict"
    DELETED = "deleted"
    UNWRITABLE = "unwritable"
    NO_REPOSITORY = "no_repository"


class Unusable(DomainError):
    """The file cannot be used as it is: `state` is the kind of its problem, the text says which, `fix` what to do."""

    code = "memory_file"

    def __init__(self, message: str, fix: str = "", *, state: Problem = Problem.UNREADABLE) -> None:
        super().__init__(message, fix)
        self.state = state


@dataclass(frozen=True, slots=True)
class Stored:
    """The bytes of a file, and what the file system says of them. `missing`: there is no such file."""

    data: bytes = b""
    size: int = 0
    modified_ns: int = 0
    missing: bool = False

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def read(path: Path) -> Stored:
    """Read the file at an absolute path without links; LARGEST + 1 bytes of a larger one. Raises Unusable."""
    try:
        with _folder_of(path) as folder:
            # Not through a link, and never waiting for a pipe.
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Unusable(f"{path} is not a file.", "Put a plain file in its place.")
            if status.st_nlink > 1:
                raise Unusable(
                    f"{path} has other names (a hard link): it may be a file from elsewhere, and is not read.",
                    "Put a copy of it in its place.",
                )
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return Stored(file.read(LARGEST + 1), status.st_size, status.st_mtime_ns)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return Stored(missing=True)
    except OSError as error:
        raise _unusable(path, error) from None


def write(path: Path, data: bytes) -> Stored:
    """Write a file whole: it has the new content afterwards, or the old one. Its mode stays. Raises Unusable."""
    try:
        with _folder_of(path, make=True) as folder:
            replace_in(folder, path.name, data, aside=f".{path.name[:100]}.claudeops")
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        raise _unusable(path, error, Problem.UNWRITABLE) from None
    return Stored(data, status.st_size, status.st_mtime_ns)


def create(path: Path, data: bytes) -> bool:
    """Write a file unless something of its name is there. Raises Unusable."""
    try:
        with _folder_of(path, make=True) as folder:
            descriptor = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
    except FileExistsError:
        return False
    except OSError as error:
        raise _unusable(path, error, Problem.UNWRITABLE) from None
    return True


def remove(path: Path) -> None:
    """Remove a file, which may be gone already. Raises Unusable."""
    try:
        with _folder_of(path) as folder, suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(path, error, Problem.UNWRITABLE) from None


def words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


@contextmanager
def _folder_of(path: Path, *, make: bool = False) -> Iterator[int]:
    """Open the folder of a file, step by step and through no link: whoever resolved the path looked a while ago."""
    descriptor = os.open(path.anchor, SEARCH)
    try:
        for name in path.parts[1:-1]:
            try:
                below = os.open(name, SEARCH | os.O_NOFOLLOW, dir_fd=descriptor)
            except FileNotFoundError:
                if not make:
                    raise
                with suppress(FileExistsError):  # another process was faster
                    os.mkdir(name, dir_fd=descriptor)
                below = os.open(name, SEARCH | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _unusable(path: Path, error: OSError, state: Problem = Problem.UNREADABLE) -> Unusable:
    link = None
    with suppress(OSError):
        link = next((one for one in (path, *path.parents) if one.is_symlink()), None)
    if link is not None:
        return Unusable(
            f"{link} is a symbolic link; it is not followed.", "Put a plain file or folder in its place.", state=state
        )
    return Unusable(f"{path}: {words(error)}.", state=state)
