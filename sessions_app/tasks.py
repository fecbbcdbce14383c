"""What the queue's workers call for the sessions. Thin: each does domain verbs and returns an id or nothing
(django-q2 pickles results). Delivered at least once; every one of them claims what it does."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from sessions_app import queue, reaper
from sessions_app.log import pruning
from sessions_app.queue import tasks
from sessions_app.runner import handover, run

logger = logging.getLogger(__name__)

FORGET_TASKS_AFTER = timedelta(days=30)


def run_session(session_id: int) -> int | None:
    """A wake-up: carry out the first session in line, which need not be the one this was sent for."""
    for candidate in queue.in_line(session_id):
        if handover.closing():
            break
        if run.run_session(candidate) is not None:
            return candidate
    if handover.closing():
        queue.give_back(session_id)
    return None


def follow_session(session_id: int) -> int | None:
    """Follow a session of this host whose follower is gone."""
    if handover.closing():
        return None  # the reaper asks again
    return session_id if reaper.take_over(session_id) is not None else None


def tick() -> None:
    """Fire the schedules that are due, and go over the queue."""
    queue.tick()
    queue.dispatch()


def reap() -> None:
    """Look after sessions nobody follows: here, and on every other host that has workers."""
    queue.reap_elsewhere(settings.CLAUDEOPS_HOST)
    reap_here()


def reap_here() -> None:
    """Look after the sessions of this host, and those of hosts that are gone."""
    reaped = reaper.reap()
    if reaped.closed or reaped.requeued or reaped.lost or reaped.failed or reaped.ended:
        logger.info("reaped: %s", reaped)


def prune() -> None:
    """Forget what is old: log entries, heartbeats, tasks nobody took."""
    at = timezone.now()
    pruned = pruning.prune(at=at)
    untaken, failures = tasks.forget(at - FORGET_TASKS_AFTER)
    logger.info("pruned: %s, %s tasks nobody took, %s failed tasks", pruned, untaken, failures)
