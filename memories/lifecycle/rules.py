"""The arithmetic of confidence, decay and expiry, on the policies of `taxonomy.py`. Pure: no database, no clock.

Confidences are 0..1 at six decimals, times are aware and UTC. What is said of a memory here holds for a row of
`Memory` and for anything else with these columns.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from memories.capture.fields import checked_confidence
from memories.models import Inactive, Verdict
from memories.taxonomy import TAXONOMIES, Decay, Taxonomy


class Ageing(Protocol):
    """The columns of a memory that decay and expiry read; `taxonomy` is a slug."""

    taxonomy: Any
    category: Any
    confidence: Any
    active: Any
    verdict: Any
    persistent: Any
    updated_at: Any
    decayed_until: Any
    expires_at: Any


def clamp(confidence: float) -> float:
    """Within 0..1, at six decimals. Raises InvalidMemory for NaN and infinity."""
    return checked_confidence(confidence)


def reinforced(confidence: float, taxonomy: Taxonomy) -> float:
    return clamp(confidence + taxonomy.reinforced_by)


def contradicted(confidence: float, taxonomy: Taxonomy) -> float:
    return clamp(confidence - taxonomy.contradicted_by)


def is_active(confidence: float, taxonomy: Taxonomy) -> bool:
    """Whether a memory of this confidence reaches the threshold of its taxonomy."""
    return taxonomy.inactive_below is None or confidence >= taxonomy.inactive_below


def decay_start(updated_at: datetime, decayed_until: datetime | None, decay: Decay) -> datetime:
    """From when the next decay counts: the end of the grace, or up to where decay was already taken."""
    start = updated_at + decay.grace
    return start if decayed_until is None else max(start, decayed_until)


def decayed(
    confidence: float, updated_at: datetime, decayed_until: datetime | None, at: datetime, decay: Decay
) -> tuple[float, datetime | None]:
    """The confidence at `at`, and up to when decay is then taken.

    Only whole periods count, so the result does not depend on how often it is computed: once after 44 days, or every
    hour for 44 days.
    """
    start = decay_start(updated_at, decayed_until, decay)
    periods = (at - start) // decay.every
    if periods < 1:
        return confidence, decayed_until
    return clamp(confidence - periods * decay.step), start + periods * decay.every


def kept_decay(updated_at: datetime, decayed_until: datetime | None, decay: Decay | None) -> datetime | None:
    """`decayed_until` after a confirmation at `updated_at`: None where the new grace ends later.

    It is kept when an old log confirms a memory that has decayed since, or the same weeks would be taken twice.
    """
    if decay is None or decayed_until is None or decayed_until <= updated_at + decay.grace:
        return None
    return decayed_until


def expiry(memory: Ageing) -> datetime | None:
    """When a memory expires whatever its confidence: by its own `expires_at` or by its category, the earlier one."""
    lasts = None if memory.persistent else TAXONOMIES[memory.taxonomy].expires.get(memory.category)
    ends = [memory.expires_at] if memory.expires_at is not None else []
    if lasts is not None:
        ends.append(memory.updated_at + lasts)
    return min(ends, default=None)


def decay_of(memory: Ageing) -> Decay | None:
    """How a memory decays; None for one that does not: persistent, held for review, or by its taxonomy."""
    return None if memory.persistent or memory.verdict == Verdict.HOLD else TAXONOMIES[memory.taxonomy].decay


def aged(memory: Ageing, at: datetime) -> dict[str, Any]:
    """The columns that decay and expiry change until `at`; empty when nothing is due. What expires does not decay."""
    if not memory.active:
        return {}
    over = expiry(memory)
    if over is not None and over <= at:
        return {"active": False, "inactive_reason": Inactive.EXPIRED.value}
    decay = decay_of(memory)
    if decay is None:
        return {}
    confidence, until = decayed(memory.confidence, memory.updated_at, memory.decayed_until, at, decay)
    if until == memory.decayed_until:
        return {}
    new: dict[str, Any] = {"confidence": confidence, "decayed_until": until}
    if not is_active(confidence, TAXONOMIES[memory.taxonomy]):
        new |= {"active": False, "inactive_reason": Inactive.DECAYED.value}
    return new
