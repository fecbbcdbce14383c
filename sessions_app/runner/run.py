"""Run a session: claim it, launch its process, follow it, close it.

Every end (success, error, deadline, stop, lost) goes through `close`, which records the reason. What is stored comes
from the raw log alone, so a worker may die at any line of this file.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from claudeops.lib import outage
from claudeops.lib.clock import Clock
from claudeops.lib.domain_error import DomainError
from claudeops.lib.secrets import mask
from memories.embedding import state as embedding
from memories.library import journal
from memories.telemetry import record as report
from sessions_app import escalation, queue, receipts
from sessions_app.alerts.receive import hand_on
from sessions_app.credit.outcome import note_injected, settle_safely
from sessions_app.models import Session, Status, Trigger
from sessions_app.models.session import NOT_STARTED
from sessions_app.runner import handover, log_masking
from sessions_app.runner.ingest import Ingested, OnEntries, ingest, load_state
from sessions_app.runner.launch import MCP_CONFIG, folder_of, handoff_file, launch, stderr_file
from sessions_app.runner.outcome import EndedBy, Ending, LastResult, outcome
from sessions_app.runner.process import CannotStart, Process, terminate

logger = logging.getLogger(__name__)

T = TypeVar("T")
StopWanted = Callable[[], str]

POLL_SECONDS = 0.2
"""Between two reads of a running process and its log."""
ROW_CHECK_SECONDS = 1.0
"""Between two reads of the session's row: was a stop requested, is it still running?"""
HEARTBEAT_SECONDS = 10.0
"""Between two heartbeats; the reaper takes a session over after `reaper.STALE` without one."""
FULL_DISK_SHARE = 0.1
"""The part of the disk's reserve that is kept to store how the sessions ended: with less free, they are ended."""
LINGER_SECONDS = 60.0
"""A process that is silent for this long after its result is ended."""
CAPTURED = ("memor", "structured_memories", "learnings", "quoted_markers", "unknown_categories")
"""What the names of the counters begin with that say what of a log became memories."""
STDERR_TAIL_BYTES = 4000
"""How much of stderr is kept on the row."""
STDERR_READ_BYTES = 64 * 1024
"""How much of it is read and masked before the cut, which may halve a credential."""


def run_session(
    session_id: int, *, on_entries: OnEntries | None = None, stop_wanted: StopWanted | None = None
) -> Status | None:
    """Run a queued session, from claim to close. None when it could not be claimed, or was handed over.

    `on_entries` gets the log entries as they are stored. `stop_wanted` is called at every poll and returns the name of
    the person who wants the session stopped, or an empty string.
    """
    session = queue.claim(session_id, host=settings.CLAUDEOPS_HOST)
    if session is None:
        return None
    try:
        process = launch(session)
    except (CannotStart, DomainError, OSError) as error:
        cause = outage.named_in(error)
        why, fix = (cause.message, cause.fix) if cause else (str(error), getattr(error, "fix", ""))
        receipts.withdraw(session, at=timezone.now())
        return close(session.pk, Status.FAILED, f"{NOT_STARTED}{why} {fix}".rstrip())
    return follow(session.pk, process, on_entries=on_entries, stop_wanted=stop_wanted)


def follow(
    session_id: int,
    process: Process,
    *,
    on_entries: OnEntries | None = None,
    stop_wanted: StopWanted | None = None,
) -> Status | None:
    """Follow a process and its log to the end, then close it. None when it was handed over or closed elsewhere."""
    session = Session.objects.select_related("agent").get(pk=session_id)
    deadline = time.monotonic() + timeout_of(session) - process.age
    monitor = _Monitor(session_id)
    ended_by, stopped_by = EndedBy.ITSELF, ""
    while ended_by is EndedBy.ITSELF:
        alive, code = process.wait(POLL_SECONDS)
        progress = retry_when_database_is_down(lambda: ingest(session_id, on_entries=on_entries))
        full = outage.full_disk(FULL_DISK_SHARE)
        if not alive:
            break
        if handover.requested():
            Session.objects.filter(pk=session_id, status=Status.RUNNING).update(heartbeat_at=None)
            logger.info("session %s: handed over; process %s goes on", session_id, process.pid)
            return None
        row = retry_when_database_is_down(monitor.check_row)
        if row is not None and not row.running:
            logger.warning("session %s was closed by another worker; ending its process", session_id)
            terminate(process, settings.SESSION_STOP_GRACE)
            log_masking.seal(session, folder_of(session))
            return None
        if row is not None and row.stop_requested:
            ended_by, stopped_by = EndedBy.STOP, row.stopped_by
        elif stop_wanted and (stopped_by := stop_wanted()):
            ended_by = EndedBy.STOP
        elif full:
            ended_by = EndedBy.FULL_DISK
        elif time.monotonic() >= deadline:
            ended_by = EndedBy.DEADLINE
        elif monitor.lingers(progress):
            ended_by = EndedBy.LINGER
        if ended_by is not EndedBy.ITSELF:
            code = terminate(process, settings.SESSION_STOP_GRACE)
    end = partial(
        finish,
        session_id,
        exit_code=code,
        ended_by=ended_by,
        stopped_by=stopped_by,
        full_disk=full,
        note=" ".join(monitor.jumps),
        on_entries=on_entries,
    )
    # Only this process has seen how it ended: it waits until that can be stored.
    while not (closed := retry_when_database_is_down(lambda: [end()])) and not handover.requested():
        pass
    return closed[0] if closed else None


