"""Complete lines of a growing file, from an offset on. Knows nothing of what the lines mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAX_LINE = 64 * 1024 * 1024
"""Bytes of the longest line that is read whole; a longer one is passed over, so that memory stays flat."""


@dataclass(frozen=True, slots=True)
class RawLine:
    """`data` is None for a line over MAX_LINE. Offsets are bytes; `end` is where the next line begins."""

    start: int
    end: int
    data: bytes | None


def complete_lines(path: Path, offset: int, *, final: bool = False) -> Iterator[RawLine]:
    """Lines of `path` from `offset`. The last one without a line end only when `final` (nobody writes any more).

    A file that is not there has no lines.
    """
    try:
        file = path.open("rb")
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
                size, ended = _pass_over(file)
                if not ended and not final:
                    return
                yield RawLine(offset, offset + len(data) + size, None)
                offset += len(data) + size
                continue
            if final:
                yield RawLine(offset, offset + len(data), data)
            return


def _pass_over(file: BinaryIO) -> tuple[int, bool]:
    """Read on to the line's end: (bytes passed, whether the end came)."""
    size = 0
    while chunk := file.readline(MAX_LINE):
        size += len(chunk)
        if chunk.endswith(b"\n"):
            return size, True
    return size, False
