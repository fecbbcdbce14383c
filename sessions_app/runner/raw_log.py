"""Where raw logs are: the one function that turns a session's `log_file` into a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from django.conf import settings

from sessions_app.errors import RawLogOutside
from sessions_app.models import Session

SUFFIX = ".jsonl"


def sessions_folder() -> Path:
    """Return the folder of all sessions' folders."""
    return Path(settings.CLAUDEOPS_DATA_DIR) / "sessions"


def log_path(session: Session) -> Path:
    """Return the path of the session's raw log, links resolved; it may be missing.

    Raises RawLogOutside unless it is a `.jsonl` file in the sessions' folder: a row that names the secret key, the
    database or a session's MCP token is wrong or forged.
    """
    if "\x00" not in session.log_file:
        path = (Path(settings.CLAUDEOPS_DATA_DIR) / session.log_file).resolve()
        if path.is_relative_to(sessions_folder().resolve()) and path.suffix == SUFFIX:
            return path
    raise RawLogOutside(
        f"The raw log of session {session.pk} is named {session.log_file!r}; a raw log is a {SUFFIX} file in the "
        "sessions' folder.",
        "It is not read. Look at what wrote this row.",
    )


MAX_LINE = 64 * 1024 * 1024
"""Bytes. A longer line is skipped, so that memory stays flat."""


BUFFER = 128 * 1024
"""Bytes that are read at once: most lines are longer than Python's 8 KB."""


class RawLine(NamedTuple):
    """`data` is None for a line longer than MAX_LINE. Offsets are bytes; the next line begins at `end`."""

    start: int
    end: int
    data: bytes | None


def complete_lines(path: Path, offset: int, *, final: bool = False) -> Iterator[RawLine]:
    """Yield the lines of `path` from `offset` on; none without a file.

    A last line without a line end is yielded only when `final`: no process writes the file any more.
    """
    try:
        file = path.open("rb", BUFFER)
    except FileNotFoundError:
        return
    with file:
        file.seek(offset)
        while True:
            data = file.readline(MAX_LINE)
            if not data:
                return
            if data.endswith(b"\n"):
                yield RawLine(offset, offset + len(data), data)
                offset += len(data)
                continue
            if len(data) == MAX_LINE:
                size, ended = _skip_line(file)
                if not ended and not final:
                    return
                yield RawLine(offset, offset + len(data) + size, None)
                offset += len(data) + size
                continue
            if final:
                yield RawLine(offset, offset + len(data), data)
            return


def line_at(path: Path, offset: int) -> bytes | None:
    """Return the line that begins at `offset`; None without a file, and for a line longer than MAX_LINE."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.readline(MAX_LINE + 1)
    except OSError:
        return None
    return data if len(data) <= MAX_LINE else None


def _skip_line(file: BinaryIO) -> tuple[int, bool]:
    """Read up to the line's end; return (bytes read, whether the end was found)."""
    size = 0
    while chunk := file.readline(MAX_LINE):
        size += len(chunk)
        if chunk.endswith(b"\n"):
            return size, True
    return size, False