def finish(
    session_id: int,
    *,
    exit_code: int | None,
    ended_by: EndedBy = EndedBy.ITSELF,
    stopped_by: str = "",
    full_disk: str = "",
    note: str = "",
    on_entries: OnEntries | None = None,
    at: datetime | None = None,
) -> Status | None:
    """Ingest the rest of an ended process's log, and close the session with the outcome.

    `full_disk` says that the disk was full when the process ended; `note` is added to the reason.
    `at` is UTC, now when None. An imported session ends with the last time stamp of its log; without one, at `at`, or
    at its start when None.
    """
    ingest(session_id, final=True, on_entries=on_entries, at=at)
    session = Session.objects.select_related("agent").get(pk=session_id)
    state = load_state(session)
    if session.trigger == Trigger.IMPORT:
        at = datetime.fromisoformat(state.last_at) if state.last_at else at or session.started_at
    last = state.last_result
    stderr = stderr_tail(session)
    status, reason = outcome(
        Ending(
            exit_code=exit_code,
            result=LastResult(**last) if last else None,
            ended_by=ended_by,
            stopped_by=stopped_by,
            timeout=timeout_of(session),
            linger=LINGER_SECONDS,
            stderr=stderr,
            denials=state.denials,
            mcp_failed=state.mcp_failed,
            turn=state.turn if state.transcript else "",
            full_disk=full_disk,
        )
    )
    reason = " ".join(filter(None, [reason, note]))
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
    """Close a running session, and start the escalation it asked for. No other code ends a running session.

    None when it is not running any more. `at` is UTC, now when None. Its process must have ended: credentials in its
    raw log are masked first, so that a crash leaves the session running and the reaper does it again.
    """
    at = at or timezone.now()
    seal(session_id)
    with transaction.atomic():
        session = Session.objects.select_related("agent__escalates_to", "project").get(pk=session_id)
        if session.status != Status.RUNNING:
            return None
        if session.trigger == Trigger.IMPORT and session.started_at:
            at = max(at, session.started_at)
        record = {}
        if status not in (Status.STOPPED, Status.LOST) and session.trigger != Trigger.IMPORT:
            record = escalation.escalate(session, handoff_file(session), at=at)
        if record.get("child") and status == Status.COMPLETED:
            status = Status.ESCALATED
        changed = Session.objects.filter(pk=session_id, status=Status.RUNNING).update(
            status=status,
            status_reason=" ".join(filter(None, [reason, escalation.describe(record)])),
            summary=_summary(session),
            escalation=record,
            exit_code=exit_code,
            error=error,
            ended_at=at,
            duration_ms=_duration_ms(session, at),
            heartbeat_at=at,
            hold_reason="",
        )
        if not changed:
            transaction.set_rollback(True)
            return None
        hand_on(session, at=at)
        note_injected(session)
        _report(session, status, at)
        queue.enqueue_learn(session, status)  # with the close: nobody would ask again for a worker that died after it
        queue.enqueue_sync(session)
        queue.enqueue_observe_session(session)
    shutil.rmtree(folder_of(session) / "tmp", ignore_errors=True)
    (folder_of(session) / MCP_CONFIG).unlink(missing_ok=True)  # it holds the database's password
    logger.info("session %s: %s", session_id, " — ".join(filter(None, [str(status.label), reason])))
    settle_safely(session_id, at=at)
    _keep_journal()
    queue.dispatch()
    return status


def _keep_journal() -> None:
    """Commit what the session wrote to the journal; what cannot be committed now is within the hour."""
    try:
        journal.commit_due()
    except (DomainError, OSError) as error:
        logger.warning("the journal was not committed: %s", error)


