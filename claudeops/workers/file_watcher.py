"""Keep a process that watches the agent files of a host, as long as there is a project with a repository."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from multiprocessing.context import ForkProcess

from django.db import connections

from claudeops.workers.parent_death import die_with_parent
from claudeops.workers.supervisor import Backoff
from memories.files import watch
from memories.files.sync import sync_project

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
