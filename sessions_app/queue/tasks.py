"""Send and count wake-ups: tasks of django-q2, which no other domain module imports.

The broker uses the same database, so a task is enqueued in the caller's transaction and rolled back with it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min
from django_q.models import Failure, OrmQ
from django_q.tasks import async_task

from sessions_app.models import WorkerHeartbeat

RUN = "sessions_app.tasks.run_session"
FOLLOW = "sessions_app.tasks.follow_session"
REAP = "sessions_app.tasks.reap_here"
LEARN = "sessions_app.tasks.learn"
SYNC = "sessions_app.tasks.sync_files_of"
SYNC_HERE = "sessions_app.tasks.sync_files_here"
HOOK = "sessions_app.tasks.handle_hook"
OBSERVE = "sessions_app.tasks.observe_here"
OBSERVE_SESSION = "sessions_app.tasks.observe_session"
SWEEP = "sessions_app.tasks.sweep_transcripts_here"
PROMOTE = "sessions_app.tasks.promote_here"
JOURNAL = "sessions_app.tasks.keep_journal_here"

DEFAULT = "default"
SESSIONS = "sessions"

TAKEN = "#"
"""In the key of a task that a worker took: `queue@host#pid`; of one for any host `queue@host##pid`."""
GONE = timedelta(minutes=5)
"""A worker without a heartbeat for this long is gone."""


@dataclass(frozen=True, slots=True)
class Depth:
    """The tasks that wait in one queue, and since when the oldest does (UTC)."""

    queue: str
    waiting: int
    since: datetime


def address(cluster: str, host: str) -> str:
    return f"{cluster}@{host}"[:90]  # a key has at most 100 letters; some are for who took the task


def send(function: str, *arguments: Any, host: str = "", cluster: str = DEFAULT) -> None:
    """Have a worker of `cluster` call a task; with `host` one of that host, which has the files or the processes."""
    words = [function.rpartition(".")[2].removesuffix("_here").replace("_", " "), *map(str, arguments[:1])]
    name = " ".join([*words, f"on {host}" if host else ""]).strip()
    to = address(cluster, host) if host else cluster
    async_task(function, *arguments, cluster=to, task_name=name[:100])


def waiting(function: str, at: datetime) -> set[int]:
    """Return the ids of sessions for which a task of `function` waits, without tasks that a worker has taken."""
    ids = set()
    for row in OrmQ.objects.filter(key__startswith=SESSIONS, lock__lte=at):
        task: dict[str, Any] = row.task
        arguments = task.get("args") or ()
        if task.get("func") == function and arguments:
            ids.add(arguments[0])
    return ids


def depths(at: datetime) -> list[Depth]:
    rows = OrmQ.objects.exclude(key__contains=TAKEN).filter(lock__lte=at).values("key")
    rows = rows.annotate(n=Count("id"), since=Min("lock")).order_by("key")
    return [Depth(row["key"], row["n"], row["since"]) for row in rows]


def failures(since: datetime) -> dict[str, int]:
    """Count the tasks that failed at `since` (UTC) or later, by queue, including those addressed to a host."""
    counts: dict[str, int] = defaultdict(int)
    rows = Failure.objects.filter(stopped__gte=since).order_by().values_list("cluster").annotate(n=Count("pk"))
    for cluster, count in rows:
        counts[queue_of(cluster or DEFAULT)] += count
    return dict(counts)


def queue_of(address_or_queue: str) -> str:
    return address_or_queue.partition("@")[0]


def give_back_taken(at: datetime) -> int:
    """Let other workers take the tasks of workers that are gone, at `at` (UTC), or whose `retry` is over.

    So with tasks that wait for a later time: they were sent before the clock was set back. Returns how many.
    """
    beats = WorkerHeartbeat.objects.filter(beat_at__gte=at - GONE).values_list("cluster", "host", "pid")
    living = {(address(cluster, host), str(pid)) for cluster, host, pid in beats}
    claims = OrmQ.objects.filter(key__contains=TAKEN)
    count = OrmQ.objects.exclude(key__contains=TAKEN).filter(lock__gt=at + timedelta(minutes=1)).update(lock=at)
    for pk, key, lock in claims.values_list("pk", "key", "lock"):
        head, _, pid = key.rpartition(TAKEN)
        own = head.removesuffix(TAKEN)
        if lock < at or (own, pid) not in living:
            before = own if own == head else queue_of(own)
            count += claims.filter(pk=pk, lock=lock).update(key=before, lock=at)
    return count


def forget(before: datetime) -> tuple[int, int]:
    """Delete failures and tasks addressed to hosts, from before `before` (UTC); return (tasks, failures).

    Tasks addressed to a host that is gone stay untaken. django-q2 limits only the results of successful tasks.
    """
    untaken, _ = OrmQ.objects.filter(key__contains="@", lock__lt=before).delete()
    failures, _ = Failure.objects.filter(stopped__lt=before).delete()
    return untaken, failures
