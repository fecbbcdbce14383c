"""Asking for a session, and asking for its end.

Knows nothing of django-q2 (dispatch wakes the workers) and nothing of how a session runs.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from memories.models import Project
from sessions_app.errors import InvalidSession, SessionNotFound
from sessions_app.models import Agent, Runner, Session, Status, Trigger
from sessions_app.queue.dispatch import dispatch

REQUESTED = frozenset(Trigger.values) - {Trigger.IMPORT}


def request_session(
    *,
    agent: Agent | None,
    trigger: str,
    by: str,
    tier: int | None = None,
    prompt_task: str = "",
    project: Project | None = None,
    runner: str | None = None,
    model: str | None = None,
    stream: str = "",
    dry_run: bool | None = None,
    parent: Session | None = None,
    at: datetime | None = None,
    wake: bool = True,
) -> Session:
    """Insert a queued session and wake a worker for it, in one transaction; the row says if it has to wait.

    What is not given comes from the agent, then from the settings; an agent's own model belongs to its own
    tier, another tier takes that tier's model. A house in dry-run makes no other sessions. `wake=False` is
    for who claims the session at once, in the foreground. An escalation is asked for once a parent: the
    second time the first child is returned. Times are UTC. Raises InvalidSession.
    """
    at = at or timezone.now()
    tier = (agent.tier if agent else 1) if tier is None else tier
    runner = runner or (agent.runner if agent else Runner.CLAUDE)
    stream = stream or (agent.replay_stream if agent and runner == Runner.REPLAY else "")
    _validate(tier=tier, trigger=trigger, runner=runner, stream=stream, parent=parent)
    own_model = agent.model if agent and agent.tier == tier else ""
    row = Session(
        agent=agent,
        project=project or (agent.project if agent else None),
        tier=tier,
        model=model or own_model or getattr(settings, f"CLAUDEOPS_TIER{tier}_MODEL"),
        runner=runner,
        trigger=trigger,
        task=prompt_task,
        replay_stream=stream,
        parent=parent,
        requested_by=by[:150],
        dry_run=settings.CLAUDEOPS_DRY_RUN or bool(dry_run),
        queued_at=at,
        dispatched_at=None if wake else at,
    )
    with transaction.atomic():
        child = _existing_escalation(row) or _insert(row)
        dispatch(at=at)
        child.refresh_from_db()
    return child


def _validate(*, tier: int, trigger: str, runner: str, stream: str, parent: Session | None) -> None:
    if tier not in (1, 2, 3):
        raise InvalidSession(f"Tier {tier!r} does not exist.", "Tiers are 1 (observe), 2 (investigate), 3 (remediate).")
    highest = settings.CLAUDEOPS_MAX_TIER
    if tier > highest:
        raise InvalidSession(
            f"Tier {tier} is above the highest allowed tier, {highest}.",
            f"Ask for tier {highest} or lower, or raise CLAUDEOPS_MAX_TIER.",
        )
    if trigger not in REQUESTED:
        raise InvalidSession(f"{trigger!r} starts no session.", "Allowed are " + ", ".join(sorted(REQUESTED)) + ".")
    if runner not in Runner.values:
        raise InvalidSession(f"There is no runner {runner!r}.", "Allowed are " + ", ".join(Runner.values) + ".")
    if runner == Runner.REPLAY and not stream:
        raise InvalidSession(
            "A replay needs a recorded stream.", "Name a file with --stream, or give the agent one in its profile."
        )
    if runner != Runner.REPLAY and stream:
        raise InvalidSession(
            f"The runner {runner} does not play the stream {stream}.", "Ask for the runner replay, or leave it out."
        )
    if trigger == Trigger.ESCALATION and parent is None:
        raise InvalidSession("An escalation needs the session it comes from.", "Give its parent.")


def _existing_escalation(row: Session) -> Session | None:
    if row.trigger != Trigger.ESCALATION:
        return None
    return Session.objects.filter(parent=row.parent, trigger=Trigger.ESCALATION).first()


def _insert(row: Session) -> Session:
    try:
        with transaction.atomic():
            row.save()
        return row
    except IntegrityError:
        found = _existing_escalation(row)
        if found is None:
            raise
        return found


def request_again(session: Session, *, by: str, at: datetime | None = None) -> Session:
    """Ask for another session like this one, by hand. Raises InvalidSession."""
    return request_session(
        agent=session.agent,
        trigger=Trigger.MANUAL,
        by=by,
        tier=session.tier,
        prompt_task=session.task,
        project=session.project,
        runner=session.runner,
        model=session.model or None,
        stream=session.replay_stream,
        dry_run=session.dry_run,
        at=at,
    )


def request_stop(session_id: int, *, by: str, at: datetime | None = None) -> str:
    """End a session: a queued one at once, a running one by whoever follows it. Returns what was done, in words.

    `at` is UTC (now when None). Asking twice is no error; the first one who asked stays on the row. Raises
    SessionNotFound, and InvalidSession when it has ended.
    """
    at = at or timezone.now()
    by = by[:150]
    with transaction.atomic():
        rows = Session.objects.filter(pk=session_id)
        if rows.filter(status=Status.QUEUED).update(
            status=Status.STOPPED,
            status_reason=f"Stopped by {by} before it started.",
            hold_reason="",
            stop_requested_at=at,
            stop_requested_by=by,
            ended_at=at,
        ):
            dispatch(at=at)
            return f"Session {session_id} was waiting and is stopped."
        if rows.filter(status=Status.RUNNING, stop_requested_at=None).update(
            stop_requested_at=at, stop_requested_by=by
        ):
            return f"Session {session_id} is told to stop; it ends within seconds."
        session = rows.first()
    if session is None:
        raise SessionNotFound(f"There is no session {session_id}.", "See `manage.py session list`.")
    if session.status == Status.RUNNING:
        return f"Session {session_id} was told to stop already, by {session.stop_requested_by}."
    raise InvalidSession(f"Session {session_id} has ended already ({session.get_status_display()}).")
