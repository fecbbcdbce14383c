"""One worker process of the queue: django-q2's cluster, stopped from the main thread, with a heartbeat.

django-q2's own command stops inside its signal handler, and hangs when the signal also reached its children.
Imported after Q_CLUSTER_NAME is in the environment: django-q2 reads it once, when it is first imported.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from datetime import timedelta
from types import FrameType

from django.conf import settings
from django.db import DatabaseError, connections
from django.utils import timezone
from django_q.cluster import Cluster
from django_q.conf import Conf

from claudeops.tether import Pool
from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Session, WorkerHeartbeat
from sessions_app.queue import wakeups
from sessions_app.runner import detach

logger = logging.getLogger(__name__)

BEAT = 15.0
"""Seconds between two heartbeats."""
LOOK = 0.2
TASKS_MAY_TAKE = 45.0
"""Seconds a stopping worker waits for its tasks; what is cut off then is delivered again."""
BY = "worker"

DETACH, STOP = "detach", "stop"
ON_STOP = (DETACH, STOP)


class OneCluster(Cluster):
    """A cluster whose signal handler only counts; `Worker` acts on it."""

    def __init__(self) -> None:
        self.asked = 0
        super().__init__()
        signal.signal(signal.SIGHUP, self.sig_handler)

    def sig_handler(self, signum: int, frame: FrameType | None) -> None:
        self.asked += 1


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
        self._next_beat = 0.0

    def run(self) -> int:
        """Serve, until SIGTERM, SIGINT or SIGHUP: returns 0. 1 when the cluster could not start or died."""
        self._cluster = OneCluster()
        connections.close_all()  # a connection must not be shared across a fork
        try:
            self._cluster.start()
        except RuntimeError as error:
            logger.error("worker %s: %s", self.name, error)
            return 1
        logger.info("worker %s: serving on %s (pid %s)", self.name, settings.CLAUDEOPS_HOST, os.getpid())
        try:
            return self._serve()
        finally:
            self._sign_off()

    def _serve(self) -> int:
        while not self._cluster.asked:
            if not self._cluster.sentinel.is_alive():
                logger.error("worker %s: its cluster died (exit code %s)", self.name, self._cluster.sentinel.exitcode)
                return 1
            self._beat()
            time.sleep(LOOK)
        self._stop()
        return 0

    def _stop(self) -> None:
        """Stop in order. A second signal lets go of sessions that are still being stopped."""
        detach.CLOSING.set()
        stopping_sessions = self.on_stop == STOP and self.name == wakeups.SESSIONS
        limit = TASKS_MAY_TAKE + (2 * settings.CLAUDEOPS_STOP_GRACE if stopping_sessions else 0)
        if not stopping_sessions:
            detach.DETACH.set()
        logger.info("worker %s: stopping", self.name)
        self._cluster.stop_event.set()
        give_up = time.monotonic() + limit
        while self._cluster.sentinel.is_alive():
            if self._cluster.asked > 1:
                detach.DETACH.set()
            if stopping_sessions and not detach.requested():
                self._stop_sessions()  # again and again: one may have been claimed just before
            if time.monotonic() > give_up:
                logger.warning("worker %s: its tasks did not end in %d s and are cut off", self.name, limit)
                os.killpg(self._cluster.sentinel.pid, signal.SIGKILL)
                break
            self._beat()
            time.sleep(LOOK)
        self._cluster.sentinel.join()

    def _stop_sessions(self) -> None:
        try:
            running = Session.objects.running().filter(host=settings.CLAUDEOPS_HOST, stop_requested_at=None)
            for session_id in running.values_list("pk", flat=True):
                try:
                    logger.info("%s", queue.request_stop(session_id, by=BY))
                except SessionsError as refusal:
                    logger.info("%s", refusal)  # it ended at this moment
        except DatabaseError:
            logger.exception("worker %s: its sessions could not be told to stop; they go on", self.name)
            detach.DETACH.set()

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
        except DatabaseError as error:
            logger.warning("worker %s: no heartbeat, the database does not answer (%s)", self.name, error)
            connections.close_all()

    def _sign_off(self) -> None:
        try:
            WorkerHeartbeat.objects.filter(**self._row()).delete()
        except DatabaseError as error:
            logger.warning("worker %s: its heartbeat stays behind (%s)", self.name, error)


def fresh(beat_age: timedelta) -> bool:
    """Whether a heartbeat of this age belongs to a worker that lives."""
    return beat_age < timedelta(seconds=4 * BEAT)
