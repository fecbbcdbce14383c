"""The trust pass: what was found and does not come back, and why, each reason counted. Pure.

Scope is not judged here but in the query (`scope.py`): what another project knows never gets this far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from memories.models import Verdict
from memories.recall.ranking import SHORTEST, Ranked, Weights

TOO_SHORT = "too short"
STALE = "stale"
HELD = "held"
DISCARDED = "discarded"
INACTIVE = "inactive"
BELOW_MINIMUM = "below the minimum score"
OTHER_SCOPE = "other scope"
NEAR_IDENTICAL = "says nearly the same as a better hit"
BEYOND = "beyond what the profile gives"

DAYS_STALE_FOR_GOOD = "knowledge"
"""The taxonomy whose stale memories are never recalled (DESIGN section 5); in the others they rank behind."""


ALLOWED, ON_HOLD = Verdict.ALLOW.value, Verdict.HOLD.value


class Judged(Protocol):
    """What the pass asks of a memory."""

    @property
    def observation(self) -> str: ...
    @property
    def active(self) -> bool: ...
    @property
    def verdict(self) -> str: ...
    @property
    def taxonomy(self) -> str: ...
    @property
    def stale(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class State:
    """That alone, where there is no row."""

    observation: str
    active: bool
    verdict: str
    taxonomy: str
    stale: bool


def objection(state: Judged, include_hold: bool) -> str:
    """Why this memory may not be returned, or an empty string."""
    if len(state.observation.strip()) < SHORTEST:
        return TOO_SHORT
    if not state.active:
        return INACTIVE
    if state.verdict != ALLOWED:
        if state.verdict != ON_HOLD:
            return DISCARDED
        if not include_hold:
            return HELD
    if state.stale and state.taxonomy == DAYS_STALE_FOR_GOOD:
        return STALE
    return ""


def above_minimum(ranked: Iterable[Ranked], weights: Weights, by_words: bool, dropped: Counter[str]) -> list[Ranked]:
    """Those whose score says something; the floor is lower when there are only words."""
    floor = weights.minimum_by_words if by_words else weights.minimum
    kept = []
    for one in ranked:
        if one.fused + one.context < floor:
            dropped[BELOW_MINIMUM] += 1
        else:
            kept.append(one)
    return kept
