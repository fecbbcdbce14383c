"""Estimate whether a later memory supersedes an earlier one, and raise it above that.

Pure. Age alone cannot: a weight above wording's buries old facts that still hold. The cosine alone cannot: "Reports are
built in Metabase now" is no nearer to "… in Tableau" than a fact about another report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memories.recall.query import STOP_WORDS, Query, term_of, words
from memories.recall.results import Candidate

Likeness = Callable[[Sequence[int]], NDArray[np.float32]]
"""How likely each memory (row) supersedes an older one (column), (n, n) in the order of their ids; see `likely`."""

LOOKED_AT = 20
"""Best hits that are compared."""
ALIKE = 1.22
"""Threshold: nine of ten superseding facts reach it; of other facts on the same service one of fifty."""
ANSWERS = 0.47
"""For full coverage of the query: a superseding fact still answers the question."""
LEAD = 1.1
"""An older hit with a larger lead in score stays above."""
FIRST = 10
"""Best hits that may be superseded."""
LEAST = 0.4
"""Least cosine of two memories on one matter."""
SHARED = 0.62
"""For all terms of the earlier one in the later one, on the scale of a cosine like all that follow."""
NAMED = 0.24
"""Penalty when the query names a host, port or version that only the earlier one has."""
ANOTHER = 0.21
"""Penalty when the later one has another word in place of a query word: two facts of a kind."""
CHANGED = 0.22
"""For a later one that states a change."""
ASKED = 0.07
"""For each word of a yes-no question that only the earlier one has: usually that has changed."""
MOST_ASKED = 3

CHANGE = frozenset(
    """now since longer anymore instead gone changed moved removed replaced replaces stopped switched upgraded migrated
    raised lowered reduced increased extended shortened renamed abolished retired""".split()  # noqa: SIM905
)
"""Words that state a change."""
WHETHER = re.compile(
    r"\s*(?:is|are|was|were|does|do|did|may|can|could|should|must|has|have|will|how (?:do|can) i|what to do)\b",
    re.IGNORECASE,
)
"""The beginnings of yes-no questions."""
NAMING = re.compile(r"[_0-9]")
"""Marks a term as a name."""
CAPITAL = re.compile(r"(?<=\s)[A-Z]\w*")
"""Marks a word within a text as a name."""


def raised(ranked: Sequence[Candidate], likeness: Likeness, lead: float = LEAD) -> dict[int, float]:
    """Return the new scores of candidates (best first) that are raised to that of an older one above them."""
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
    scores: dict[int, float] = {}
    for below, above in pairs:
        newer = top[below]
        if likely[below, above] + ANSWERS * newer.coverage >= ALIKE:
            scores[newer.memory_id] = max(scores.get(newer.memory_id, 0.0), top[above].score)
    return scores


def _may_yield(older: Candidate, newer: Candidate, lead: float) -> bool:
    """Whether the upper one is older, about the same service, and hardly better."""
    return (
        newer.confirmed_at > older.confirmed_at
        and not (newer.sequence or older.sequence)
        and (newer.service == older.service or not (newer.service and older.service))
        and older.score + older.gentler - newer.score - newer.gentler <= lead
        and (newer.phrase or not older.phrase)
    )


@dataclass(frozen=True, slots=True)
class Said:
    """The compared parts of a text: its terms, the names among them, whether it states a change."""

    order: tuple[str, ...]
    terms: frozenset[str]
    names: frozenset[str]
    change: bool


def likely(cosines: NDArray[np.float32], candidates: Sequence[Candidate], asked: Query) -> NDArray[np.float32]:
    """Return how likely memory [later, earlier] restates the earlier one, about 0..1.8; 0 where it cannot.

    Compares pairs of one service, or of which one names none, where the newer ranks below the older.
    """
    scores = np.zeros_like(cosines)
    terms, whether = frozenset(asked.terms), WHETHER.match(asked.text) is not None
    for below, above in np.argwhere(np.tril(cosines[:, :FIRST], -1) >= LEAST).tolist():
        later, earlier = candidates[below], candidates[above]
        if later.sequence or later.confirmed_at <= earlier.confirmed_at:
            continue
        if later.service == earlier.service or not (later.service and earlier.service):
            by_words = words_of(said(earlier.observation), said(later.observation), terms, whether)
            scores[below, above] = cosines[below, above] + by_words
    return scores


def words_of(earlier: Said, later: Said, asked: frozenset[str], whether: bool) -> float:
    """Return what the words of both add to their cosine."""
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
    """Whether the later one replaces a query word of the earlier one, other than at the end, where values change."""
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
