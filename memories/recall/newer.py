"""Of two hits that say nearly the same, the newer comes first: what replaced a fact reads much like it. Pure.

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
"""Cosines of memories with one another, (n, n) in the order of their ids; 0 where one has no vector."""

LOOKED_AT = 20
"""Hits that are compared, the best: what stands further down is not shown."""
ALIKE = 0.65
"""Of 60 facts and those that replaced them 95 % are nearer than this, of facts on the same service 5 %."""
LEAD = 0.2
"""An older hit that is better by more than this was meant."""
MORE_WORDS = 0.1
"""Nor does one yield that covers more of the query by this share: a host, a port or a version was asked for."""


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
    cosines = likeness([one.memory_id for one, _ in top])
    found: dict[int, float] = {}
    for below, above in pairs:
        if cosines[below, above] >= ALIKE:
            newer = top[below][0].memory_id
            found[newer] = max(found.get(newer, 0.0), top[above][1])
    return found


def _may_yield(above: tuple[Candidate, float], below: tuple[Candidate, float], lead: float) -> bool:
    """Whether the one above is older, of the same matter, and hardly fits the query better."""
    (older, better), (newer, score) = above, below
    return (
        newer.confirmed_at > older.confirmed_at
        and not (newer.sequence or older.sequence)
        and newer.service == older.service
        and better - score <= lead
        and older.coverage - newer.coverage <= MORE_WORDS
        and (newer.phrase or not older.phrase)
    )
