"""The worker of a host: takes tasks from the queues and runs each one in a process forked for it.

A session's process and log are on one host: its tasks go to `<queue>@<host>`, which only that host reads. A host
without room for a session takes no wake-up that another host could use. A taken task names its worker in its key, so
that it can be given back when that worker is gone.

Task functions, results, retries and schedules are django-q2's; its cluster is not used. That keeps six processes for
each queue, and stops serving when one is killed while it holds the queue's lock. Here a killed task costs that task
alone: django-q2 delivers it again after the queue's `retry`.
"""

from __future__ import annotations

import gc
import logging
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from time import monotonic
from types import FrameType, SimpleNamespace
from typing import Any

from django.conf import settings
from django.db import Error as AnyDatabaseError
from django.db import connections
from django.db.models import Case, IntegerField, Value, When
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.monitor import monitor
from django_q.scheduler import scheduler
from django_q.signing import BadSignature, SignedPackage
from django_q.worker import worker as run_tasks

from claudeops.lib import outage
from claudeops.lib.clock import Clock
from claudeops.lib.secrets import mask_value
from claudeops.workers import runs
from claudeops.workers.schedules import APPS, sync_schedules
from claudeops.workers.supervisor import Backoff, die_with_parent
from memories.files import watch
from memories.files.sync import sync_project
from sessions_app.checks import clusters
from sessions_app.errors import SessionsError
from sessions_app.models import Session, WorkerHeartbeat
from sessions_app.queue import dispatch, request_stop
from sessions_app.queue.dispatch import LOST_AFTER
from sessions_app.queue.tasks import DEFAULT, REAP, SESSIONS, SWEEP, TAKEN, address, give_back_taken, send
from sessions_app.runner import handover

SETTLE = 2.0
"""Seconds from taking a wake-up until its session is seen as running."""


class HostBroker(ORM):
    """Serves the queue `list_key` and this host's part of it."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self._taken: list[float] = []

    def __setstate__(self, state: tuple[str, Any]) -> None:
        super().__setstate__(state)
        self._taken = []

    def timeout(self, task: Any) -> Any:
        """Return when `task` is delivered again unless it is acknowledged: after this queue's own `retry`."""
        return timezone.now() + timedelta(seconds=dict(clusters())[self.list_key]["retry"])

    def hold_until(self, at: datetime) -> None:
        """Set until when (UTC) the tasks that this process took are its own."""
        self.get_connection().filter(key__in=self._taken_keys()).update(lock=at)

    def _taken_keys(self) -> tuple[str, str]:
        """Return the keys of tasks that this process took: one for any host, one addressed to this one."""
        own, pid = address(self.list_key, settings.CLAUDEOPS_HOST), os.getpid()
        return f"{own}{TAKEN * 2}{pid}", f"{own}{TAKEN}{pid}"

    def _has_room(self) -> bool:
        if self.list_key != SESSIONS:
            return True
        self._taken = [moment for moment in self._taken if monotonic() - moment < SETTLE]
        running = Session.objects.running().filter(host=settings.CLAUDEOPS_HOST).count()
        return running + len(self._taken) < settings.CLAUDEOPS_SESSION_WORKERS

    def dequeue(self) -> list[tuple[int, str]]:
        """Take the next task, [(id, payload)], by conditional UPDATE; [] when none waits or another worker took it."""
        own = address(self.list_key, settings.CLAUDEOPS_HOST)
        first = Case(When(key=own, then=Value(0)), default=Value(1), output_field=IntegerField())
        keys = [own, self.list_key] if self._has_room() else [own]
        rows = self.get_connection().filter(key__in=keys, lock__lt=timezone.now())
        task = rows.order_by(first, "id").first()
        if task is None:
            return []
        new_key = self._taken_keys()[task.key == own]
        if not rows.filter(pk=task.pk).update(key=new_key, lock=self.timeout(task)):
            return []
        if task.key != own:
            self._taken.append(monotonic())
        return [(task.pk, task.payload)]


logger = logging.getLogger(__name__)

