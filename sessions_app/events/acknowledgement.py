"""Acknowledge events and reopen them. A warning or a critical event is open until a person acknowledges it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import QuerySet

from sessions_app.models import Event
from sessions_app.models.event import OPEN

OLD = timedelta(days=1)
"""From this age on an event that arrives late, with an imported log, needs nobody any more."""


def acknowledge(rows: QuerySet[Event], *, by: str, at: datetime) -> int:
    """Acknowledge the open ones of `rows` at `at` (UTC); return how many. Of two at once, the first one counts."""
    return rows.order_by().filter(OPEN).update(acknowledged_at=at, acknowledged_by=by[:150], touched_at=at)


def reopen(rows: QuerySet[Event], *, at: datetime) -> int:
    """Open those of `rows` again that are acknowledged; return how many."""
    acknowledged = rows.order_by().filter(acknowledged_at__isnull=False)
    return acknowledged.update(acknowledged_at=None, acknowledged_by="", touched_at=at)


def acknowledged_together(by: str, at: datetime) -> QuerySet[Event]:
    """Select what a person acknowledged at once at `at`, and nobody has touched since."""
    return Event.objects.filter(touched_at=at, acknowledged_at=at, acknowledged_by=by)


def acknowledge_if_old(events: Iterable[Event], *, by: str, at: datetime) -> None:
    """Acknowledge those of `events`, which are not stored yet, that are older than OLD at `at` (UTC) and open."""
    for event in events:
        if event.is_open and event.created_at < at - OLD:
            event.acknowledged_at, event.acknowledged_by = at, by
