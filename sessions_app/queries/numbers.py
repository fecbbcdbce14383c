"""The numbers of sessions and events that several pages show: what each counts is said here alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from claudeops.lib import hour_counts
from claudeops.lib.capped import CAP, Count, count_of
from claudeops.lib.periods import RANGES, edges_of
from sessions_app.models import Ending, Event, EventCount, Level, Session, SessionCount, WorkerRun
from sessions_app.models.event import OPEN
from sessions_app.queries.filters import GROUPS, WENT_WRONG


def running() -> Count:
    return count_of(Session.objects.running())


def queued() -> Count:
    return count_of(Session.objects.queued())


def day_before(at: datetime) -> datetime:
    """Return when the last 24 hours began: with the 23rd clock hour before the one of `at` (aware)."""
    return edges_of(RANGES["24h"], at, UTC)[0]


def failed_last_day(at: datetime) -> Count:
    """Count what went wrong among the sessions that ended in the last 24 hours; the list's `ended=24h`."""
    ended = hour_counts.since(SessionCount, day_before(at))
    return _capped(sum(ended[status] for status in GROUPS[WENT_WRONG]))


def events_last_day(at: datetime) -> dict[str, Count]:
    """Count the events of the last 24 hours by level; the list's `during=24h`."""
    return {level: _capped(number) for level, number in hour_counts.since(EventCount, day_before(at)).items()}


def critical_open() -> Count:
    """Count the critical events that nobody has acknowledged, whatever their age; the list's `open=yes`."""
    return count_of(Event.objects.filter(OPEN, level=Level.CRITICAL))


def lost_workers(at: datetime) -> Count:
    """Count the workers that were lost in the 24 hours before `at`; the admin's list `ending=lost`, `age=day`."""
    return count_of(WorkerRun.objects.filter(ending=Ending.LOST, ended_at__gte=at - timedelta(days=1)))


def _capped(number: int) -> Count:
    return Count(min(number, CAP + 1))
