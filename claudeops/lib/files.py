"""Write a file whole or not at all, and keep what is in the data folder from other users of the machine."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import NamedTemporaryFile
from typing import IO, Any

from django.conf import settings


@contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """Open `path` for text in UTF-8; it has the new content when the block ends, and the old one after an error.

    The file is readable by its user only. Raises OSError.
    """
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name[:100]}.", delete=False) as out:
        try:
            yield out
            out.flush()
            os.fsync(out.fileno())
            Path(out.name).replace(path)
        except BaseException:
            Path(out.name).unlink(missing_ok=True)
            raise


def replace_file(path: Path, data: bytes) -> None:
    """Give `path` the bytes `data`, whole or not at all, with its mode and owner if it exists. Raises OSError."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        replace_in(folder, path.name, data)
    finally:
        os.close(folder)


def replace_in(folder: int, name: str, data: bytes, *, aside: str = "") -> None:
    """As `replace_file`, for the file `name` in a folder that is open as the descriptor `folder`. Raises OSError.

    `aside` is where the content is written first; a caller that is the only one may name it, so that what a killed
    process left there is overwritten.
    """
    if aside:
        with suppress(FileNotFoundError):
            os.unlink(aside, dir_fd=folder)
    aside = aside or f".{name[:100]}.{token_hex(8)}"
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as out:
            _take_over(out.fileno(), folder, name)
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(aside, dir_fd=folder)
        raise
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    try:
        os.fsync(readable)  # the name is on the disk, too
    finally:
        os.close(readable)


def _take_over(descriptor: int, folder: int, name: str) -> None:
    """Give a new file the mode of the file `name`, and its owner where this process may."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISREG(status.st_mode):
        with suppress(PermissionError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


log = logging.getLogger(__name__)


def keep_private(**signal: Any) -> None:
    """Take the rights of others from the files and folders directly in the data folder; links stay as they are.

    At each connection: SQLite has made its file by then, and the ones beside it get the rights of that. By path: to
    open and close its file would end the locks that this process holds on it.
    """
    try:
        for entry in os.scandir(settings.CLAUDEOPS_DATA_DIR):
            mode = entry.stat(follow_symlinks=False).st_mode
            if mode & 0o077 and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                os.chmod(entry.path, stat.S_IMODE(mode) & 0o700)  # noqa: PTH101
    except FileNotFoundError:
        pass  # the next connection looks again
    except OSError as error:
        log.warning("Other users may read what is in the data folder: %s", error)
