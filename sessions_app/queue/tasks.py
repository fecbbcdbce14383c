"""Wake-ups on django-q2: the only domain module that imports it.

Enqueueing joins the caller's transaction (the ORM broker works on the same database) and rolls back with it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min
from django_q.models import Failure, OrmQ
from django_q.tasks import async_task

RUN = "sessions_app.tasks.run_session"
FOLLOW = "sessions_app.tasks.follow_session"
REAP = "sessions_app.tasks.reap_here"

DEFAULT = "default"
SESSIONS = "sessions"


@dataclass(frozen=True, slots=True)
class Depth:
    """What waits in one of django-q2's queues: how many tasks, and since when the first (UTC)."""

    queue: str
    waiting: int
    since: datetime


def address(cluster: str, host: str) -> str:
    """The queue that only the workers of `host` read."""
    return f"{cluster}@{host}"[:100]


def send_run(session_id: int) -> None:
    """Wake some worker of the sessions' cluster, on any host."""
    async_task(RUN, session_id, cluster=SESSIONS, task_name=f"run session {session_id}")


def send_follow(session_id: int, host: str) -> None:
    """Have the host that started a session follow it again: the process is there, and so is its log."""
    async_task(FOLLOW, session_id, cluster=address(SESSIONS, host), task_name=f"follow session {session_id}")


def send_reap(host: str, cluster: str = DEFAULT) -> None:
    """Have the workers of `cluster` on `host` look after its sessions: only there can their processes be seen."""
    async_task(REAP, cluster=address(cluster, host), task_name=f"reap on {host}"[:100])


def waiting(function: str, at: datetime) -> set[int]:
    """The ids of the sessions for which a wake-up of `function` waits to be taken by a worker.

    One that a worker has taken already is not among them: it may be running, or have died with its worker.
    """
    found = set()
    for row in OrmQ.objects.filter(key__startswith=SESSIONS, lock__lte=at):
        task: dict[str, Any] = row.task
        arguments = task.get("args") or ()
        if task.get("func") == function and arguments:
            found.add(arguments[0])
    return found


def depths(at: datetime) -> list[Depth]:
    """How much waits in each queue to be taken, by queue."""
    rows = OrmQ.objects.filter(lock__lte=at).values("key").annotate(n=Count("id"), since=Min("lock")).order_by("key")
    return [Depth(row["key"], row["n"], row["since"]) for row in rows]


def failures(since: datetime) -> dict[str, int]:
    """How many tasks failed at `since` (UTC) or later, by queue; what was addressed to a host counts for its queue."""
    found: dict[str, int] = defaultdict(int)
    rows = Failure.objects.filter(stopped__gte=since).order_by().values_list("cluster").annotate(n=Count("pk"))
    for cluster, count in rows:
        found[queue_of(cluster or DEFAULT)] += count
    return dict(found)


def queue_of(address_or_queue: str) -> str:
    """The queue that an address belongs to."""
    return address_or_queue.partition("@")[0]


def forget(before: datetime) -> tuple[int, int]:
    """Delete tasks nobody took (addressed to hosts that are gone) and failures, older than `before`; how many each.

    The results of tasks that went well are limited by django-q2 itself; those of failed ones are not.
    """
    untaken, _ = OrmQ.objects.filter(key__contains="@", lock__lt=before).delete()
    failures, _ = Failure.objects.filter(stopped__lt=before).delete()
    return untaken, failures
