"""How the workers and their queues are: who serves each, what waits and since when, what failed, and what to do.

For the front page, every few seconds, and for `doctor`. Reads only; knows no request and not how it is shown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from claudeops.workers import schedules
from sessions_app.checks import clusters
from sessions_app.models import Session, WorkerHeartbeat
from sessions_app.queue import tasks
from sessions_app.queue.tasks import Depth
from sessions_app.reaper import unfollowed

ALIVE = timedelta(seconds=60)
"""A worker writes its heartbeat every 15 seconds; one that has not for so long is silent."""
STEPS = (20, 40, 60)
"""Seconds within which a living worker was heard of: a worker that is well stays in the first step."""
LATELY = timedelta(days=1)
MOST = 1000
"""Sessions nobody follows are counted no further."""

START = "Start `manage.py runworker` (or `up`)."
GONE = "It was killed, or its host is gone. Its sessions are looked after by the others."
STUCK = "Its workers are stuck or missing: restart `manage.py runworker`."
REAP = "The reaper takes them up within a minute or two; `manage.py session reap` does it now."
OVERDUE = "No worker serves the queue default: start `manage.py runworker`."
FAILED = "See why among the failed tasks; `manage.py doctor` says what else is wrong."


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong, and what to do about it. What stands between backquotes is typed as it is."""

    text: str
    advice: str


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker command. `within` is how many seconds ago it was heard of, at most, in steps; None when silent.

    `beat_at` (UTC) is told of a silent one only: that of a living one moves on by itself.
    """

    pk: int
    host: str
    pid: int
    within: int | None
    beat_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue: its living workers, the tasks that wait, since when the first does (UTC), what failed in a day."""

    name: str
    workers: tuple[Worker, ...]
    silent: tuple[Worker, ...]
    waiting: int
    since: datetime | None
    late: bool
    failures: int

    @property
    def troubles(self) -> list[Trouble]:
        found = []
        if not self.workers:
            found.append(Trouble("Nobody serves this queue.", START))
        elif self.late:
            found.append(Trouble("Its tasks wait for too long.", STUCK))
        for worker in self.silent:
            found.append(Trouble(f"{worker.host} (pid {worker.pid}) has fallen silent.", GONE))
        if self.failures:
            said = "One task has" if self.failures == 1 else f"{self.failures:,} tasks have"
            found.append(Trouble(f"{said} failed in the last 24 hours.", FAILED))
        return found


@dataclass(frozen=True, slots=True)
class Condition:
    """The queues, in the order of the settings, and what else is wrong. That it can be read says: the database answers.

    `database` is the name of its engine.
    """

    database: str
    queues: tuple[Queue, ...]
    alone: int
    overdue: tuple[str, ...]

    @property
    def troubles(self) -> list[Trouble]:
        """What is wrong beyond a single queue."""
        found = []
        if self.alone:
            sessions = "one running session" if self.alone == 1 else f"{self.alone} running sessions"
            found.append(Trouble(f"Nobody follows {sessions}.", REAP))
        if self.overdue:
            found.append(Trouble(f"Overdue for more than five minutes: {', '.join(self.overdue)}.", OVERDUE))
        return found

    @property
    def well(self) -> bool:
        return not self.troubles and not any(queue.troubles for queue in self.queues)


def is_alive(beat: WorkerHeartbeat, at: datetime) -> bool:
    return beat.beat_at >= at - ALIVE


def is_late(depth: Depth, at: datetime) -> bool:
    """Whether tasks wait longer than they should. Wake-ups of sessions may: a session takes its time."""
    return depth.since < at - schedules.LATE and depth.queue != tasks.SESSIONS


def read(at: datetime | None = None) -> Condition:
    """How everything is at `at` (UTC; now when None): five queries, whatever the number of workers and tasks."""
    at = at or timezone.now()
    workers: dict[str, list[Worker]] = defaultdict(list)
    for beat in WorkerHeartbeat.objects.order_by("host", "pid"):
        workers[beat.cluster].append(_worker(beat, at))
    depths: dict[str, list[Depth]] = defaultdict(list)
    for depth in tasks.depths(at):
        depths[tasks.queue_of(depth.queue)].append(depth)
    failures = tasks.failures(at - LATELY)
    return Condition(
        database=connection.display_name,
        queues=tuple(
            _queue(name, workers[name], depths[name], failures.get(name, 0), at) for name, _settings in clusters()
        ),
        alone=Session.objects.filter(unfollowed(at))[:MOST].count(),
        overdue=tuple(schedules.late(at)),
    )


def _worker(beat: WorkerHeartbeat, at: datetime) -> Worker:
    if not is_alive(beat, at):
        return Worker(beat.pk, beat.host, beat.pid, None, beat.beat_at)
    seconds = (at - beat.beat_at).total_seconds()
    return Worker(beat.pk, beat.host, beat.pid, next(step for step in STEPS if seconds <= step))


def _queue(name: str, workers: list[Worker], depths: list[Depth], failures: int, at: datetime) -> Queue:
    return Queue(
        name=name,
        workers=tuple(worker for worker in workers if worker.within is not None),
        silent=tuple(worker for worker in workers if worker.within is None),
        waiting=sum(depth.waiting for depth in depths),
        since=min((depth.since for depth in depths), default=None),
        late=any(is_late(depth, at) for depth in depths),
        failures=failures,
    )
