"""What is forgotten in time: readable log lines of old sessions (the raw log stays), workers that are gone.

Knows nothing of the queue or of a running session.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from sessions_app.models import LogEntry, Session, WorkerHeartbeat

HEARTBEATS_FOR = timedelta(days=1)
BATCH = 50
"""Sessions whose lines are deleted in one transaction: others must be able to write in between."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows were deleted."""

    log_entries: int = 0
    heartbeats: int = 0


def prune(*, at: datetime | None = None) -> Pruned:
    """Delete log entries of sessions that ended more than CLAUDEOPS_LOG_ENTRY_DAYS before `at` (UTC; now when
    None), and heartbeats of workers that have been silent for a day. Sessions and their raw logs stay."""
    at = at or timezone.now()
    before = at - timedelta(days=settings.CLAUDEOPS_LOG_ENTRY_DAYS)
    old = Session.objects.ended().filter(Exists(LogEntry.objects.filter(session=OuterRef("pk"))), ended_at__lt=before)
    entries = 0
    while ids := list(old.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        entries += LogEntry.objects.filter(session__in=ids).delete()[0]
    heartbeats, _ = WorkerHeartbeat.objects.filter(beat_at__lt=at - HEARTBEATS_FOR).delete()
    return Pruned(log_entries=entries, heartbeats=heartbeats)
