"""Mask the credentials in the files of a session that has ended: raw logs and stderr.

The CLI writes these files itself. They are masked in place with the same number of bytes, so that the stored offsets
hold and replaying a masked log gives the same rows. A masked file is read-only, which marks it as done; masking again
changes nothing.
"""

from __future__ import annotations

import logging
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from claudeops.lib.secrets import mask_bytes
from sessions_app.models import Session
from sessions_app.runner.raw_log import MAX_LINE

logger = logging.getLogger(__name__)

BLOCK = 16 * 1024 * 1024
"""Bytes of a plain text that are masked at once: a private key in it has many lines."""


def files_of(folder: Path) -> list[Path]:
    """Return the files in a session's folder that hold text from outside."""
    names = ("stdout-*.jsonl", "*.log", "*.md", "handoff.json")
    return sorted(path for name in names for path in folder.glob(name) if path.is_file() and not path.is_symlink())


def seal(session: Session, folder: Path) -> Counter[str]:
    """Mask what the session's process wrote, and make it read-only; return how many credentials, by kind.

    The process must have ended. Does nothing with CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS, nor for files that are read-only.
    A file that cannot be written is logged; `manage.py secrets scan` finds it again.
    """
    kinds: Counter[str] = Counter()
    if settings.CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS:
        return kinds
    for path in files_of(folder):
        try:
            if not is_sealed(path):
                kinds += mask_file(path)
                path.chmod(0o400)
        except OSError as error:
            logger.warning("session %s: credentials in %s were not masked: %s", session.pk, path.name, error.strerror)
    if kinds:
        shown = ", ".join(f"{number} × {kind}" for kind, number in sorted(kinds.items()))
        logger.info("session %s: masked in its raw log: %s", session.pk, shown)
    return kinds


def masked(line: bytes) -> bytes:
    """Return an imported line as its raw log stores it."""
    return line if settings.CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS else mask_bytes(line)[0]


def mask_before_comparing(log: Path) -> None:
    """Mask an imported raw log that an earlier version stored as it was: a longer copy of it is masked, too."""
    if not settings.CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS:
        mask_file(log)


def is_sealed(path: Path) -> bool:
    return not path.stat().st_mode & stat.S_IWUSR


def mask_file(path: Path, *, write: bool = True) -> Counter[str]:
    """Mask the credentials of a file in place, a line at a time; return how many, by kind. Raises OSError.

    Without `write` it only counts. A line longer than the reader's limit is masked in parts.
    """
    return change_file(path, mask_bytes, write=write, by_line=path.suffix == ".jsonl", longest=MAX_LINE)


def change_file(
    path: Path,
    change: Callable[[bytes], tuple[bytes, Counter[str]]],
    *,
    write: bool,
    by_line: bool = False,
    longest: int = -1,
) -> Counter[str]:
    """Change a file in place; return what was found, by kind. Raises OSError. A read-only file stays one.

    `change` gets a line, or a block of whole lines, and returns as many bytes. `longest` is how much of a line is read.
    """
    kinds: Counter[str] = Counter()
    read_only = write and is_sealed(path)
    if read_only:
        path.chmod(0o600)
    with path.open("r+b" if write else "rb") as file:
        for start, data in _parts(file, by_line=by_line, longest=longest):
            new, counts = change(data)
            kinds += counts
            if write and new != data:
                end = file.tell()
                file.seek(start)
                file.write(new)
                file.seek(end)
        if write and kinds:
            file.flush()
            os.fsync(file.fileno())
    if read_only:
        path.chmod(0o400)
    return kinds


def _parts(file: BinaryIO, *, by_line: bool, longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes): a line, or a block that ends with a line."""
    while True:
        start = file.tell()
        data = file.readline(longest) if by_line else file.read(BLOCK)
        if not data:
            return
        if not by_line and len(data) == BLOCK:
            data += file.readline(longest)
        yield start, data
