"""Which memories a bulk action is about: some ids in a compact form, or everything the list shows.

Pure. "Everything" is never written out: the list's own query string says it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MOST_IDS = 20_000
"""Ids that may be named one by one; a page has at most a few hundred boxes to tick."""


class InvalidSelection(ValueError):
    """A posted selection that cannot be read."""


@dataclass(frozen=True, slots=True)
class Selection:
    """`ids` that were ticked, or None for all that the list shows."""

    ids: tuple[int, ...] | None

    @property
    def across(self) -> bool:
        return self.ids is None


def pack(ids: Iterable[int]) -> str:
    """Ids as ranges: "1-50,53,60-61". Sorted, each once."""
    parts: list[str] = []
    start = end = None
    for pk in sorted(set(ids)):
        if end is not None and pk == end + 1:
            end = pk
            continue
        if start is not None:
            parts.append(f"{start}-{end}" if end != start else f"{start}")
        start = end = pk
    if start is not None:
        parts.append(f"{start}-{end}" if end != start else f"{start}")
    return ",".join(parts)


def unpack(text: str) -> tuple[int, ...]:
    """The ids in what `pack` wrote. Raises InvalidSelection for anything else, and for more than MOST_IDS."""
    ids: list[int] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        if not all(number.isascii() and number.isdecimal() and len(number) < 19 for number in (first, last or first)):
            raise InvalidSelection(f"{part[:40]!r} is no id and no range of ids.")
        if dash and not last:
            raise InvalidSelection(f"{part!r} is no id and no range of ids.")
        low, high = int(first), int(last) if dash else int(first)
        if high < low or len(ids) + high - low + 1 > MOST_IDS:
            raise InvalidSelection(f"{part!r} is no range of at most {MOST_IDS:,} ids.")
        ids.extend(range(low, high + 1))
    return tuple(ids)
