"""What time alone will do to a memory: how its confidence falls if nobody confirms it, and when it goes inactive.

Pure, like `rules.py`, whose `aged` is asked at one moment; this is the whole of it, ahead. Property tests hold
that both say the same. Knows no database and no page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from memories.lifecycle.rules import Age, aged, clamp, decay_start, decayed, is_active
from memories.taxonomy import Decay


class End(StrEnum):
    """What ends a memory that nobody touches any more."""

    NOTHING = ""
    DECAYED = "decayed"
    OWN_TIME = "own time"
    """Its own `expires_at`, which no confirmation moves."""
    CATEGORY = "category"
    """What its category is given from the last confirmation on."""


@dataclass(frozen=True, slots=True)
class Point:
    """The confidence (0..1) from this time (aware, UTC) on, until the next point."""

    at: datetime
    confidence: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """`points` begin at the time that was asked about and fall; `inactive_at` is None when time ends nothing.

    `inactive_at` may lie before the first point: then the next sweep finds it. `limit` is the confidence below
    which its taxonomy lets go of it, None for none.
    """

    points: tuple[Point, ...]
    inactive_at: datetime | None
    end: End
    limit: float | None


def forecast(memory: Age, at: datetime) -> Forecast:
    """What becomes of `memory` from `at` on, as sweeps at every moment would leave it."""
    taxonomy = memory.taxonomy
    if not memory.active:
        return Forecast((Point(at, memory.confidence),), None, End.NOTHING, taxonomy.inactive_below)
    over, why = _over(memory)
    ages = taxonomy.decay is not None and not memory.persistent and not memory.held
    falls = list(_falls(memory, taxonomy.decay)) if ages and taxonomy.decay else []
    if over is not None:
        falls = [point for point in falls if point.at < over]
    if falls and not is_active(falls[-1].confidence, taxonomy):
        over, why = falls[-1].at, End.DECAYED
    now = aged(replace(memory, expires_at=None), at)[0] if over is None or at < over else _before(memory, falls)
    points = (Point(at, now), *(point for point in falls if point.at > at))
    return Forecast(points, over, why, taxonomy.inactive_below)


def _over(memory: Age) -> tuple[datetime | None, End]:
    """When it ends whatever its confidence is, and by what; of two the first."""
    lasts = None if memory.persistent else memory.taxonomy.expires.get(memory.category)
    ends = [(memory.updated_at + lasts, End.CATEGORY)] if lasts is not None else []
    if memory.expires_at is not None:
        ends.append((memory.expires_at, End.OWN_TIME))
    return min(ends, key=lambda end: end[0]) if ends else (None, End.NOTHING)


def _falls(memory: Age, decay: Decay) -> Iterator[Point]:
    """Each step down from where decay was taken last, until it is inactive or there is nothing left to take."""
    start = decay_start(memory.updated_at, memory.decayed_until, decay)
    for period in range(1, math.ceil(clamp(memory.confidence) / decay.step) + 2):
        when = start + period * decay.every
        left = decayed(memory.confidence, memory.updated_at, memory.decayed_until, when, decay)[0]
        yield Point(when, left)
        if left == 0 or not is_active(left, memory.taxonomy):
            return


def _before(memory: Age, falls: list[Point]) -> float:
    """The confidence with which it ended."""
    return falls[-1].confidence if falls else memory.confidence


def steps_taken(
    was: float, updated_at: datetime, decayed_until: datetime | None, until: datetime, decay: Decay
) -> list[Point]:
    """The steps by which a confidence `was` fell until decay was taken up to `until`: a sweep takes several at once."""
    start = decay_start(updated_at, decayed_until, decay)
    found: list[Point] = []
    for period in range(1, (until - start) // decay.every + 1):
        left = clamp(was - period * decay.step)
        found.append(Point(start + period * decay.every, left))
        if left == 0:
            break
    return found
