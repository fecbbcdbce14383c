"""How often sessions used memories, and how often that helped.

The app of sessions keeps the uses. It imports this app, not the reverse, so it hands over its count at start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple


class Uses(NamedTuple):
    """Sessions that used a memory, and those of them that completed."""

    used: int = 0
    helped: int = 0


Count = Callable[[Collection[int]], Mapping[int, Uses]]
"""Map the ids of memories to their uses, in one query; a memory that was never used may be missing."""

_counts: list[Count] = []


def count_by(count: Count) -> None:
    """Take `count` as the one count, in place of any before it."""
    _counts[:] = [count]


def uses_of(memories: Collection[int]) -> dict[int, Uses]:
    """Map each of `memories` (ids) to its uses. One query, none for no memory."""
    known = _counts[0](memories) if _counts and memories else {}
    return {pk: known.get(pk, Uses()) for pk in memories}
