"""Ranges of time that end now (24 h, 7 d, 30 d, 90 d) and the parts that a chart shows of them. Pure.

A part begins with a clock hour, since rows are counted by hour: every number of a chart is that of a list between the
same two times. In zones with half hours a day begins with the hour in which midnight falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from claudeops.lib import times

HOUR = timedelta(hours=1)
BETWEEN = ".."


@dataclass(frozen=True, slots=True)
class Range:
    """`label` is for a button, `words` for a sentence; a part lasts `hours`, or a local day when that is 24."""

    name: str
    label: str
    words: str
    days: int
    hours: int

    @property
    def length(self) -> timedelta:
        return timedelta(days=self.days)

    @property
    def part(self) -> str:
        return {1: "hour", 24: "day"}.get(self.hours, f"{self.hours} hours")


RANGES = {
    one.name: one
    for one in (
        Range("24h", "24 h", "24 hours", 1, 1),
        Range("7d", "7 d", "7 days", 7, 6),
        Range("30d", "30 d", "30 days", 30, 24),
        Range("90d", "90 d", "90 days", 90, 24),
    )
}
FIRST = "24h"


@dataclass(frozen=True, slots=True)
class Period:
    """From `since` on and before `until`, both UTC; None has no end on that side."""

    since: datetime | None = None
    until: datetime | None = None


def range_of(name: str | None) -> Range:
    """Return the range of this name; the shortest for any other text."""
    return RANGES.get(name or "", RANGES[FIRST])


def edges_of(one: Range, now: datetime, zone: tzinfo) -> tuple[datetime, ...]:
    """Return the times (UTC) at which the parts of a range begin, and the end of the last part, which holds `now`.

    Of 24 hours there are 24 parts, the last one the hour of `now`; days are those of `zone`, today the last.
    """
    if one.hours == 1:
        last = _hour(now) + HOUR
        return tuple(last - HOUR * n for n in range(24 * one.days, -1, -1))
    local = now.astimezone(zone)
    today = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    if _begin(today + timedelta(days=1), zone) <= now:
        today += timedelta(days=1)
    walls = [
        today + timedelta(days=day, hours=hour) for day in range(1 - one.days, 2) for hour in range(0, 24, one.hours)
    ]
    edges = sorted({_begin(wall, zone) for wall in walls})
    end = next(n for n, edge in enumerate(edges) if edge > now)
    return tuple(edges[: end + 1])


def _begin(wall: datetime, zone: tzinfo) -> datetime:
    return _hour(wall.replace(tzinfo=zone))


def _hour(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def write(since: datetime, until: datetime) -> str:
    """Write a period for an address: "2026-11-24T03:00Z..2026-11-24T04:00Z"."""
    return BETWEEN.join(f"{at.astimezone(UTC):%Y-%m-%dT%H:%M}Z" for at in (since, until))


def parse(text: str, now: datetime, zone: tzinfo) -> Period:
    """Parse a range's name (the range until now), or two ISO times with `..` between, of which one may be missing.

    A time without a zone is in `zone`. Raises ValueError.
    """
    if text in RANGES:
        return Period(edges_of(RANGES[text], now, zone)[0])
    since, between, until = text.partition(BETWEEN)
    if not between or not (since or until):
        raise ValueError(text)
    period = Period(*(_time(part, zone) if part else None for part in (since, until)))
    if period.since and period.until and period.since >= period.until:
        raise ValueError(text)
    return period


def _time(text: str, zone: tzinfo) -> datetime:
    at = datetime.fromisoformat(text.strip())
    return times.in_utc(at if at.tzinfo else at.replace(tzinfo=zone))
