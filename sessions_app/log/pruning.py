"""Delete old log entries, heartbeats of workers that are gone, and old records of their runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from sessions_app.models import LogEntry, Session, WorkerHeartbeat, WorkerRun

HEARTBEATS_KEPT = timedelta(days=1)
WORKER_RUNS_KEPT = timedelta(days=90)
BATCH = 50
"""Sessions whose log entries are deleted in one transaction, so that others can write in between."""


@dataclass(frozen=True, slots=True)
class Pruned:
    log_entries: int = 0
    heartbeats: int = 0
    worker_runs: int = 0


def prune(*, at: datetime | None = None) -> Pruned:
    """Delete log entries of sessions that ended more than CLAUDEOPS_LOG_ENTRY_DAYS before `at` (UTC; now when None).

    Also deletes workers' heartbeats older than a day, and records of ended runs that began 90 days ago. Sessions and
    their raw logs stay.
    """
    at = at or timezone.now()
    before = at - timedelta(days=settings.CLAUDEOPS_LOG_ENTRY_DAYS)
    old = Session.objects.ended().filter(Exists(LogEntry.objects.filter(session=OuterRef("pk"))), ended_at__lt=before)
    entries = 0
    while ids := list(old.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        entries += LogEntry.objects.filter(session__in=ids).delete()[0]
    heartbeats, _ = WorkerHeartbeat.objects.filter(beat_at__lt=at - HEARTBEATS_KEPT).delete()
    runs, _ = WorkerRun.objects.filter(started_at__lt=at - WORKER_RUNS_KEPT, ended_at__isnull=False).delete()
    return Pruned(log_entries=entries, heartbeats=heartbeats, worker_runs=runs)
