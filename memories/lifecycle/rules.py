"""Compute confidence, decay and expiry by `taxonomy.py`. Pure; confidence 0..1 at six decimals, times aware UTC."""

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
    """Clamp to 0..1, at six decimals. Raises InvalidMemory for NaN and infinity."""
    return checked_confidence(confidence)


ECHO_LIMIT = 0.9
"""The confidence above which a session does not raise a memory that it was told."""


def reinforced(confidence: float, taxonomy: Taxonomy, *, echo: bool = False) -> float:
    raised = clamp(confidence + taxonomy.reinforced_by)
    return max(confidence, min(raised, ECHO_LIMIT)) if echo else raised


def contradicted(confidence: float, taxonomy: Taxonomy) -> float:
    return clamp(confidence - taxonomy.contradicted_by)


def credited(confidence: float, taxonomy: Taxonomy, *, helped: bool) -> float:
    """Return the confidence after a session that used the memory: it completed (`helped`), or failed."""
    if not taxonomy.credited_by:
        return confidence
    return clamp(confidence + taxonomy.credited_by if helped else confidence - taxonomy.credited_by)


def is_active(confidence: float, taxonomy: Taxonomy) -> bool:
    return taxonomy.inactive_below is None or confidence >= taxonomy.inactive_below


def decay_start(updated_at: datetime, decayed_until: datetime | None, decay: Decay) -> datetime:
    """Return when the next decay begins: at the end of the grace, or where decay was applied last."""
    start = updated_at + decay.grace
    return start if decayed_until is None else max(start, decayed_until)


def decayed(
    confidence: float, updated_at: datetime, decayed_until: datetime | None, at: datetime, decay: Decay
) -> tuple[float, datetime | None]:
    """Return (confidence at `at`, new `decayed_until`); by whole periods, so the number of runs is irrelevant."""
    start = decay_start(updated_at, decayed_until, decay)
    periods = (at - start) // decay.every
    if periods < 1:
        return confidence, decayed_until
    return clamp(confidence - periods * decay.step), start + periods * decay.every


def kept_decay(updated_at: datetime, decayed_until: datetime | None, decay: Decay | None) -> datetime | None:
    """Return `decayed_until` after a confirmation at `updated_at`; None where the new grace ends later.

    It is kept when an old log confirms a memory that has decayed since, or the same weeks would count twice.
    """
    if decay is None or decayed_until is None or decayed_until <= updated_at + decay.grace:
        return None
    return decayed_until


def decay_of(memory: Ageing) -> Decay | None:
    """Return how a memory decays; None if it does not: persistent, held for review, or by its taxonomy."""
    return None if memory.persistent or memory.verdict == Verdict.HOLD else TAXONOMIES[memory.taxonomy].decay


def aged(memory: Ageing, at: datetime) -> dict[str, Any]:
    """Return the columns that decay and expiry change until `at`, {} for none. What expires does not decay."""
    if not memory.active:
        return {}
    if memory.expires_at is not None and memory.expires_at <= at:
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
