"""Fire agents' schedules when they are due: one firing is one session, however many hosts check."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from sessions_app.errors import InvalidSession
from sessions_app.models import Agent, ScheduleKind, Session, Status, Trigger
from sessions_app.queue.dispatch import dispatch
from sessions_app.queue.requests import request_session
from sessions_app.schedule import cron_error, next_cron, next_interval

logger = logging.getLogger(__name__)

BY = "schedule"


def tick(*, at: datetime | None = None) -> int:
    """Fire every agent that is due at `at` (UTC; now when None); return how many fired.

    One firing replaces several missed ones. While an agent's scheduled session waits, its `coalesced` counts firings.
    """
    at = at or timezone.now()
    _repair_next_runs(at)
    due = Agent.objects.scheduled().filter(next_run_at__lte=at).order_by("next_run_at", "id")
    return sum(_fire(agent, at) for agent in due)


def _fire(agent: Agent, at: datetime) -> bool:
    following = _next(agent, previous=agent.next_run_at, at=at)
    with transaction.atomic():
        claimed = Agent.objects.filter(pk=agent.pk, enabled=True, next_run_at=agent.next_run_at).update(
            next_run_at=following, last_run_at=at
        )
        if not claimed:
            return False
        waiting = Session.objects.queued().filter(agent=agent, trigger=Trigger.SCHEDULED).order_by("queued_at", "id")
        first = waiting.values_list("pk", flat=True).first()
        joined = first is not None and waiting.filter(pk=first).update(coalesced=F("coalesced") + 1)
        if not joined:
            _request(agent, at)
    return True


def _request(agent: Agent, at: datetime) -> None:
    try:
        with transaction.atomic():
            request_session(agent=agent, trigger=Trigger.SCHEDULED, by=BY, at=at)
    except InvalidSession as refusal:
        # Nobody sees a refusal here, so it is kept as a failed session.
        logger.warning("The scheduled session of agent %s was refused: %s", agent.slug, refusal)
        Session.objects.create(
            agent=agent,
            project=agent.project,
            tier=agent.tier,
            model=agent.model,
            runner=agent.runner,
            trigger=Trigger.SCHEDULED,
            requested_by=BY,
            status=Status.FAILED,
            status_reason=f"Not started: {refusal} {refusal.fix}".strip(),
            queued_at=at,
            ended_at=at,
        )


def reschedule(agent: Agent, *, at: datetime | None = None) -> datetime | None:
    """Set the next run of `agent` from its schedule, and return it (UTC; None = never).

    Call it after saving a changed schedule. An interval counts from the last run, or else from `at`; a time in
    the past is due at once.
    """
    at = at or timezone.now()
    agent.next_run_at = _first(agent, at)
    Agent.objects.filter(pk=agent.pk).update(next_run_at=agent.next_run_at)
    return agent.next_run_at


def set_enabled(agent: Agent, enabled: bool, *, at: datetime | None = None) -> bool:
    """Pause or resume the schedule of `agent` at `at` (UTC; now when None); return whether that changed anything.

    While it is paused its scheduled sessions wait; a person may still run it. Of two callers one changes it.
    """
    at = at or timezone.now()
    with transaction.atomic():
        if not Agent.objects.filter(pk=agent.pk, enabled=not enabled).update(enabled=enabled, updated_at=at):
            return False
        agent.enabled = enabled
        reschedule(agent, at=at)
        dispatch(at=at)  # what was held back by the pause may start, or gets its reason
    return True


def _repair_next_runs(at: datetime) -> None:
    """Set `next_run_at` of agents that a script created, and unset it of those that are disabled."""
    scheduled = ~Q(schedule_kind=ScheduleKind.NONE) & Q(enabled=True)
    for agent in Agent.objects.filter(scheduled, next_run_at=None):
        if agent.schedule_kind != ScheduleKind.CRON or not cron_error(agent.cron):
            reschedule(agent, at=at)
        else:
            logger.warning("The schedule of agent %s never fires: %s", agent.slug, cron_error(agent.cron))
    Agent.objects.filter(~scheduled, next_run_at__isnull=False).update(next_run_at=None)


def _seconds(agent: Agent) -> int:
    return agent.interval_seconds or settings.CLAUDEOPS_INTERVAL


def _first(agent: Agent, at: datetime) -> datetime | None:
    if not agent.enabled or agent.schedule_kind == ScheduleKind.NONE:
        return None
    if agent.schedule_kind == ScheduleKind.CRON:
        return None if cron_error(agent.cron) else next_cron(agent.cron, at)
    seconds = timedelta(seconds=_seconds(agent))
    return max(agent.last_run_at + seconds, at) if agent.last_run_at else at + seconds


def _next(agent: Agent, *, previous: datetime | None, at: datetime) -> datetime | None:
    if agent.schedule_kind == ScheduleKind.CRON:
        return None if cron_error(agent.cron) else next_cron(agent.cron, at)
    return next_interval(previous, _seconds(agent), at)