FORK = multiprocessing.get_context("fork")
LOOK_EVERY = 3.0
"""Seconds between two looks whether there is something to watch."""


class FileWatcher:
    """A child process of the worker; one that died is started again, later after each death."""

    def __init__(self, backoff: Backoff | None = None) -> None:
        self._backoff = backoff or Backoff()
        self._process: ForkProcess | None = None
        self._started = self._look_at = 0.0
        self._deaths = 0

    def look_after(self) -> None:
        """Start the process when it is missing. Asks the database at most every LOOK_EVERY seconds."""
        now = time.monotonic()
        if self._process is not None:
            if self._process.is_alive():
                return
            self._deaths = 1 if now - self._started >= self._backoff.healthy else self._deaths + 1
            wait = self._backoff.wait(self._deaths)
            logger.error(
                "the watcher of agent files ended with %s; it starts again in %g s", self._process.exitcode, wait
            )
            self._process, self._look_at = None, now + wait
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY
        if watch.has_projects():
            connections.close_all()  # a connection must not be shared across a fork
            self._process = FORK.Process(target=_run, args=(os.getpid(),), daemon=True)
            self._process.start()
            self._started = now

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()  # a sync may be killed at any line
            self._process.join()
            self._process = None


def _run(parent: int) -> None:
    os.setpgid(0, 0)  # a signal to the worker's group is for the worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(signal.SIGKILL, parent)
    watch.watch(sync_project)


HEARTBEAT_EVERY = 15.0
SCHEDULES_EVERY = 30.0
"""Seconds between two checks of the schedules, as in django-q2's cluster."""
QUEUE_EVERY = 15.0
"""Seconds between two looks of an idle worker at the queue of sessions, whose wake-ups may be lost."""
DATABASE_PAUSE = 10.0
"""Seconds without queries after a database error, as in django-q2's cluster."""
OVERTIME = 10.0
"""Seconds after a task's timeout, when django-q2 ends it from within, until its process is killed."""
TASKS_MAY_TAKE = 45.0
"""Seconds a stopping worker waits for its tasks; a task that is killed then is delivered again."""
STOPPED_BY = "worker"

# The flags by which tasks hand over their sessions are memory shared by fork.

DETACH, STOP = "detach", "stop"
ON_STOP = (DETACH, STOP)


class Queue:
    """A queue and the processes of its tasks. `limit` and `timeout` (seconds) are the settings of the queue."""

    def __init__(self, name: str) -> None:
        conf = dict(clusters())[name]
        self.name, self.limit, self.timeout = name, int(conf["workers"]), int(conf["timeout"])
        self.broker = HostBroker(name)
        self.running: dict[ForkProcess, float] = {}
        """Each process with the time (monotonic) at which it is killed."""

    @contextmanager
    def as_current(self) -> Iterator[None]:
        """Set django-q2's global name of the queue that a process serves."""
        before, Conf.CLUSTER_NAME = Conf.CLUSTER_NAME, self.name
        try:
            yield
        finally:
            Conf.CLUSTER_NAME = before

    def start_waiting_tasks(self) -> None:
        while len(self.running) < self.limit and (tasks := self.broker.dequeue()):
            for ack_id, payload in tasks:
                self._start(ack_id, payload)

    def _start(self, ack_id: int, payload: str) -> None:
        try:
            task = SignedPackage.loads(payload)
        except (TypeError, BadSignature):
            logger.exception("queue %s: a task that cannot be read is dropped", self.name)
            self.broker.fail(ack_id)
            return
        task |= {"cluster": self.name, "ack_id": ack_id}
        connections.close_all()  # a connection must not be shared across a fork
        process = FORK.Process(target=self._run, args=(task, os.getpid()), daemon=True)
        process.start()
        timeout = task.get("timeout", self.timeout)  # -1: no limit
        self.running[process] = math.inf if timeout < 0 else time.monotonic() + timeout + OVERTIME

    def _run(self, task: dict[str, Any], parent: int) -> None:
        """In the new process: run one task, store its result and acknowledge it, by django-q2's own functions."""
        os.setpgid(0, 0)  # a signal to the worker's group is for the worker, which stops its tasks in order
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        die_with_parent(signal.SIGKILL, parent)
        results: list[dict[str, Any]] = []
        timer = SimpleNamespace(value=-1, get_lock=nullcontext)  # `collect` enforces the timeout instead
        with self.as_current():
            run_tasks(_only(task), SimpleNamespace(put=results.append), timer, self.timeout)
            for one in results:  # the text of an exception may quote anything
                one["result"] = mask_value(one.get("result"))
            monitor(_only(*results), self.broker)
        connections.close_all()

    def collect(self) -> None:
        for process, kill_at in list(self.running.items()):
            if process.is_alive() and time.monotonic() > kill_at:
                logger.error("queue %s: the task of process %s does not end and is killed", self.name, process.pid)
                self.kill(process)
            if process.is_alive():
                continue
            del self.running[process]
            if process.exitcode:
                logger.error(
                    "queue %s: the process %s of a task ended with %s before its result was stored; the task is "
                    "delivered again",
                    self.name,
                    process.pid,
                    process.exitcode,
                )

    def kill(self, process: ForkProcess) -> None:
        """Kill the process of a task. A CLI that it started has a process group of its own and goes on."""
        process.kill()
        process.join()


