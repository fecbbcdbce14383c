"""Request a session, or its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from claudeops.lib.secrets import mask
from memories.models import Project
from sessions_app.errors import InvalidSession, SessionNotFound, TierDenied
from sessions_app.models import TASK_TEXT, Agent, FollowsAs, Runner, Session, Status, Trigger
from sessions_app.prompts.brief import checked, read
from sessions_app.queue.dispatch import dispatch

NOT_TYPED = (Trigger.API, Trigger.ALERT)
"""Triggers whose task no signed-in person wrote."""
REQUESTABLE = frozenset(Trigger.values) - {Trigger.IMPORT}


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
    highest: int | None = None,
    exposed_to: Sequence[str] = (),
    brief: Mapping[str, Any] | None = None,
    follows_as: str = "",
    alert_key: str | None = None,
) -> Session:
    """Insert a queued session and wake a worker for it, in one transaction; the row says whether it has to wait.

    Missing values come from the agent, then from the settings. An agent's model applies to its own tier; another tier
    uses that tier's model. CLAUDEOPS_DRY_RUN makes every session a dry run. `wake=False` is for a caller that claims
    the session itself. A second escalation of a parent returns the first. Credentials in `prompt_task` are masked: it
    is stored until a worker reads it, and sent to a model. `at` is UTC, now when None.

    Only an escalation exceeds the agent's tier. `highest` is the highest tier that the caller may request: an API
    token's; None for a person. `exposed_to` names the outside sources of the task; a task of an API call or an alert is
    one by itself. `brief` has the fields of `prompts.brief.Brief`. `alert_key` is unique among open sessions (raises
    IntegrityError). Raises InvalidSession (InvalidBrief for a field of the brief), and TierDenied above `highest`.
    """
    at = at or timezone.now()
    tier = (agent.tier if agent else 1) if tier is None else tier
    runner = runner or (agent.runner if agent else Runner.CLAUDE)
    stream = stream or (agent.replay_stream if agent and runner == Runner.REPLAY else "")
    _validate(tier=tier, trigger=trigger, runner=runner, stream=stream, parent=parent)
    _check_tier(tier, agent, trigger, highest)
    task_brief = checked(brief or {})
    own_model = agent.model if agent and agent.tier == tier else ""
    before = list(exposed_to)
    task_or_brief = prompt_task.strip() or task_brief.as_record()
    if task_or_brief and trigger in NOT_TYPED and TASK_TEXT not in before:
        before.append(TASK_TEXT)
    row = Session(
        agent=agent,
        project=project or (agent.project if agent else None),
        tier=tier,
        model=model or own_model or getattr(settings, f"CLAUDEOPS_TIER{tier}_MODEL"),
        runner=runner,
        trigger=trigger,
        task=mask(prompt_task),
        brief=task_brief.as_record(),
        ingest_state={"before": before} if before else {},
        replay_stream=stream,
        parent=parent,
        follows_as=follows_as,
        alert_key=alert_key,
        requested_by=by[:150],
        dry_run=settings.CLAUDEOPS_DRY_RUN or bool(dry_run),
        queued_at=at,
        dispatched_at=None if wake else at,
    )
    with transaction.atomic():
        child = _existing(row) or _insert(row)
        dispatch(at=at)
        child.refresh_from_db()
    return child


def _validate(*, tier: int, trigger: str, runner: str, stream: str, parent: Session | None) -> None:
    if tier not in (1, 2, 3):
        raise InvalidSession(f"There is no tier {tier!r}.", "Tiers are 1 (observe), 2 (investigate), 3 (remediate).")
    highest = settings.CLAUDEOPS_MAX_TIER
    if tier > highest:
        raise InvalidSession(
            f"Tier {tier} is above the highest allowed tier, {highest}.",
            f"Ask for tier {highest} or lower, or raise CLAUDEOPS_MAX_TIER.",
            field="tier",
        )
    if trigger not in REQUESTABLE:
        raise InvalidSession(
            f"{trigger!r} is not a trigger that starts a session.",
            "Allowed are " + ", ".join(sorted(REQUESTABLE)) + ".",
        )
    if runner not in Runner.values:
        raise InvalidSession(f"There is no runner {runner!r}.", "Allowed are " + ", ".join(Runner.values) + ".")
    if runner == Runner.REPLAY and not stream:
        raise InvalidSession(
            "A replay needs a recorded stream.", "Give a file with --stream, or set one in the agent's profile."
        )
    if runner != Runner.REPLAY and stream:
        raise InvalidSession(
            f"The runner {runner} does not play recorded streams, such as {stream}.",
            "Choose the runner replay, or leave the runner out.",
        )
    if trigger == Trigger.ESCALATION and parent is None:
        raise InvalidSession("An escalation needs a parent session.", "Give the session that asked for it.")


def _check_tier(tier: int, agent: Agent | None, trigger: str, highest: int | None) -> None:
    if highest is not None and tier > highest:
        raise TierDenied(
            f"Tier {tier} is above the highest tier of this token, {highest}.",
            f"Ask for tier {highest} or lower, or make a token with it: manage.py token add NAME --max-tier {tier}",
        )
    if agent is not None and tier > agent.tier and trigger != Trigger.ESCALATION:
        raise InvalidSession(
            f"Tier {tier} is above the tier of the agent {agent.slug}, {agent.tier}.",
            f"Ask for tier {agent.tier} or lower, or choose another agent.",
            field="tier",
        )


def _existing(row: Session) -> Session | None:
    """Return the escalation that the parent has already, or its open session of the same kind."""
    if row.trigger == Trigger.ESCALATION:
        return Session.objects.filter(parent=row.parent, trigger=Trigger.ESCALATION).first()
    if row.follows_as:
        return Session.objects.filter(
            parent=row.parent, follows_as=row.follows_as, status__in=(Status.QUEUED, Status.RUNNING)
        ).first()
    return None


def _insert(row: Session) -> Session:
    try:
        with transaction.atomic():
            row.save()
        return row
    except IntegrityError:
        existing = _existing(row)
        if existing is None:
            raise
        return existing


def request_again(session: Session, *, by: str, at: datetime | None = None) -> Session:
    """Request another session like this one, by hand. Raises InvalidSession."""
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
        exposed_to=session.exposed_before,
        brief=without_note(session.brief),
    )


def without_note(brief: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored brief for another session: the note was for the one that it was written to."""
    return {**read(brief).as_record(), "note": ""}


