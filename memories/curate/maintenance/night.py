"""When the nightly maintenance is due, in its own zone. Pure; times are aware UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


def start_of(night: date, hour: int, zone: ZoneInfo) -> datetime:
    """Return when the run of a local date begins; an hour that the clock leaves out begins where it goes on."""
    return datetime.combine(night, time(hour), zone).astimezone(UTC)


def night_of(at: datetime, hour: int, zone: ZoneInfo) -> date:
    """Return the local date of the latest run that is due at `at`."""
    today = at.astimezone(zone).date()
    return today if at >= start_of(today, hour, zone) else today - timedelta(days=1)


def next_after(at: datetime, hour: int, zone: ZoneInfo) -> datetime:
    """Return when the next run after `at` begins."""
    return start_of(night_of(at, hour, zone) + timedelta(days=1), hour, zone)
