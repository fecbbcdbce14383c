"""Score candidates by cosine, coverage, age and other signals.

Pure; docs/recall.md says what each constant is worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memories.recall import supersession
from memories.recall.results import Candidate, Parts
from memories.recall.supersession import Likeness

COVERAGE_WEIGHT = 0.85
"""A hit with every rare word of the query outweighs any paraphrase (their cosines are .4 to .7)."""
COVERAGE_POWER = 3.5
"""A memory with the service's name and one common word is no answer: half the idf mass counts for a tenth. Of 1.75 to 5
the one with the best first hits on oblique questions; from 4 on superseded facts come first more often."""
COVERAGE_POWER_BY_WORDS = 1.75
"""The same for a memory without a vector, and for the thresholds of a hit and of `supersession`: what is found at all
does not depend on the order of what is found. Half counts for three tenths."""
PHRASE_WEIGHT = 0.1
"""For a whole phrase or identifier in the text: separates `2.1.330` from `2.1.33`."""
AGE_WEIGHT = 0.02
"""Breaks ties only: more costs conversations and old facts. `supersession.py` handles superseded facts."""
AGE_RATE = 0.01
"""A day: half of it is gone after ten weeks. (DESIGN section 5: rank decay.)"""
CONFIDENCE_WEIGHT = 0.03
"""Breaks ties by confidence; a paraphrase's cosine differs by more."""
USAGE_WEIGHT = 0.01
"""For frequent recalls, logarithmic and full at a hundred, so that recalls do not amplify themselves."""
FULL_USE = math.log(101)
"""The logarithm for a hundred recalls."""
PRIORITY_WEIGHT = 0.02
"""For memories that a person approved or made persistent."""
STALE_FACTOR = 0.5
"""For memories not confirmed for long: they rank behind fresh ones."""
MINIMUM_SCORE = 0.15
"""A lower score is no better than that of two random memories."""
MINIMUM_BY_WORDS = 0.05
"""The same without vectors: one covered word of three is a hit."""

PREVIOUS, NEXT, SEQUENCE = 0.20, 0.10, 0.50
"""Weights of the scores of a turn's neighbours and its sequence's best: an answer often follows its question."""
SHARED_PREVIOUS, SHARED_NEXT, SHARED_SEQUENCE = 0.6, 0.5, 0.3
"""The weight of a word that only the turn before, the turn after, or another of the sequence has."""
SEQUENCE_POWER = 1.5
"""Replaces COVERAGE_POWER for a turn, which has few words."""
SPEAKER_WEIGHT = 0.08
"""For a turn of a speaker whom the query names: worth a hundredth of recall@10 on each of three conversations."""
SEQUENCE_COVERAGE = 1.3
"""Replaces COVERAGE_WEIGHT for turns, on the plain share: a turn is short, and its subject is in its neighbours."""

ADDED, MULTIPLIED, NO_AGE = "added", "multiplied", "none"


