"""Say why a queued session has not started yet, for pages and `doctor`."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Count, Min
from django.utils import timezone

from sessions_app.models import Session, WorkerHeartbeat
from sessions_app.queue.dispatch import HOST_ALIVE
from sessions_app.queue.tasks import SESSIONS

LONG = timedelta(minutes=1)
"""An idle worker takes what is queued within this time."""


def reason_of(session: Session, at: datetime | None = None) -> str:
    """Say why this queued session waits at `at` (UTC; now when None): its hold reason, or what its worker does."""
    return session.hold_reason or for_a_worker(at or timezone.now())


def for_a_worker(at: datetime) -> str:
    """Say why a session without a hold reason waits."""
    living = WorkerHeartbeat.objects.filter(cluster=SESSIONS, beat_at__gte=at - HOST_ALIVE)
    if not living.exists():
        return f"No worker serves the queue {SESSIONS}."
    running = Session.objects.running().count()
    if running:
        return f"Its turn comes when a worker has room; running now: {running}."
    return "A worker takes it within a minute."


def long_waiting(at: datetime) -> list[tuple[str, int, datetime]]:
    """Return (reason, sessions, since when the oldest waits) of what is queued for longer than LONG, by reason."""
    rows = Session.objects.queued().filter(queued_at__lt=at - LONG).order_by().values("hold_reason")
    groups = rows.annotate(n=Count("id"), since=Min("queued_at")).order_by("-n", "hold_reason")
    return [(row["hold_reason"] or for_a_worker(at), row["n"], row["since"]) for row in groups]
