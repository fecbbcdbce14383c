"""Read a raw log page by page, for a browser: never more of it than one page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from claudeops.lib.secrets import mask_bytes

PAGE_BYTES = 128 * 1024
MARGIN = 4096
"""Bytes around a page that are masked with it, so that a credential at its edge is whole when it is looked for."""


@dataclass(frozen=True, slots=True)
class RawPage:
    """The bytes from `start` to `end` of `size`; `number` counts pages from 1 to `last`."""

    text: str
    number: int
    last: int
    start: int
    end: int
    size: int


def raw_page(path: Path, number: int) -> RawPage:
    """Return one page of the file, masked; the last one for a number behind it. Raises OSError."""
    size = path.stat().st_size
    last = max(-(-size // PAGE_BYTES), 1)
    number = min(number, last)
    start = (number - 1) * PAGE_BYTES
    before = min(start, MARGIN)
    with path.open("rb") as file:
        file.seek(start - before)
        data = file.read(before + PAGE_BYTES + MARGIN)
    masked, _ = mask_bytes(data)  # as long as what it masks
    shown = masked[before : before + PAGE_BYTES]
    text = shown.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return RawPage(text, number, last, start, start + len(shown), size)
