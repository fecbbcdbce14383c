"""Record when a worker process starts and how it ends: it stops, or it is lost (killed, or its host is gone)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import psutil
from django.db import transaction
from django.db.models import Exists, OuterRef

from sessions_app.models import Ending, WorkerHeartbeat, WorkerRun
from sessions_app.queue.dispatch import HOST_ALIVE


def started(*, host: str, pid: int, queues: Sequence[str], at: datetime) -> int:
    """Record the start of a worker of this host at `at` (UTC); return the id of the record.

    Earlier ones of this host whose process is gone are lost: they have not signed off.
    """
    names = ", ".join(queues)[:200]
    with transaction.atomic():
        running = WorkerRun.objects.filter(host=host, ended_at=None)
        gone = [
            pk for pk, run_pid in running.values_list("pk", "pid") if run_pid == pid or not psutil.pid_exists(run_pid)
        ]
        lost = running.filter(pk__in=gone).update(ended_at=at, ending=Ending.LOST)
        before = WorkerRun.objects.filter(host=host, queues=names).order_by("-pk").values_list("ending", flat=True)
        after = Ending.LOST if lost else before.first() or ""
        return WorkerRun.objects.create(host=host, pid=pid, queues=names, after=after, started_at=at).pk


def stopped(run: int, at: datetime) -> None:
    WorkerRun.objects.filter(pk=run, ended_at=None).update(ended_at=at, ending=Ending.STOPPED)


def is_alive(run: int) -> None:
    """Take back that the run was lost: its worker could not reach the database for a while, and goes on."""
    WorkerRun.objects.filter(pk=run, ending=Ending.LOST).update(ended_at=None, ending="")


def mark_lost(at: datetime) -> int:
    """Mark runs of any host without a recent heartbeat as lost at `at` (UTC); return how many. Idempotent."""
    beats = WorkerHeartbeat.objects.filter(host=OuterRef("host"), pid=OuterRef("pid"), beat_at__gte=at - HOST_ALIVE)
    silent = WorkerRun.objects.filter(~Exists(beats), ended_at=None, started_at__lt=at - HOST_ALIVE)
    return silent.update(ended_at=at, ending=Ending.LOST)