def seal(session_id: int) -> None:
    """Mask the credentials in a running session's files. Those of another host are masked by its own reaper."""
    session = Session.objects.get(pk=session_id)
    mine = session.status == Status.RUNNING and session.host == settings.CLAUDEOPS_HOST
    if mine and session.trigger != Trigger.IMPORT:  # the importer stores its log masked
        log_masking.seal(session, folder_of(session))


def _report(session: Session, status: Status, at: datetime) -> None:
    """Record what was captured from the session's log, once: in the transaction that closes it."""
    captured = {name: number for name, number in sorted(session.stats.items()) if name.startswith(CAPTURED)}
    report(
        "memory.capture.completed",
        component="sessions",
        source="session",
        key=f"capture-{session.pk}",
        at=at,
        session=session.pk,
        agent=session.agent.slug if session.agent else "",
        status=str(status),
        **captured,
    )


def _duration_ms(session: Session, ended_at: datetime) -> int:
    """Return the milliseconds from start to end; of an imported log at least what its result lines state."""
    started_at = session.started_at or ended_at
    lasted = max(0, round((ended_at - started_at) / timedelta(milliseconds=1)))
    return max(lasted, session.duration_ms) if session.trigger == Trigger.IMPORT else lasted


def timeout_of(session: Session) -> int:
    """Return the seconds a session may run: its agent's, at most CLAUDEOPS_SESSION_TIMEOUT."""
    own = session.agent.timeout_seconds if session.agent else None
    return min(own or settings.CLAUDEOPS_SESSION_TIMEOUT, settings.CLAUDEOPS_SESSION_TIMEOUT)


def stderr_tail(session: Session) -> str:
    try:
        with stderr_file(session).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - STDERR_READ_BYTES))
            text = mask(file.read().decode("utf-8", "replace").replace("\x00", "\ufffd"))
            return text[-STDERR_TAIL_BYTES:].strip()
    except OSError:
        return ""


def _summary(session: Session) -> str:
    answer = session.structured or {}
    text = answer.get("summary") if isinstance(answer.get("summary"), str) else ""
    if not text:
        lines = [line.strip() for line in session.response.splitlines() if line.strip() and "[" not in line[:1]]
        text = lines[0] if lines else ""
    return text[:2000]


@dataclass(frozen=True, slots=True)
class _Row:
    """The columns of the session's row that its follower needs."""

    running: bool
    stop_requested: bool
    stopped_by: str


class _Monitor:
    """Read the row and write the heartbeat at their intervals; measure the silence after a result."""

    def __init__(self, session_id: int) -> None:
        self.session_id = session_id
        self.next_check = self.next_heartbeat = 0.0
        self.silent_since: float | None = None
        self.clock = Clock()
        self.jumps: list[str] = []

    def check_row(self) -> _Row | None:
        """Read the row, and write a heartbeat when one is due; None between two checks."""
        if jump := self.clock.jump():
            logger.warning("session %s: the clock was %s", self.session_id, jump)
            self.jumps.append(f"The clock was {jump} while it ran.")
            self.next_check = self.next_heartbeat = 0.0  # the reaper compares the heartbeat with the clock
        now = time.monotonic()
        if now < self.next_check:
            return None
        self.next_check = now + ROW_CHECK_SECONDS
        rows = Session.objects.filter(pk=self.session_id)
        if now >= self.next_heartbeat:
            rows.filter(status=Status.RUNNING).update(heartbeat_at=timezone.now())
            self.next_heartbeat = now + HEARTBEAT_SECONDS
            embedding.release()  # a session may be silent for an hour
        row = rows.values_list("status", "stop_requested_at", "stop_requested_by").first()
        status, stop_requested_at, stopped_by = row or ("", None, "")
        return _Row(status == Status.RUNNING, stop_requested_at is not None, stopped_by)

    def lingers(self, done: Ingested | None) -> bool:
        """Whether the process has been silent for too long after a result. `done` is what the last ingest stored."""
        if done is None or done.lines or not done.state.results:
            self.silent_since = None
            return False
        self.silent_since = self.silent_since or time.monotonic()
        return time.monotonic() - self.silent_since >= LINGER_SECONDS


def retry_when_database_is_down(step: Callable[[], T]) -> T | None:
    """Call `step`; None when the database does not answer. The caller's loop calls again, so the session goes on."""
    try:
        return step()
    except (OperationalError, InterfaceError) as error:
        if connection.in_atomic_block:
            raise
        cause = outage.named_in(error)
        logger.warning("%s Trying again.", cause.message if cause else f"The database did not answer ({error}).")
        connection.close()
        time.sleep(1)
        return None
