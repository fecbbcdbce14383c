"""Reap running sessions without a follower: their worker died, was stopped, or its host is gone.

A living process gets a new follower; the log of a dead one is ingested to its end and decides the outcome; a session
that never started is queued again, as are the tasks that a dead worker had taken. Sessions of another host are closed
only when that host is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psutil
from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from memories.models import RecordLevel
from memories.telemetry import record
from sessions_app import queue
from sessions_app.credit.outcome import settle_all
from sessions_app.errors import RawLogOutside
from sessions_app.models import Session, Status, Trigger, WorkerHeartbeat
from sessions_app.queue import tasks
from sessions_app.runner import log_masking, run
from sessions_app.runner.ingest import OnEntries
from sessions_app.runner.launch import folder_of
from sessions_app.runner.outcome import EndedBy
from sessions_app.runner.process import Process, find, find_by_session_id, terminate
from sessions_app.runner.raw_log import log_path

logger = logging.getLogger(__name__)

STALE = timedelta(seconds=60)
"""A session without a heartbeat for this long has no follower (which writes one every ten seconds)."""
HOST_GONE = timedelta(minutes=5)
"""A host without a heartbeat of any worker for this long is gone."""
LOST_SEARCHED = timedelta(days=2)
"""How far back lost sessions are searched for living processes; a session lasts a day at most."""
MOST_ATTEMPTS = 12
"""A session that was claimed so often is closed as failed: its log may crash every reader."""


@dataclass(slots=True)
class Reaped:
    """Session ids by what was done with them. `ended`: processes of lost sessions that were ended."""

    followed: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    requeued: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)


def unfollowed(at: datetime) -> Q:
    """Match running sessions without a recent heartbeat: they have no follower.

    A heartbeat far in the future was written before the clock was set back; a follower would have written another.
    """
    stale = Q(heartbeat_at=None) | Q(heartbeat_at__lt=at - STALE) | Q(heartbeat_at__gt=at + STALE)
    return Q(status=Status.RUNNING) & stale


def reap(
    *, at: datetime | None = None, follow: Callable[[int], object] | None = None, source: str = "command"
) -> Reaped:
    """Reap every running session without a follower at `at` (UTC; now when None), and credit what was left uncredited.

    `follow` gets the id of a session whose process lives; by default it enqueues a task, which may take an hour.
    `source` is what runs it, for its telemetry record; a run that reaps nothing leaves none.
    """
    at = at or timezone.now()
    follow = follow or queue.enqueue_follow
    result = Reaped()
    _forget_dead_workers(at)
    for session in Session.objects.filter(unfollowed(at)).select_related("agent").order_by("pk"):
        if session.host and session.host != settings.CLAUDEOPS_HOST:
            _reap_foreign(session, at, result)
            continue
        try:
            _reap_own(session, at, follow, result)
        except Exception:
            # An error in one session must not stop the others. The next call tries again.
            logger.exception("session %s could not be reaped", session.pk)
            result.failed.append(session.pk)
    _end_processes_of_lost_sessions(at, result)
    settle_all(at=at)
    numbers: dict[str, Any] = {name: len(ids) for name, ids in asdict(result).items()}
    if any(numbers.values()):
        level = RecordLevel.WARNING if result.lost or result.failed else RecordLevel.INFO
        record("sessions.reap.completed", component="reaper", source=source, level=level, **numbers)
    return result


def _forget_dead_workers(at: datetime) -> None:
    """Delete the heartbeats of workers of this host that were killed, and give back the tasks of all that are gone."""
    mine = WorkerHeartbeat.objects.filter(host=settings.CLAUDEOPS_HOST)
    mine.filter(pid__in=[pid for pid in mine.values_list("pid", flat=True) if not psutil.pid_exists(pid)]).delete()
    if count := tasks.give_back_taken(at):
        logger.info("tasks of workers that are gone were given back: %s", count)


def take_over(session_id: int, *, at: datetime | None = None, on_entries: OnEntries | None = None) -> Status | None:
    """Follow a session that lost its follower, to its end. None when it has another follower, or has ended."""
    at = at or timezone.now()
    session = Session.objects.get(pk=session_id)
    if not claim(session, at):
        return None
    process = process_of(session)
    if process is None:
        return run.finish(session_id, exit_code=None, on_entries=on_entries)
    return run.follow(session_id, process, on_entries=on_entries)


def process_of(session: Session) -> Process | None:
    """Find the session's process on this host; None when it has ended.

    An imported session has none: a CLI with its session id is a person's own.
    """
    if session.trigger == Trigger.IMPORT:
        return None
    if session.pid and session.pid_started_at is not None:
        alive = find(session.pid, session.pid_started_at)
        return Process(session.pid, session.pid_started_at) if alive else None
    # The worker may have died after the start, before it stored the pid.
    return find_by_session_id(session.cli_session_id) if session.cli_session_id else None


def _reap_own(session: Session, at: datetime, follow: Callable[[int], object], result: Reaped) -> None:
    if session.attempts >= MOST_ATTEMPTS:
        _give_up(session, result)
        return
    process = process_of(session)
    if process is not None:
        _reap_living(session, process, at, follow, result)
        return
    if not claim(session, at):
        return
    if not _was_started(session):
        if _requeue(session, at):
            result.requeued.append(session.pk)
        return
    # The last follower may have died after it ended the process for a stop.
    ended_by = EndedBy.STOP if session.stop_requested_at else EndedBy.ITSELF
    if run.finish(session.pk, exit_code=None, ended_by=ended_by, stopped_by=session.stop_requested_by):
        result.closed.append(session.pk)


def _reap_living(
    session: Session, process: Process, at: datetime, follow: Callable[[int], object], result: Reaped
) -> None:
    if not session.stop_requested_at and process.age < run.timeout_of(session):
        follow(session.pk)
        result.followed.append(session.pk)
        return
    # All workers may be busy for an hour; a stop or a deadline cannot wait for one.
    if claim(session, at):
        ended_by = EndedBy.STOP if session.stop_requested_at else EndedBy.DEADLINE
        code = terminate(process, settings.SESSION_STOP_GRACE)
        run.finish(session.pk, exit_code=code, ended_by=ended_by, stopped_by=session.stop_requested_by)
        result.closed.append(session.pk)


def _end_processes_of_lost_sessions(at: datetime, result: Reaped) -> None:
    """End processes whose session another host closed as lost while this host had no worker: they have no deadline.

    Credentials in their raw logs are masked, which the other host could not do.
    """
    lost = Session.objects.filter(
        status=Status.LOST, host=settings.CLAUDEOPS_HOST, ended_at__gte=at - LOST_SEARCHED, pid__isnull=False
    )
    for session in lost.select_related("agent"):
        process = process_of(session)
        if process is not None:
            logger.warning("session %s was closed as lost; ending its process %s", session.pk, process.pid)
            terminate(process, settings.SESSION_STOP_GRACE)
            result.ended.append(session.pk)
        log_masking.seal(session, folder_of(session))


def _reap_foreign(session: Session, at: datetime, result: Reaped) -> None:
    beats = WorkerHeartbeat.objects.filter(host=session.host, beat_at__gte=at - HOST_GONE)
    last_sign = max(filter(None, [session.heartbeat_at, session.started_at]), default=at)
    if beats.exists() or last_sign > at - HOST_GONE:
        return
    reason = f"Its host {session.host} has sent no heartbeat since {last_sign:%Y-%m-%d %H:%M} UTC."
    if run.close(session.pk, Status.LOST, reason, at=at):
        result.lost.append(session.pk)


def _give_up(session: Session, result: Reaped) -> None:
    process = process_of(session)
    if process is not None:
        terminate(process, settings.SESSION_STOP_GRACE)
    reason = (
        f"Given up after {session.attempts} attempts to follow it; its log was ingested up to byte "
        f"{session.ingest_offset}. The raw log is kept: {session.log_file or 'none was written'}."
    )
    if run.close(session.pk, Status.FAILED, reason, error=run.stderr_tail(session)):
        result.failed.append(session.pk)


def claim(session: Session, at: datetime) -> bool:
    """Claim the session for a new follower. True for exactly one caller."""
    rows = Session.objects.filter(pk=session.pk, status=Status.RUNNING, heartbeat_at=session.heartbeat_at)
    return bool(rows.filter(unfollowed(at)).update(heartbeat_at=at, attempts=F("attempts") + 1))


def _was_started(session: Session) -> bool:
    """Whether a process ran for this session, here or where its log is from: there is a pid, or output."""
    if session.pid or session.trigger == Trigger.IMPORT:
        return True
    return bool(session.log_file) and (_size(session) > 0 or bool(run.stderr_tail(session)))


def _size(session: Session) -> int:
    try:
        return log_path(session).stat().st_size
    except (OSError, RawLogOutside):
        return 0


def _requeue(session: Session, at: datetime) -> bool:
    rows = Session.objects.filter(pk=session.pk, status=Status.RUNNING, pid=None, heartbeat_at=at)
    changed = rows.update(status=Status.QUEUED, started_at=None, heartbeat_at=None, dispatched_at=None, host="")
    if changed:
        logger.warning("session %s: its worker died before the start; queued again", session.pk)
        queue.dispatch()
    return bool(changed)
