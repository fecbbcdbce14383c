"""Select the hits to return from a ranking, without near-duplicates. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memories.recall import trust
from memories.recall.filters import InvalidRecall
from memories.recall.fusion import Weights
from memories.recall.query import STOP_WORDS, Query, term_of, words
from memories.recall.results import Candidate

NEAR_IDENTICAL = 0.92
"""Overlap of terms (Jaccard) from which two hits with equal numbers are near-duplicates."""
NEGATIONS = frozenset({"no", "not", "never", "nor", "without", "cannot", "dont", "doesnt", "isnt", "wont", "cant"})
"""Some are stop words, yet two texts that differ in one do not say the same."""


def above_minimum(
    ranked: Iterable[Candidate], weights: Weights, by_words: bool, dropped: Counter[str]
) -> list[Candidate]:
    """Drop candidates below the minimum score, which is lower without vectors."""
    floor = weights.minimum_by_words if by_words else weights.minimum
    everything = list(ranked)
    candidates = [one for one in everything if one.fused + one.context + one.gentler >= floor]
    dropped[trust.BELOW_MINIMUM] += len(everything) - len(candidates)
    return candidates


def select(ranked: Sequence[Candidate], wanted: int) -> tuple[list[Candidate], dict[int, list[int]]]:
    """Return the best `wanted` distinct candidates, and the near-duplicates of each."""
    compared = {one.memory_id for one in ranked[: 4 * wanted + 20]}
    terms_by_id: dict[int, frozenset[str]] = {}

    def terms_of(one: Candidate) -> frozenset[str] | None:
        if one.memory_id in compared and one.memory_id not in terms_by_id:
            terms_by_id[one.memory_id] = _said(one)
        return terms_by_id.get(one.memory_id)

    return collapse(ranked, lambda a, b: near_identical(terms_of(a), terms_of(b)), wanted)


def _said(one: Candidate) -> frozenset[str]:
    """Return the service, the terms, and the negations among the stop words."""
    spoken = words(one.observation)
    terms = {term_of(word) for word in spoken if word not in STOP_WORDS}
    return frozenset({f"={one.service or ''}", *terms, *(NEGATIONS & STOP_WORDS).intersection(spoken)})


def collapse(
    ranked: Sequence[Candidate], alike: Callable[[Candidate, Candidate], bool], most: int
) -> tuple[list[Candidate], dict[int, list[int]]]:
    """Return the first `most` that are not alike, and the others that are like each."""
    distinct: list[Candidate] = []
    stands_for: dict[int, list[int]] = {}
    for one in ranked:
        twin = next((k for k in distinct if alike(k, one)), None)
        if twin is not None:
            stands_for.setdefault(twin.memory_id, []).append(one.memory_id)
        elif len(distinct) < most:
            distinct.append(one)
        else:
            break
    return distinct, stands_for


def near_identical(a: frozenset[str] | None, b: frozenset[str] | None) -> bool:
    """Whether two sets of terms are nearly equal; a number that differs makes them distinct."""
    if not a or not b:
        return False
    shared = len(a & b)
    if shared < NEAR_IDENTICAL * (len(a) + len(b) - shared):
        return False
    return not any(c.isdigit() for term in a ^ b for c in term)


MOST = 100


@dataclass(frozen=True, slots=True)
class Profile:
    """`least` hits, up to `most` while each reaches `share` of the best score.

    `rewrite`: whether a query may be rewritten.
    """

    name: str
    least: int
    most: int
    share: float
    rewrite: bool


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("lean", 2, 3, 0.60, rewrite=False),
        Profile("balanced", 5, 7, 0.50, rewrite=True),
        Profile("deep", 10, 15, 0.40, rewrite=True),
    )
}
AUTO = "auto"
NAMES = (*PROFILES, AUTO)
LONG_QUESTION = 8
"""Terms from which a question asks for more than one thing."""


def profile_named(name: str, query: Query) -> Profile:
    """Return the profile of this name. Auto: lean for literal queries, deep for long questions."""
    if name == AUTO:
        name = "lean" if query.literal else "deep" if len(query.terms) > LONG_QUESTION else "balanced"
    if name not in PROFILES:
        raise InvalidRecall(f"profile is {name!r}; allowed are {', '.join(NAMES)}.")
    return PROFILES[name]


def hits_to_return(profile: Profile, limit: int | None, scores: list[float]) -> int:
    """Return how many hits with these scores (best first) to return; `limit` overrides the profile."""
    if limit is not None:
        if not 1 <= limit <= MOST:
            raise InvalidRecall(f"limit is {limit}; allowed is 1 to {MOST}.")
        return limit
    if not scores:
        return 0
    good = sum(score >= profile.share * scores[0] for score in scores[: profile.most])
    return max(min(profile.least, len(scores)), good)
