"""Read the complete lines of a growing file from an offset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
