"""Whether a later memory supersedes an earlier one, and raising it above that. Pure.

Age as a signal of its own cannot do this: weeks between two facts move a score by less than the words "is now" do,
and a weight that outweighs them buries every old fact that still holds. The cosine alone cannot either: "Reports are
built in Metabase now" is no nearer to "Reports are built in Tableau" than a fact about another report is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memories.recall.query import Query
from memories.recall.results import Candidate
from memories.recall.terms import STOP_WORDS, term_of, words

Likeness = Callable[[Sequence[int]], NDArray[np.float32]]
"""How likely each memory (row) supersedes an older one (column), (n, n) in the order of their ids: what `likely` gives;
0 where one has no vector."""

LOOKED_AT = 20
"""Hits that are compared, the best: what stands further down is not shown."""
ALIKE = 1.22
"""Nine of ten facts that superseded another one reach this with it; of other facts on the same service one of fifty."""
ANSWERS = 0.47
"""What a hit that covers the whole query gets for that: what superseded a fact still answers the question."""
LEAD = 1.1
"""An older hit whose score is higher by more than this stays above."""
FIRST = 10
"""Of the hits that may yield: what stands further down is hardly shown."""
LEAST = 0.4
"""Cosine below which two memories are of different matters, whatever their words."""
SHARED = 0.62
"""All terms of the earlier one stand in the later one as well: on the scale of a cosine, as all that follows."""
NAMED = 0.24
"""The question names a host, a port, a version that the earlier one has and the later one has not."""
ANOTHER = 0.21
"""Where the earlier one has a word of the question, the later one has another: of two of a kind each is a fact."""
CHANGED = 0.22
"""The later one tells of a change."""
ASKED = 0.07
"""For each word of a question whether it is so that only the earlier one has: it is what has changed, most often."""
MOST_ASKED = 3

CHANGE = frozenset(
    """now since longer anymore instead gone changed moved removed replaced replaces stopped switched upgraded migrated
    raised lowered reduced increased extended shortened renamed abolished retired""".split()  # noqa: SIM905
)
"""Words of which people make "it is not as it was"."""
WHETHER = re.compile(
    r"\s*(?:is|are|was|were|does|do|did|may|can|could|should|must|has|have|will|how (?:do|can) i|what to do)\b",
    re.IGNORECASE,
)
"""How a question begins that says itself what may be so."""
NAMING = re.compile(r"[_0-9]")
"""In a term, one that names something."""
CAPITAL = re.compile(r"(?<=\s)[A-Z]\w*")
"""Within a text, one names something."""


def raised(ranked: Sequence[Candidate], likeness: Likeness, lead: float = LEAD) -> dict[int, float]:
    """Of candidates, best first: the new scores of those that are raised to that of an older one above them."""
    top = ranked[:LOOKED_AT]
    pairs = [
        (below, above)
        for below in range(1, len(top))
        for above in range(below)
        if _may_yield(top[above], top[below], lead)
    ]
    if not pairs:
        return {}
    likely = likeness([one.memory_id for one in top])
    found: dict[int, float] = {}
    for below, above in pairs:
        newer = top[below]
        if likely[below, above] + ANSWERS * newer.coverage >= ALIKE:
            found[newer.memory_id] = max(found.get(newer.memory_id, 0.0), top[above].score)
    return found


def _may_yield(older: Candidate, newer: Candidate, lead: float) -> bool:
    """Whether the one above is older, about the same service, and hardly fits the query better."""
    return (
        newer.confirmed_at > older.confirmed_at
        and not (newer.sequence or older.sequence)
        and (newer.service == older.service or not (newer.service and older.service))
        and older.score - newer.score <= lead
        and (newer.phrase or not older.phrase)
    )


@dataclass(frozen=True, slots=True)
class Said:
    """What is compared of a text: its terms, those of them that name something, whether it tells of a change."""

    order: tuple[str, ...]
    terms: frozenset[str]
    names: frozenset[str]
    change: bool


def likely(cosines: NDArray[np.float32], candidates: Sequence[Candidate], asked: Query) -> NDArray[np.float32]:
    """How likely memory [later, earlier] says anew what the earlier one said, about 0..1.8; 0 where it cannot be.

    `cosines` and `candidates` are in one order, best first. Only pairs of one service, or of which one names none,
    are compared, and only where the newer one stands below the older one.
    """
    found = np.zeros_like(cosines)
    terms, whether = frozenset(asked.terms), WHETHER.match(asked.text) is not None
    for below, above in np.argwhere(np.tril(cosines[:, :FIRST], -1) >= LEAST).tolist():
        later, earlier = candidates[below], candidates[above]
        if later.sequence or later.confirmed_at <= earlier.confirmed_at:
            continue
        if later.service == earlier.service or not (later.service and earlier.service):
            by_words = words_of(said(earlier.observation), said(later.observation), terms, whether)
            found[below, above] = cosines[below, above] + by_words
    return found


def words_of(earlier: Said, later: Said, asked: frozenset[str], whether: bool) -> float:
    """What the words of both add to their cosine."""
    missing = (earlier.terms & asked) - later.terms
    value = SHARED * len(earlier.terms & later.terms) / max(1, len(earlier.terms))
    if not missing.isdisjoint(earlier.names):
        value -= NAMED
    if missing and another(earlier, later, missing):
        value -= ANOTHER
    if whether:
        value += ASKED * min(MOST_ASKED, len(missing))
    return value + CHANGED if later.change else value


@lru_cache(maxsize=4_000)
def said(text: str) -> Said:
    spoken = words(text)
    order = tuple(dict.fromkeys([term_of(word) for word in spoken if word not in STOP_WORDS]))
    names = set(filter(NAMING.search, order))
    names.update(term_of(word.lower()) for word in CAPITAL.findall(text))
    change = not CHANGE.isdisjoint(spoken) or "any more" in text.lower()
    return Said(order, frozenset(order), frozenset(names), change)


def another(earlier: Said, later: Said, missing: frozenset[str]) -> bool:
    """Whether the later one has other words just where the earlier one has a word of the question: of the tenant
    audit, of the tenant dev. What stands at the end of a text is what is said of it, and may have changed."""
    for term in missing:
        at = earlier.order.index(term)
        before = earlier.order[at - 1] if at else ""
        after = next((one for one in earlier.order[at + 1 : at + 3] if one in later.terms), "")
        if not after:
            continue
        there = later.order.index(after)
        for place in range(there - 1, max(-1, there - 4), -1):
            own = later.order[place]
            if own in earlier.terms:
                break
            if (later.order[place - 1] if place else "") == before:
                return True
    return False
