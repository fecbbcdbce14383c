"""Which times are taken from outside: one rule for every column, one function for every text. Pure.

- A time at which something happened (a stamp, `created_at` of an import) lies between EARLIEST and now. The clock of
  another machine may be ahead by AHEAD: such a time is taken as now. Any other time is no time.
- A time at which something shall end (`expires_at`) lies between EARLIEST and LATEST.
- A time that is only compared with (a filter, the place in a list) is any that can be told in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""There were no agents before."""
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
"""Arithmetic with later times still stays within what a datetime can hold."""
AHEAD = timedelta(minutes=5)


def in_utc(at: datetime) -> datetime:
    """Convert an aware time. Raises ValueError when it has no zone, or lies beyond the years 1 to 9999 in UTC."""
    if at.tzinfo is None:
        raise ValueError("a time zone is missing")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("out of range") from None


def parse(text: str) -> datetime:
    """Parse an ISO 8601 time with a zone, as UTC. Raises ValueError."""
    return in_utc(datetime.fromisoformat(text))


def happened(at: datetime, now: datetime) -> datetime | None:
    """Return a past time as it may be stored, in UTC; None when nothing can have happened then. Both are aware."""
    return in_utc(min(at, now)) if EARLIEST <= at <= now + AHEAD else None


def may_end(at: datetime) -> bool:
    return EARLIEST <= at <= LATEST
