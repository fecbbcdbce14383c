"""Forecast confidence under decay and expiry without confirmation. Pure; agrees with `lifecycle.rules.aged`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from claudeops.lib import humanize, local_time
from memories.lifecycle.rules import Ageing, aged, clamp, decay_of, decay_start, decayed, is_active
from memories.models import Inactive, Memory, Verdict
from memories.taxonomy import TAXONOMIES, Decay


class End(StrEnum):
    """What makes a memory inactive that nobody confirms."""

    NOTHING = ""
    DECAYED = "decayed"
    EXPIRED = "expired"
    """Its `expires_at`, which a confirmation does not move."""


@dataclass(frozen=True, slots=True)
class Point:
    """The confidence (0..1) from this time (aware, UTC) on, until the next point."""

    at: datetime
    confidence: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """`points` begin at the requested time and fall; `inactive_at` is None when the memory stays active.

    It may lie before the first point: then the next sweep applies it. `limit` is the confidence below which a memory of
    its taxonomy is inactive, None for none.
    """

    points: tuple[Point, ...]
    inactive_at: datetime | None
    end: End
    limit: float | None


def forecast(memory: Ageing, at: datetime) -> Forecast:
    """Return the confidence of `memory` from `at` on, as sweeps at every moment would leave it."""
    taxonomy = TAXONOMIES[memory.taxonomy]
    if not memory.active:
        return Forecast((Point(at, memory.confidence),), None, End.NOTHING, taxonomy.inactive_below)
    over = memory.expires_at
    end = End.NOTHING if over is None else End.EXPIRED
    falls = [point for point in _falls(memory) if over is None or point.at < over]
    if falls and not is_active(falls[-1].confidence, taxonomy):
        over, end = falls[-1].at, End.DECAYED
    if over is None or at < over:
        now = aged(memory, at).get("confidence", memory.confidence)
    else:
        now = falls[-1].confidence if falls else memory.confidence
    points = (Point(at, now), *(point for point in falls if point.at > at))
    return Forecast(points, over, end, taxonomy.inactive_below)


def _falls(memory: Ageing) -> Iterator[Point]:
    """Yield the decay steps since decay was last applied, until the memory is inactive or at zero."""
    decay = decay_of(memory)
    if decay is None:
        return
    start = decay_start(memory.updated_at, memory.decayed_until, decay)
    for period in range(1, math.ceil(clamp(memory.confidence) / decay.step) + 2):
        when = start + period * decay.every
        confidence = decayed(memory.confidence, memory.updated_at, memory.decayed_until, when, decay)[0]
        yield Point(when, confidence)
        if confidence == 0 or not is_active(confidence, TAXONOMIES[memory.taxonomy]):
            return


def steps_taken(
    was: float, updated_at: datetime, decayed_until: datetime | None, until: datetime, decay: Decay
) -> list[Point]:
    """Return the steps of one sweep that lowered a confidence `was` and applied decay up to `until`."""
    start = decay_start(updated_at, decayed_until, decay)
    points: list[Point] = []
    for period in range(1, (until - start) // decay.every + 1):
        confidence = clamp(was - period * decay.step)
        points.append(Point(start + period * decay.every, confidence))
        if confidence == 0:
            break
    return points


BECAUSE = {
    Inactive.DECAYED: "because nobody confirmed it for too long",
    Inactive.CONTRADICTED: "because it was contradicted",
    Inactive.OPERATOR: "because a person deactivated it",
    Inactive.LOWERED: "because its confidence was set below the threshold",
    Inactive.EXPIRED: "because it expired",
    Inactive.SUPERSEDED: "because another memory replaced it",
    Inactive.MERGED: "because it was merged into another memory",
    Inactive.CLOSED: "because it was stale for too long",
}
CONFIRMED = "unless a session or a person confirms it"


def outcome(memory: Memory, ahead: Forecast, now: datetime, inactive_since: datetime | None = None) -> str:
    """Return the sentence: "Fades in 9 days, on Thu 26 Nov, unless a session or a person confirms it.".

    `ahead` is the forecast at `now` (aware). `inactive_since` is when an inactive memory became so, if that is known.
    """
    if memory.verdict == Verdict.HOLD:
        rejected = memory.inactive_reason == Inactive.OPERATOR
        state = "Rejected in review" if rejected else "Held for review"
        return f"{state}{f': {memory.verdict_reason}' if memory.verdict_reason else ''}. No session is told of it."
    if not memory.active:
        since = f" since {local_time.weekday(inactive_since, now)}" if inactive_since else ""
        why = f" {BECAUSE[Inactive(memory.inactive_reason)]}" if memory.inactive_reason in Inactive.values else ""
        return f"Inactive{since}{why}."
    end = ahead.inactive_at
    if end is None:
        if memory.persistent:
            return "Never fades: it is persistent."
        return f"Never fades: {memory.taxonomy} memories of the category {memory.category} do not."
    day = local_time.weekday(end, now)
    fades = "fades" if ahead.end == End.DECAYED else "expires"
    if end <= now:
        return f"It {fades} with the next sweep, as of {day}."
    starts = f"{fades.capitalize()} {humanize.ago(end, now)}, on {day}"
    if ahead.end == End.DECAYED:
        return f"{starts}, {CONFIRMED}."
    return f"{starts}, unless a person renews it."
