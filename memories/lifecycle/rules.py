"""How confidence moves. Pure arithmetic on the policies of `taxonomy.py`; knows no database and no clock.

Confidences are 0..1 at six decimals, times are aware and UTC. `sweep.py` says the decay rule again in SQL;
a property test holds that both agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memories.capture.fields import checked_confidence
from memories.taxonomy import Decay, Taxonomy


@dataclass(frozen=True, slots=True)
class Age:
    """What the sweep looks at, and what it changes: confidence, active, and why it is not."""

    taxonomy: Taxonomy
    category: str
    confidence: float
    active: bool
    inactive_reason: str
    held: bool
    persistent: bool
    updated_at: datetime
    decayed_until: datetime | None
    expires_at: datetime | None


def clamp(confidence: float) -> float:
    """Within 0..1, at six decimals. Raises InvalidMemory for NaN and infinity."""
    return checked_confidence(confidence)


def reinforced(confidence: float, taxonomy: Taxonomy) -> float:
    return clamp(confidence + taxonomy.reinforced_by)


def contradicted(confidence: float, taxonomy: Taxonomy) -> float:
    return clamp(confidence - taxonomy.contradicted_by)


def is_active(confidence: float, taxonomy: Taxonomy) -> bool:
    """Whether a memory of this confidence is above where its taxonomy lets go of it."""
    return taxonomy.inactive_below is None or confidence >= taxonomy.inactive_below


def decay_start(updated_at: datetime, decayed_until: datetime | None, decay: Decay) -> datetime:
    """From when the next decay counts: the end of the grace, or up to where decay was already taken."""
    start = updated_at + decay.grace
    return start if decayed_until is None else max(start, decayed_until)


def decayed(
    confidence: float, updated_at: datetime, decayed_until: datetime | None, at: datetime, decay: Decay
) -> tuple[float, datetime | None]:
    """The confidence at `at`, and up to when decay is then taken.

    Only whole periods count, so it is the same however often it is asked: at once after 44 days or every
    hour for 44 days.
    """
    start = decay_start(updated_at, decayed_until, decay)
    periods = (at - start) // decay.every
    if periods < 1:
        return confidence, decayed_until
    return clamp(confidence - periods * decay.step), start + periods * decay.every


def kept_decay(updated_at: datetime, decayed_until: datetime | None, decay: Decay | None) -> datetime | None:
    """`decayed_until` after a confirmation at `updated_at`: forgotten where the new grace outlasts it.

    It is kept when an old log confirms what has decayed since, or the same weeks would be taken twice.
    """
    if decay is None or decayed_until is None or decayed_until <= updated_at + decay.grace:
        return None
    return decayed_until


def aged(memory: Age, at: datetime) -> tuple[float, bool, str]:
    """(confidence, active, inactive reason) as a sweep at `at` would leave them."""
    taxonomy = memory.taxonomy
    unchanged = memory.confidence, memory.active, memory.inactive_reason
    if not memory.active:
        return unchanged
    lasts = None if memory.persistent else taxonomy.expires.get(memory.category)
    over = memory.expires_at is not None and memory.expires_at <= at
    if over or (lasts is not None and memory.updated_at + lasts <= at):
        return memory.confidence, False, "expired"
    if taxonomy.decay is None or memory.persistent or memory.held:
        return unchanged
    confidence, until = decayed(memory.confidence, memory.updated_at, memory.decayed_until, at, taxonomy.decay)
    if until == memory.decayed_until:
        return unchanged
    return (confidence, True, "") if is_active(confidence, taxonomy) else (confidence, False, "decayed")