def _only(*tasks: dict[str, Any]) -> SimpleNamespace:
    """Make what django-q2 reads as a queue: these tasks, then the end."""
    return SimpleNamespace(get=iter([*tasks, "STOP"]).__next__)


class Worker:
    """Serve the queues `names` until it is asked to stop.

    `on_stop`: with `detach` the CLIs of followed sessions go on and the reaper has them followed again, with `stop`
    they are stopped first.
    """

    def __init__(self, names: Sequence[str], *, on_stop: str = DETACH) -> None:
        self.queues = [Queue(name) for name in names]
        self.stop_sessions = on_stop == STOP and SESSIONS in names
        self._file_watcher = FileWatcher() if DEFAULT in names else None
        self._started_at = timezone.now()
        self._clock, self._clock_jump = Clock(), ""
        self._run_id: int | None = None
        self._asked = 0
        self._next_heartbeat = self._next_schedules = self._next_dispatch = self._ask_database_at = 0.0

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or SIGHUP. Main thread only."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        for app in APPS:
            import_module(f"{app}.tasks")  # once, instead of in each task
        # A garbage collection in a child would touch, and so copy, every page that it shares with this process.
        gc.collect()
        gc.freeze()
        names = " and ".join(one.name for one in self.queues)
        logger.info("worker: serving %s on %s (pid %s)", names, settings.CLAUDEOPS_HOST, os.getpid())
        self._next_schedules = time.monotonic() + SCHEDULES_EVERY
        for one in self.queues:  # in a container each worker has the same pid: what is this one's now is the last one's
            self._with_database(partial(one.broker.hold_until, timezone.now()))
        if any(one.name == SESSIONS for one in self.queues):
            # Sessions of the last worker need not wait for the reaper's minute.
            self._with_database(lambda: send(REAP, host=settings.CLAUDEOPS_HOST, cluster=SESSIONS))
        if settings.CLAUDEOPS_OBSERVE and any(one.name == DEFAULT for one in self.queues):
            # Transcripts were written while no worker was there.
            self._with_database(lambda: send(SWEEP, host=settings.CLAUDEOPS_HOST))
        try:
            while not self._asked:
                self._with_database(self._work)
                self._rest(Conf.POLL)
            self._stop()
        finally:
            self._with_database(self._sign_off)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        self._asked += 1

    def _with_database(self, act: Callable[[], None]) -> None:
        """Call `act`; after an error of the database, log it and call nothing for DATABASE_PAUSE."""
        if time.monotonic() < self._ask_database_at:
            return
        try:
            act()
        except AnyDatabaseError as error:
            cause = outage.named_in(error)
            logger.warning("worker: %s", cause.message if cause else f"the database does not answer ({error})")
            connections.close_all()
            self._ask_database_at = time.monotonic() + DATABASE_PAUSE

    def _work(self) -> None:
        self._clock_jump = self._clock.jump() or self._clock_jump
        if self._clock_jump:
            self._follow_clock()
        self._beat()
        schedules_are_due = time.monotonic() >= self._next_schedules
        if schedules_are_due:
            self._next_schedules = time.monotonic() + SCHEDULES_EVERY
            runs.mark_lost(timezone.now())
        for one in self.queues:
            if schedules_are_due:
                with one.as_current():
                    scheduler(broker=one.broker)
            if one.name == SESSIONS and len(one.running) < one.limit and time.monotonic() >= self._next_dispatch:
                self._next_dispatch = time.monotonic() + QUEUE_EVERY
                dispatch(resend_after=LOST_AFTER)
            one.start_waiting_tasks()
        if self._file_watcher is not None:
            self._file_watcher.look_after()

    def _follow_clock(self) -> None:
        """Set anew what the database has by the time of day: heartbeats, when schedules run, the locks of tasks."""
        logger.warning("worker: the clock was %s", self._clock_jump)
        self._next_heartbeat = 0.0
        self._beat()
        sync_schedules()
        for one in self.queues:
            one.broker.hold_until(one.broker.timeout(None))
        give_back_taken(timezone.now())
        self._clock_jump = ""

    def _rest(self, seconds: float) -> None:
        processes = [process for one in self.queues for process in one.running]
        ready = wait([process.sentinel for process in processes], seconds)
        for process in processes:
            if process.sentinel in ready:
                process.join(seconds)  # its pipe closes a moment before it ends
        for one in self.queues:
            one.collect()

    def _stop(self) -> None:
        """Wait for the tasks to end. A second signal hands over sessions that are still being stopped."""
        handover.CLOSING.set()
        if self._file_watcher is not None:
            self._file_watcher.stop()
        if not self.stop_sessions:
            handover.DETACH.set()
        limit = TASKS_MAY_TAKE + (2 * settings.SESSION_STOP_GRACE if self.stop_sessions else 0)
        give_up = time.monotonic() + limit
        logger.info("worker: stopping")
        while any(one.running for one in self.queues):
            if self._asked > 1:
                handover.DETACH.set()
            if self.stop_sessions and not handover.requested():
                self._with_database(self._stop_sessions)  # repeated: one may have been claimed just before
            self._with_database(self._beat)
            if time.monotonic() > give_up:
                logger.warning("worker: its tasks did not end in %d s and are killed", limit)
                for one in self.queues:
                    for process in list(one.running):
                        one.kill(process)
            self._rest(0.2)

    def _stop_sessions(self) -> None:
        running = Session.objects.running().filter(host=settings.CLAUDEOPS_HOST, stop_requested_at=None)
        for session_id in running.values_list("pk", flat=True):
            try:
                logger.info("%s", request_stop(session_id, by=STOPPED_BY))
            except SessionsError as refusal:
                logger.info("%s", refusal)  # it has just ended

    def _beat(self) -> None:
        """Write one heartbeat a queue, every 15 seconds, and with the first that this process has started."""
        if time.monotonic() < self._next_heartbeat:
            return
        host, pid, names = settings.CLAUDEOPS_HOST, os.getpid(), [one.name for one in self.queues]
        self._run_id = self._run_id or runs.started(host=host, pid=pid, queues=names, at=self._started_at)
        fields = {"started_at": self._started_at, "beat_at": timezone.now()}
        for one in self.queues:
            WorkerHeartbeat.objects.update_or_create(host=host, cluster=one.name, pid=pid, defaults=fields)
        runs.is_alive(self._run_id)
        self._next_heartbeat = time.monotonic() + HEARTBEAT_EVERY

    def _sign_off(self) -> None:
        if self._run_id is not None:
            runs.stopped(self._run_id, timezone.now())
        WorkerHeartbeat.objects.filter(host=settings.CLAUDEOPS_HOST, pid=os.getpid()).delete()
