"""Select the hits to return from a ranking: one of those that say nearly the same. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from memories.recall import trust
from memories.recall.fusion import Weights
from memories.recall.results import Candidate
from memories.recall.terms import STOP_WORDS, term_of, words

NEAR_IDENTICAL = 0.92
"""Overlap of terms (Jaccard) from which two hits are one for a reader, the values in them being the same."""
NEGATIONS = frozenset({"no", "not", "never", "nor", "without", "cannot", "dont", "doesnt", "isnt", "wont", "cant"})
"""Some are stop words, yet two texts that differ in one do not say the same."""


def above_minimum(
    ranked: Iterable[Candidate], weights: Weights, by_words: bool, dropped: Counter[str]
) -> list[Candidate]:
    """Those whose score says something; the minimum is lower when there are only words."""
    floor = weights.minimum_by_words if by_words else weights.minimum
    everything = list(ranked)
    kept = [one for one in everything if one.fused + one.context >= floor]
    dropped[trust.BELOW_MINIMUM] += len(everything) - len(kept)
    return kept


def select(ranked: Sequence[Candidate], wanted: int) -> tuple[list[Candidate], dict[int, list[int]]]:
    """The best `wanted` that differ from one another, and which others each of them stands for."""
    compared = {one.memory_id for one in ranked[: 4 * wanted + 20]}
    said: dict[int, frozenset[str]] = {}

    def terms_of(one: Candidate) -> frozenset[str] | None:
        if one.memory_id in compared and one.memory_id not in said:
            said[one.memory_id] = _said(one)
        return said.get(one.memory_id)

    return collapse(ranked, lambda a, b: near_identical(terms_of(a), terms_of(b)), wanted)


def _said(one: Candidate) -> frozenset[str]:
    """The service, the terms, and the negations among the stop words."""
    spoken = words(one.observation)
    terms = {term_of(word) for word in spoken if word not in STOP_WORDS}
    return frozenset({f"={one.service or ''}", *terms, *(NEGATIONS & STOP_WORDS).intersection(spoken)})


def collapse(
    ranked: Sequence[Candidate], alike: Callable[[Candidate, Candidate], bool], most: int
) -> tuple[list[Candidate], dict[int, list[int]]]:
    """The first `most` that differ from one another, and which others each of them stands for."""
    kept: list[Candidate] = []
    stands_for: dict[int, list[int]] = {}
    for one in ranked:
        twin = next((k for k in kept if alike(k, one)), None)
        if twin is not None:
            stands_for.setdefault(twin.memory_id, []).append(one.memory_id)
        elif len(kept) < most:
            kept.append(one)
        else:
            break
    return kept, stands_for


def near_identical(a: frozenset[str] | None, b: frozenset[str] | None) -> bool:
    """Whether two sets of terms say the same in the same words; a number that differs makes them two."""
    if not a or not b:
        return False
    shared = len(a & b)
    if shared < NEAR_IDENTICAL * (len(a) + len(b) - shared):
        return False
    return not any(c.isdigit() for term in a ^ b for c in term)