Numbers = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a ranking. `age` is added (default), multiplied (which buries old memories) or none."""

    cosine: float = 1.0
    coverage: float = COVERAGE_WEIGHT
    coverage_power: float = COVERAGE_POWER
    coverage_power_by_words: float = COVERAGE_POWER_BY_WORDS
    phrase: float = PHRASE_WEIGHT
    age: str = ADDED
    age_weight: float = AGE_WEIGHT
    age_rate: float = AGE_RATE
    newer_lead: float = supersession.LEAD
    confidence: float = CONFIDENCE_WEIGHT
    usage: float = USAGE_WEIGHT
    priority: float = PRIORITY_WEIGHT
    stale: float = STALE_FACTOR
    minimum: float = MINIMUM_SCORE
    minimum_by_words: float = MINIMUM_BY_WORDS
    previous: float = PREVIOUS
    next: float = NEXT
    sequence: float = SEQUENCE
    sequence_power: float = SEQUENCE_POWER
    sequence_coverage: float = SEQUENCE_COVERAGE
    speaker: float = SPEAKER_WEIGHT

    def as_dict(self) -> dict[str, float | str]:
        return {name: getattr(self, name) for name in self.__slots__}


WEIGHTS = Weights()


def configured(age: str = ADDED) -> Weights:
    """Return the tuned weights with the setting for age."""
    return WEIGHTS if age == ADDED else replace(WEIGHTS, age=age)


def fused(one: Candidate, weights: Weights, in_context: bool = False) -> float:
    """Combine meaning and words in one number, about 0..2."""
    power = weights.coverage_power_by_words if one.cosine is None else weights.coverage_power
    if one.sequence:
        power = weights.sequence_power
    words = weights.coverage * one.coverage**power
    if in_context:
        words = weights.sequence_coverage * one.shared
    return weights.cosine * max(0.0, one.cosine or 0.0) + words + (weights.phrase if one.phrase else 0.0)


def both(cosines: Numbers, coverage: Numbers, weights: Weights) -> Numbers:
    """Compute `fused` without a phrase, for arrays: selects the candidates to rank."""
    power = np.where(cosines == 0.0, weights.coverage_power_by_words, weights.coverage_power)  # 0: it has no vector
    return weights.cosine * np.maximum(0.0, cosines) + weights.coverage * coverage**power


def age_of(one: Candidate, at: datetime, weights: Weights) -> tuple[float, float]:
    """Return (days since the memory was last confirmed, exp(−rate·days)); days are at least 0."""
    days = max(0.0, (at - one.confirmed_at).total_seconds() / 86_400)
    return days, math.exp(-weights.age_rate * days)


def rank(
    candidates: Iterable[Candidate],
    at: datetime,
    weights: Weights = WEIGHTS,
    context: bool = True,
    likeness: Likeness | None = None,
) -> list[Candidate]:
    """Score all candidates and sort them by `in_order`. With `likeness`, one that supersedes another gets its score."""
    pool = list(candidates)
    base = {one.memory_id: fused(one, weights) for one in pool}
    added = neighbours(pool, base, weights) if context else {}
    for one in pool:
        _score(one, base[one.memory_id], added.get(one.memory_id, 0.0), at, weights)
    ordered = in_order(pool)
    if likeness is None or weights.age != ADDED or not weights.newer_lead:
        return ordered
    up = supersession.raised(ordered, likeness, weights.newer_lead)
    for one in ordered[: supersession.LOOKED_AT]:
        one.raised = max(0.0, up.get(one.memory_id, one.score) - one.score)
        one.score += one.raised
    return in_order(ordered) if up else ordered


def in_order(ranked: Iterable[Candidate]) -> list[Candidate]:
    """Sort best first; of equal scores the newer confirmation, then the higher id."""
    return sorted(ranked, key=lambda one: (one.score, one.confirmed_at, one.memory_id), reverse=True)


def parts_of(one: Candidate, at: datetime, weights: Weights) -> Parts:
    days, factor = age_of(one, at, weights)
    boosts = {**boosts_of(one, factor, weights), "newer": one.raised}
    return Parts(
        keyword_rank=one.keyword_rank,
        keyword_score=one.keyword_score,
        coverage=one.coverage,
        vector_rank=one.vector_rank,
        cosine=one.cosine,
        phrase=one.phrase,
        fused=one.fused,
        context=one.context,
        age_factor=1.0 if weights.age == NO_AGE else factor,
        age_days=days,
        boosts={name: value for name, value in boosts.items() if value},
        stale=bool(one.stale),
        final=one.score,
    )


def _score(one: Candidate, base: float, context: float, at: datetime, weights: Weights) -> None:
    _, factor = age_of(one, at, weights)
    final = base + context
    if weights.age == MULTIPLIED:
        final *= factor
    final += sum(boosts_of(one, factor, weights).values())
    if one.stale:
        final *= weights.stale
    one.fused, one.context, one.raised, one.score = base, context, 0.0, final
    if not one.sequence and one.cosine is not None:
        by_words = one.coverage**weights.coverage_power_by_words
        one.gentler = weights.coverage * (by_words - one.coverage**weights.coverage_power)


def boosts_of(one: Candidate, factor: float, weights: Weights) -> dict[str, float]:
    """Return the named additions; `factor` is that of its age."""
    boosts = {
        "confidence": weights.confidence * one.confidence,
        "usage": weights.usage * min(1.0, math.log1p(one.recall_count) / FULL_USE) if one.recall_count else 0.0,
        "priority": weights.priority if one.priority else 0.0,
        "speaker": weights.speaker if one.speaker else 0.0,
    }
    if weights.age == ADDED:
        boosts["age"] = weights.age_weight * factor
    return boosts


def neighbours(pool: Sequence[Candidate], base: Mapping[int, float], weights: Weights) -> dict[int, float]:
    """Compute what candidates of a sequence gain or lose.

    The score becomes the weighted mean with the neighbours' and the sequence's best, comparable with single facts.
    """
    whole = 1 + weights.previous + weights.next + weights.sequence
    turns = {one.memory_id: fused(one, weights, in_context=True) for one in pool if one.sequence}
    if whole == 1 or not turns:
        return {}
    places = {(one.sequence, one.position): one.memory_id for one in pool if one.sequence and one.position is not None}
    best: dict[str, float] = {}
    for one in pool:
        if one.sequence:
            best[one.sequence] = max(best.get(one.sequence, 0.0), turns[one.memory_id])
    added: dict[int, float] = {}
    for one in pool:
        if not one.sequence:
            continue
        score = turns[one.memory_id] + weights.sequence * best[one.sequence]
        if one.position is not None:
            before, after = places.get((one.sequence, one.position - 1)), places.get((one.sequence, one.position + 1))
            score += weights.previous * turns[before] if before is not None else 0.0
            score += weights.next * turns[after] if after is not None else 0.0
        added[one.memory_id] = score / whole - base[one.memory_id]
    return added
