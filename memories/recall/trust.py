"""The trust pass: which memories that were found are not returned, and why. Pure.

Scope is not judged here but in the query (`filters.py`): another project's memories never get this far.
"""

from __future__ import annotations

from memories.models import Verdict

TOO_SHORT = "too short"
STALE = "stale"
HELD = "held"
DISCARDED = "discarded"
INACTIVE = "inactive"
BELOW_MINIMUM = "below the minimum score"
OTHER_SCOPE = "other scope"
NEAR_IDENTICAL = "says nearly the same as a better hit"
BEYOND = "beyond what the profile gives"

STALE_FOR_GOOD = "knowledge"
"""The taxonomy whose stale memories are never recalled (DESIGN section 5); in the others they rank behind."""
SHORTEST = 5
"""Characters of a memory worth returning, as the gate has it."""

ALLOWED, ON_HOLD = Verdict.ALLOW.value, Verdict.HOLD.value


def objection(
    observation: str, *, active: bool, verdict: str, taxonomy: str, stale: bool, include_hold: bool = False
) -> str:
    """Why a memory with these fields may not be returned, or an empty string."""
    if len(observation.strip()) < SHORTEST:
        return TOO_SHORT
    if not active:
        return INACTIVE
    if verdict != ALLOWED and not (include_hold and verdict == ON_HOLD):
        return HELD if verdict == ON_HOLD else DISCARDED
    return STALE if stale and taxonomy == STALE_FOR_GOOD else ""
