"""The story of a session: claim, launch, follow, close.

Every way out (success, error, time limit, stop, lost) ends in `close`, which says why. What is stored comes
from the raw log alone, so a worker may die at any line of this file.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from memories.errors import MemoriesError
from sessions_app import escalation, queue
from sessions_app.errors import SessionsError
from sessions_app.models import Session, Status, Trigger
from sessions_app.runner import handover
from sessions_app.runner.ingest import Ingested, OnEntries, ingest, load_state
from sessions_app.runner.launch import folder_of, handoff_file, launch, stderr_file
from sessions_app.runner.outcome import EndedBy, Ending, LastResult, outcome
from sessions_app.runner.process import CannotStart, Process, terminate

logger = logging.getLogger(__name__)

T = TypeVar("T")
StopWanted = Callable[[], str]

POLL = 0.2
"""Seconds between two looks at a running process and its log."""
LOOK = 1.0
"""Seconds between two looks at the row: was a stop asked for, is it still ours?"""
BEAT = 10.0
"""Seconds between two heartbeats; the reaper takes over after `reaper.STALE`."""
LINGER = 60.0
"""Seconds a process may go on silently after its result before it is ended."""
STDERR_TAIL = 4000
"""Bytes of stderr kept on the row."""


def run_session(
    session_id: int, *, on_entries: OnEntries | None = None, stop_wanted: StopWanted | None = None
) -> Status | None:
    """Carry out a queued session, from claim to close. None when it is not ours to run (or was let go).

    `on_entries` gets the readable lines as they are stored; `stop_wanted` is asked now and then and answers
    with the name of who wants the session stopped, or an empty string.
    """
    session = queue.claim(session_id, host=settings.CLAUDEOPS_HOST)
    if session is None:
        return None
    try:
        process = launch(session)
    except (CannotStart, SessionsError, MemoriesError, OSError) as error:
        fix = getattr(error, "fix", "")
        return close(session.pk, Status.FAILED, " ".join(filter(None, [f"Could not be started: {error}", fix])))
    return follow(session.pk, process, on_entries=on_entries, stop_wanted=stop_wanted)


def follow(
    session_id: int,
    process: Process,
    *,
    on_entries: OnEntries | None = None,
    stop_wanted: StopWanted | None = None,
) -> Status | None:
    """Follow a process and its log to the end, and close the session. None when it was let go or closed elsewhere."""
    session = Session.objects.select_related("agent").get(pk=session_id)
    timeout = timeout_of(session)
    deadline = (session.started_at or timezone.now()) + timedelta(seconds=timeout)
    watch = _Watch(session_id)
    ended_by, stopped_by = EndedBy.ITSELF, ""
    while True:
        alive, code = process.wait(POLL)
        done = _patiently(lambda: ingest(session_id, on_entries=on_entries))
        if not alive:
            break
        if handover.requested():
            Session.objects.filter(pk=session_id, status=Status.RUNNING).update(heartbeat_at=None)
            logger.info("session %s: let go, its process %s goes on", session_id, process.pid)
            return None
        look = _patiently(watch.look)
        if look is not None and not look.ours:
            logger.warning("session %s was closed elsewhere: its process is ended", session_id)
            terminate(process, settings.CLAUDEOPS_STOP_GRACE)
            return None
        if look is not None and look.stop:
            ended_by, stopped_by = EndedBy.STOP, look.stopped_by
        elif stop_wanted and (stopped_by := stop_wanted()):
            ended_by = EndedBy.STOP
        elif timezone.now() >= deadline:
            ended_by = EndedBy.DEADLINE
        elif watch.lingers(done):
            ended_by = EndedBy.LINGER
        if ended_by is not EndedBy.ITSELF:
            code = terminate(process, settings.CLAUDEOPS_STOP_GRACE)
            break
    return finish(session_id, exit_code=code, ended_by=ended_by, stopped_by=stopped_by, on_entries=on_entries)


def finish(
    session_id: int,
    *,
    exit_code: int | None,
    ended_by: EndedBy = EndedBy.ITSELF,
    stopped_by: str = "",
    on_entries: OnEntries | None = None,
    at: datetime | None = None,
) -> Status | None:
    """The process has ended: take its log to the end, and close the session by what that says."""
    ingest(session_id, final=True, on_entries=on_entries)
    session = Session.objects.select_related("agent").get(pk=session_id)
    state = load_state(session)
    last = state.last_result
    stderr = stderr_tail(session)
    status, reason = outcome(
        Ending(
            exit_code=exit_code,
            result=LastResult(**last) if last else None,
            ended_by=ended_by,
            stopped_by=stopped_by,
            timeout=timeout_of(session),
            linger=LINGER,
            stderr=stderr,
            denials=state.denials,
            mcp_failed=state.mcp_failed,
        )
    )
    error = "" if status == Status.COMPLETED else stderr
    return close(session_id, status, reason, exit_code=exit_code, error=error, at=at)


def close(
    session_id: int,
    status: Status,
    reason: str,
    *,
    exit_code: int | None = None,
    error: str = "",
    at: datetime | None = None,
) -> Status | None:
    """End a running session: the one place where that happens. Starts the escalation it asked for, once.

    None when it is not running any more (somebody else closed it).
    """
    at = at or timezone.now()
    with transaction.atomic():
        session = Session.objects.select_related("agent__escalates_to", "project").get(pk=session_id)
        if session.status != Status.RUNNING:
            return None
        record = _escalate(session, status, at)
        if record.get("child") and status == Status.COMPLETED:
            status = Status.ESCALATED
        remark = _escalation_remark(record)
        changed = Session.objects.filter(pk=session_id, status=Status.RUNNING).update(
            status=status,
            status_reason=" ".join(filter(None, [reason, remark])),
            summary=_summary(session),
            escalation=record,
            exit_code=exit_code,
            error=error,
            ended_at=at,
            heartbeat_at=at,
            hold_reason="",
        )
        if not changed:
            transaction.set_rollback(True)
            return None
    shutil.rmtree(folder_of(session) / "tmp", ignore_errors=True)
    logger.info("session %s: %s", session_id, " — ".join(filter(None, [str(status.label), reason])))
    queue.dispatch()
    return status


def timeout_of(session: Session) -> int:
    """Seconds the session may run: its agent's, never more than the setting (the queue's own limit hangs on it)."""
    own = session.agent.timeout_seconds if session.agent else None
    return min(own or settings.CLAUDEOPS_SESSION_TIMEOUT, settings.CLAUDEOPS_SESSION_TIMEOUT)


def stderr_tail(session: Session) -> str:
    """The last of what the process wrote to stderr."""
    try:
        with stderr_file(session).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - STDERR_TAIL))
            return file.read().decode("utf-8", "replace").replace("\x00", "\ufffd").strip()
    except OSError:
        return ""


def _escalate(session: Session, status: Status, at: datetime) -> dict[str, object]:
    if status in (Status.STOPPED, Status.LOST) or session.trigger == Trigger.IMPORT:
        return {}
    asked = escalation.asked_for(session.structured, handoff_file(session))
    if asked is None:
        return {}
    record = asked.as_record()
    if asked.problem:
        logger.warning("session %s: %s", session.pk, asked.problem)
        return record
    refused = escalation.refusal(session)
    if refused:
        return {**record, "not_started": refused}
    agent = session.agent
    next_agent = (agent.escalates_to or agent) if agent else None
    try:
        with transaction.atomic():
            child = queue.request_session(
                agent=next_agent,
                tier=session.tier + 1,
                trigger=Trigger.ESCALATION,
                by=f"session:{session.pk}",
                prompt_task=session.task,
                project=session.project,
                runner=session.runner if next_agent is None else None,
                parent=session,
                at=at,
            )
    except SessionsError as error:
        logger.warning("session %s: its escalation could not be started: %s", session.pk, error)
        return {**record, "not_started": str(error)}
    return {**record, "child": child.pk}


def _escalation_remark(record: dict[str, object]) -> str:
    if record.get("problem"):
        return f"It asked for escalation, but {record['problem']}."
    if record.get("not_started"):
        return f"It asked for escalation, which was not started: {record['not_started']}."
    if record.get("child"):
        return f"Escalated to session {record['child']}: {record.get('reason') or 'no reason given'}"
    return ""


def _summary(session: Session) -> str:
    answer = session.structured or {}
    text = answer.get("summary") if isinstance(answer.get("summary"), str) else ""
    if not text:
        lines = [line.strip() for line in session.response.splitlines() if line.strip() and "[" not in line[:1]]
        text = lines[0] if lines else ""
    return text[:2000]


class _Look:
    """What a look at the row told."""

    def __init__(self, row: Mapping[str, object] | None) -> None:
        self.ours = row is not None and row["status"] == Status.RUNNING
        self.stop = row is not None and row["stop_requested_at"] is not None
        self.stopped_by = str(row["stop_requested_by"]) if row else ""


class _Watch:
    """The follower's clock: when to look at the row, when to beat, and since when nothing was said after a result."""

    def __init__(self, session_id: int) -> None:
        self.session_id = session_id
        self.next_look = self.next_beat = 0.0
        self.quiet_since: float | None = None

    def look(self) -> _Look | None:
        now = time.monotonic()
        if now < self.next_look:
            return None
        self.next_look = now + LOOK
        rows = Session.objects.filter(pk=self.session_id)
        if now >= self.next_beat:
            rows.filter(status=Status.RUNNING).update(heartbeat_at=timezone.now())
            self.next_beat = now + BEAT
        return _Look(rows.values("status", "stop_requested_at", "stop_requested_by").first())

    def lingers(self, done: Ingested | None) -> bool:
        if done is None or done.lines or not done.state.results:
            self.quiet_since = None
            return False
        self.quiet_since = self.quiet_since or time.monotonic()
        return time.monotonic() - self.quiet_since >= LINGER


def _patiently(step: Callable[[], T]) -> T | None:
    """Run `step`; a database that does not answer for a while does not end a session. None then."""
    try:
        return step()
    except (OperationalError, InterfaceError) as error:
        if connection.in_atomic_block:
            raise
        logger.warning("the database did not answer (%s); trying again", error)
        connection.close()
        time.sleep(1)
        return None