def request_retry(
    session: Session,
    *,
    by: str,
    note: str = "",
    trigger: str = Trigger.MANUAL,
    at: datetime | None = None,
    highest: int | None = None,
) -> Session:
    """Request a session that tries again what `session` was asked to do, and is told how that one ended.

    `note` are the operator's words for it. While a retry is open, a second request returns it. Raises InvalidSession
    when the session has not ended, was imported, or is retried already with other words.
    """
    return _follow(session, FollowsAs.RETRY, by=by, note=note, trigger=trigger, at=at, highest=highest)


def request_continue(
    session: Session,
    *,
    by: str,
    note: str = "",
    trigger: str = Trigger.MANUAL,
    at: datetime | None = None,
    highest: int | None = None,
) -> Session:
    """Request a session that resumes the CLI's conversation of `session`. Otherwise like `request_retry`.

    Raises InvalidSession also when there is no conversation: the session never started, or played a recorded stream.
    """
    if refused := may_not_continue(session):
        raise InvalidSession(f"Session {session.pk} cannot be continued: {refused}.", "Retry it instead.")
    return _follow(session, FollowsAs.CONTINUE, by=by, note=note, trigger=trigger, at=at, highest=highest)


def may_not_follow(session: Session) -> str:
    """Say why a session can be neither retried nor continued; empty when it can."""
    if session.is_open:
        return "it has not ended yet"
    if session.trigger == Trigger.IMPORT:
        return "it is an imported log"
    return ""


def may_not_continue(session: Session) -> str:
    if refused := may_not_follow(session):
        return refused
    if session.runner == Runner.REPLAY:
        return "it played a recorded stream, so there is no conversation to resume"
    if not session.cli_session_id or session.started_at is None:
        return "it never started, so there is no conversation to resume"
    return ""


def _follow(
    session: Session,
    kind: FollowsAs,
    *,
    by: str,
    note: str,
    trigger: str,
    at: datetime | None,
    highest: int | None,
) -> Session:
    if refused := may_not_follow(session):
        raise InvalidSession(f"Session {session.pk} cannot be followed by a {kind}: {refused}.")
    child = request_session(
        agent=session.agent,
        trigger=trigger,
        by=by,
        tier=session.tier,
        prompt_task=session.task,
        project=session.project,
        runner=session.runner,
        model=session.model or None,
        stream=session.replay_stream,
        dry_run=session.dry_run,
        parent=session,
        at=at,
        highest=highest,
        # What it had read stands in its log, of which the prompt has a part.
        exposed_to=list(dict.fromkeys([*session.exposed_before, *session.exposed_to])),
        brief={**without_note(session.brief), "note": note},
        follows_as=kind,
    )
    if note.strip() and child.brief.get("note") != mask(note.strip()):
        raise InvalidSession(
            f"Session {child.pk} is a {kind} of session {session.pk} already, and has other words.",
            f"Wait until it has ended, or stop it: manage.py session stop {child.pk}",
        )
    return child


def request_stop(session_id: int, *, by: str, at: datetime | None = None) -> str:
    """End a queued session, or tell the follower of a running one to stop it. Returns a sentence for people.

    `at` is UTC, now when None. Idempotent: the row keeps the first request. Raises SessionNotFound, and InvalidSession
    when the session has ended.
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
            return f"Session {session_id} was queued and is now stopped."
        if rows.filter(status=Status.RUNNING, stop_requested_at=None).update(
            stop_requested_at=at, stop_requested_by=by
        ):
            return f"Session {session_id} is stopping; it ends within seconds."
        session = rows.first()
    if session is None:
        raise SessionNotFound(f"There is no session {session_id}.", "`manage.py session list` shows the latest.")
    if session.status == Status.RUNNING:
        return f"Session {session_id} is stopping already, requested by {session.stop_requested_by}."
    raise InvalidSession(f"Session {session_id} has already ended ({session.get_status_display()}).")
