"""Of two hits of which the newer replaced the older, the newer comes first. Pure; `replaced` says how likely it did.

Age as a signal of its own cannot do this: weeks between two facts move a score by less than the words "is now" do,
and a weight that outweighs them buries every old truth. Turns of a conversation are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from memories.recall.ranking import Candidate

Likeness = Callable[[Sequence[int]], NDArray[np.float32]]
"""How likely each memory (row) says anew what an older one (column) said, (n, n) in the order of their ids: cosines,
as `replaced` has put them right; 0 where one has no vector."""

LOOKED_AT = 20
"""Hits that are compared, the best: what stands further down is not shown."""
ALIKE = 1.22
"""Nine of ten facts that replaced another one reach this with it, of other facts on the same service one of fifty."""
ANSWERS = 0.47
"""What a hit that covers the whole query gets for that: what replaced a fact still answers the question."""
LEAD = 1.1
"""An older hit that is better by more than this was meant."""


def raised(ranked: Sequence[tuple[Candidate, float]], likeness: Likeness, lead: float = LEAD) -> dict[int, float]:
    """(candidate, score), best first: the scores of those that are raised to that of an older one above them."""
    top = ranked[:LOOKED_AT]
    pairs = [
        (below, above)
        for below in range(1, len(top))
        for above in range(below)
        if _may_yield(top[above], top[below], lead)
    ]
    if not pairs:
        return {}
    likely = likeness([one.memory_id for one, _ in top])
    found: dict[int, float] = {}
    for below, above in pairs:
        newer = top[below][0]
        if likely[below, above] + ANSWERS * newer.coverage >= ALIKE:
            found[newer.memory_id] = max(found.get(newer.memory_id, 0.0), top[above][1])
    return found


def _may_yield(above: tuple[Candidate, float], below: tuple[Candidate, float], lead: float) -> bool:
    """Whether the one above is older, of the same matter, and hardly fits the query better."""
    (older, better), (newer, score) = above, below
    return (
        newer.confirmed_at > older.confirmed_at
        and not (newer.sequence or older.sequence)
        and (newer.service == older.service or not (newer.service and older.service))
        and better - score <= lead
        and (newer.phrase or not older.phrase)
    )
