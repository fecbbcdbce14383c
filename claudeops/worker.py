"""One worker process of the queue: django-q2's guard and pool, stopped from the main thread, with a heartbeat.

django-q2's own `Cluster` stops inside its signal handler, and hangs when the signal also reached its children.
Imported after Q_CLUSTER_NAME is in the environment: django-q2 reads it once, when it is first imported.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
import uuid
from multiprocessing.process import BaseProcess
from types import FrameType

from django.conf import settings
from django.db import Error as AnyDatabaseError
from django.db import connections
from django.utils import timezone
from django_q.cluster import Sentinel
from django_q.conf import Conf

from claudeops.tether import Pool
from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Session, WorkerHeartbeat
from sessions_app.queue import tasks
from sessions_app.runner import handover

logger = logging.getLogger(__name__)

BEAT = 15.0
"""Seconds between two heartbeats."""
LOOK = 0.2
LET_GO = 2.0
"""Seconds tasks have to let go of their sessions, when the cluster cannot go on."""
TASKS_MAY_TAKE = 45.0
"""Seconds a stopping worker waits for its tasks; what is cut off then is delivered again."""
BY = "worker"

# The flags that tell tasks to let go are memory shared by fork, and so is the death watch: no fork, no worker.
FORK = multiprocessing.get_context("fork")

DETACH, STOP = "detach", "stop"
ON_STOP = (DETACH, STOP)


class GuardedSentinel(Sentinel):
    """django-q2's guard, which ends the whole cluster when one of its processes was killed.

    A process that is killed while it waits for a task takes the queue's lock with it: the others then wait
    for ever, and so does whoever replaces it. A fresh cluster is the way out; what was being done is
    delivered again, and sessions are followed again.
    """

    def reincarnate(self, process: BaseProcess) -> None:
        if process.exitcode is not None and process.exitcode < 0:
            logger.critical("a worker process was killed (signal %s): its cluster ends", -process.exitcode)
            handover.DETACH.set()
            time.sleep(LET_GO)
            os.killpg(0, signal.SIGKILL)
        super().reincarnate(process)


class Worker:
    """Serves the queue `cluster` until it is asked to stop.

    `on_stop` says what becomes of the sessions that are followed here: with `detach` their CLI goes on and
    the reaper follows it again, with `stop` they are stopped first.
    """

    def __init__(self, cluster: str, *, on_stop: str = DETACH) -> None:
        if cluster != Conf.CLUSTER_NAME:
            raise ValueError(f"This process was started for the queue {Conf.CLUSTER_NAME}, not for {cluster}.")
        self.name, self.on_stop = cluster, on_stop
        self._pool = Pool()
        self._asked = 0
        self._next_beat = 0.0
        self._stop_event, self._started = FORK.Event(), FORK.Event()
        # The broker is None: the guard makes its own, after the fork.
        self._guard = FORK.Process(
            target=GuardedSentinel, args=(self._stop_event, self._started, uuid.uuid4(), None, None), name="guard"
        )

    def run(self) -> int:
        """Serve, until SIGTERM, SIGINT or SIGHUP: returns 0. 1 when the cluster could not start or died."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        connections.close_all()  # a connection must not be shared across a fork
        self._guard.start()
        while not self._started.is_set():
            if not self._guard.is_alive():
                logger.error("worker %s: it could not start (exit code %s)", self.name, self._guard.exitcode)
                return 1
            time.sleep(LOOK)
        logger.info("worker %s: serving on %s (pid %s)", self.name, settings.CLAUDEOPS_HOST, os.getpid())
        try:
            self._beat()
            self._look_after_sessions()
            return self._serve()
        finally:
            self._sign_off()

    def _look_after_sessions(self) -> None:
        """Sessions the last worker let go of need not wait for the next minute's reaping."""
        if self.name != tasks.SESSIONS:
            return
        try:
            tasks.send_reap(settings.CLAUDEOPS_HOST, self.name)
        except AnyDatabaseError as error:
            logger.warning("worker %s: left-over sessions wait for the reaper (%s)", self.name, error)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        self._asked += 1

    def _serve(self) -> int:
        while not self._asked:
            if not self._guard.is_alive():
                logger.error("worker %s: its cluster died (exit code %s)", self.name, self._guard.exitcode)
                return 1
            self._beat()
            time.sleep(LOOK)
        self._stop()
        return 0

    def _stop(self) -> None:
        """Stop in order. A second signal lets go of sessions that are still being stopped."""
        handover.CLOSING.set()
        stopping_sessions = self.on_stop == STOP and self.name == tasks.SESSIONS
        limit = TASKS_MAY_TAKE + (2 * settings.CLAUDEOPS_STOP_GRACE if stopping_sessions else 0)
        if not stopping_sessions:
            handover.DETACH.set()
        logger.info("worker %s: stopping", self.name)
        if self._guard.is_alive():  # one that died may have taken the event's lock with it
            self._stop_event.set()
        give_up = time.monotonic() + limit
        while self._guard.is_alive():
            if self._asked > 1:
                handover.DETACH.set()
            if stopping_sessions and not handover.requested():
                self._stop_sessions()  # again and again: one may have been claimed just before
            if time.monotonic() > give_up:
                logger.warning("worker %s: its tasks did not end in %d s and are cut off", self.name, limit)
                os.killpg(self._guard.pid or 0, signal.SIGKILL)
                break
            self._beat()
            time.sleep(LOOK)
        self._guard.join()

    def _stop_sessions(self) -> None:
        try:
            running = Session.objects.running().filter(host=settings.CLAUDEOPS_HOST, stop_requested_at=None)
            for session_id in running.values_list("pk", flat=True):
                try:
                    logger.info("%s", queue.request_stop(session_id, by=BY))
                except SessionsError as refusal:
                    logger.info("%s", refusal)  # it ended at this moment
        except AnyDatabaseError:
            logger.exception("worker %s: its sessions could not be told to stop; they go on", self.name)
            handover.DETACH.set()

    def _row(self) -> dict[str, object]:
        return {"host": settings.CLAUDEOPS_HOST, "cluster": self.name, "pid": os.getpid()}

    def _beat(self) -> None:
        if time.monotonic() < self._next_beat:
            return
        first = not self._next_beat
        self._next_beat = time.monotonic() + BEAT
        at = timezone.now()
        try:
            mine = WorkerHeartbeat.objects.filter(**self._row())
            if not mine.update(beat_at=at, **({"started_at": at} if first else {})):
                WorkerHeartbeat.objects.create(**self._row(), started_at=at, beat_at=at)
        except AnyDatabaseError as error:
            logger.warning("worker %s: no heartbeat, the database does not answer (%s)", self.name, error)
            connections.close_all()

    def _sign_off(self) -> None:
        try:
            WorkerHeartbeat.objects.filter(**self._row()).delete()
        except AnyDatabaseError as error:
            logger.warning("worker %s: its heartbeat stays behind (%s)", self.name, error)
