"""The trust pass: which found memories are not returned, and why. Pure; the query limits the scope."""

from __future__ import annotations

from memories.models import Verdict

TOO_SHORT = "too short"
STALE = "stale"
HELD = "held"
DISCARDED = "discarded"
INACTIVE = "inactive"
UNCONFIRMED = "unconfirmed"
BELOW_MINIMUM = "below the minimum score"
OTHER_SCOPE = "other scope"
NEAR_IDENTICAL = "says nearly the same as a better hit"
BEYOND = "beyond what the profile gives"

STALE_FOR_GOOD = "knowledge"
"""The taxonomy whose stale memories are never recalled (DESIGN section 5); in the others they rank behind."""
SHORTEST = 5
"""Least characters of a memory, as in the gate."""

ALLOWED, ON_HOLD = Verdict.ALLOW.value, Verdict.HOLD.value


def objection(
    observation: str,
    *,
    active: bool,
    verdict: str,
    taxonomy: str,
    stale: bool,
    include_hold: bool = False,
    untrusted: bool = False,
) -> str:
    """Return why a memory with these fields may not be returned, or "".

    `untrusted`: it is unconfirmed, and the caller gets confirmed ones alone.
    """
    if len(observation.strip()) < SHORTEST:
        return TOO_SHORT
    if not active:
        return INACTIVE
    if verdict != ALLOWED and not (include_hold and verdict == ON_HOLD):
        return HELD if verdict == ON_HOLD else DISCARDED
    if untrusted:
        return UNCONFIRMED
    return STALE if stale and taxonomy == STALE_FOR_GOOD else ""
