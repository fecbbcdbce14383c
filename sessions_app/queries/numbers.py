"""The numbers of sessions and events that several pages show: what each counts is said here alone."""

from __future__ import annotations

from datetime import datetime

from claudeops.lib.capped import Count, count_of
from sessions_app.models import Event, Session
from sessions_app.queries.filters import AGES, GROUPS, WENT_WRONG


def running() -> Count:
    return count_of(Session.objects.running())


def queued() -> Count:
    return count_of(Session.objects.queued())


def failed_last_day(at: datetime) -> Count:
    """Count what went wrong among the sessions queued in the 24 hours before `at` (aware)."""
    return count_of(Session.objects.filter(status__in=GROUPS[WENT_WRONG], queued_at__gte=at - AGES["day"]))


def events_last_day(at: datetime, level: str) -> Count:
    """Count the events of a level in the 24 hours before `at` (aware)."""
    return count_of(Event.objects.filter(level=level, created_at__gte=at - AGES["day"]))
