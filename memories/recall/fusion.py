"""Score candidates: cosine, coverage of the query's words, age and what is known of each, in one number. Pure.

The constants were tuned on the development sets (docs/recall.md says what each one is worth).
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
"""A hit that holds every rare word of the query outweighs any paraphrase (cosines of those are .4 to .7)."""
COVERAGE_POWER = 1.75
"""A memory that shares one common word says little: half the idf mass counts for three tenths, a tenth for nothing."""
PHRASE_WEIGHT = 0.1
"""The whole phrase or identifier stands in the text: settles `2.1.330` against `2.1.33`."""
AGE_WEIGHT = 0.02
"""Breaks ties only: more costs conversations, and old truths. `supersession.py` decides what superseded a fact."""
AGE_RATE = 0.01
"""A day: half of it is gone after ten weeks. (DESIGN section 5: rank decay.)"""
CONFIDENCE_WEIGHT = 0.03
"""Breaks ties between what is sure and what is not; a paraphrase's cosine moves by more."""
USAGE_WEIGHT = 0.01
"""What was recalled often has been of use; on a logarithm, full at a hundred, so that nothing feeds on itself."""
FULL_USE = math.log(101)
"""A hundred recalls, on that logarithm."""
PRIORITY_WEIGHT = 0.02
"""A person marked it to stay, or approved it."""
STALE_FACTOR = 0.5
"""What nobody confirmed for so long that it was called stale: findable, behind everything fresh."""
MINIMUM_SCORE = 0.15
"""Below this a hit has as little to do with the query as two memories drawn by lot."""
MINIMUM_BY_WORDS = 0.05
"""Without vectors: one word of three that the query holds is a hit."""

PREVIOUS, NEXT, SEQUENCE = 0.20, 0.10, 0.50
"""What a neighbour's score, and the best of the sequence, add: an answer follows its question more often than not."""
SHARED_PREVIOUS, SHARED_NEXT, SHARED_SEQUENCE = 0.6, 0.5, 0.3
"""How much a word counts that a turn does not say, but the one before it, after it, or another of its sequence."""
SEQUENCE_POWER = 1.5
"""In place of COVERAGE_POWER for a turn: its few words are all there is of what was meant."""
SPEAKER_WEIGHT = 0.08
"""Who is named in the question said it: of three conversations each gains a hundredth of recall@10."""
SEQUENCE_COVERAGE = 1.3
"""Words weigh more among turns, and by their plain share: a turn alone is short, what it speaks of stands around it."""

ADDED, MULTIPLIED, NO_AGE = "added", "multiplied", "none"


Numbers = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a ranking. `age` is added (default), multiplied (which buries what is old) or none."""

    cosine: float = 1.0
    coverage: float = COVERAGE_WEIGHT
    coverage_power: float = COVERAGE_POWER
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
    """The tuned weights, with age as the setting has it."""
    return WEIGHTS if age == ADDED else replace(WEIGHTS, age=age)


def fused(one: Candidate, weights: Weights, in_context: bool = False) -> float:
    """Meaning and words in one number, about 0..2."""
    power = weights.sequence_power if one.sequence else weights.coverage_power
    words = weights.coverage * one.coverage**power
    if in_context:
        words = weights.sequence_coverage * one.shared
    return weights.cosine * max(0.0, one.cosine or 0.0) + words + (weights.phrase if one.phrase else 0.0)


def both(cosines: Numbers, coverage: Numbers, weights: Weights) -> Numbers:
    """What `fused` gives without a phrase, for arrays: to choose who is ranked."""
    return weights.cosine * np.maximum(0.0, cosines) + weights.coverage * coverage**weights.coverage_power


def age_of(one: Candidate, at: datetime, weights: Weights) -> tuple[float, float]:
    """(days since the memory was last confirmed, exp(−rate·days)); nothing is younger than now."""
    days = max(0.0, (at - one.confirmed_at).total_seconds() / 86_400)
    return days, math.exp(-weights.age_rate * days)


def rank(
    candidates: Iterable[Candidate],
    at: datetime,
    weights: Weights = WEIGHTS,
    context: bool = True,
    likeness: Likeness | None = None,
) -> list[Candidate]:
    """All candidates with their scores, best first; of equal scores the newer confirmation, then the higher id.

    With `likeness` a candidate that supersedes an older one gets the score of that one.
    """
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
    """Best first; of equal scores the newer confirmation, then the higher id."""
    return sorted(ranked, key=lambda one: (one.score, one.confirmed_at, one.memory_id), reverse=True)


def parts_of(one: Candidate, at: datetime, weights: Weights) -> Parts:
    """How the score of a ranked candidate came about."""
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


def boosts_of(one: Candidate, factor: float, weights: Weights) -> dict[str, float]:
    """The named additions; `factor` is that of its age."""
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
    """What each candidate of a sequence gains or loses by those beside it and by the best of its sequence.

    Its score becomes the weighted mean of all of these, so that turns and lone facts stay comparable.
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


def without(signal: str, weights: Weights = WEIGHTS) -> Weights:
    """The ranking with one signal left out, for the bench's ablations."""
    names: dict[str, dict[str, Any]] = {
        "meaning": {"cosine": 0.0},
        "words": {"coverage": 0.0, "phrase": 0.0, "sequence_coverage": 0.0, "speaker": 0.0},
        "phrase": {"phrase": 0.0},
        "newer": {"newer_lead": 0.0},
        "speaker": {"speaker": 0.0},
        "confidence": {"confidence": 0.0},
        "usage": {"usage": 0.0, "priority": 0.0},
        "context": {"previous": 0.0, "next": 0.0, "sequence": 0.0},
    }
    if signal == "age":
        return replace(weights, age=NO_AGE)
    return replace(weights, **names[signal])
