"""Decide the order of queued sessions, and why one has to wait (its hold reason, for people).

Dispatch and claim use the same rules. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property

from django.conf import settings
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.utils import timezone

from sessions_app.models import Session, Status, Trigger


def in_order(queryset: QuerySet[Session]) -> QuerySet[Session]:
    """Queued sessions, oldest first; those that a schedule requested come after all others."""
    rank = Case(
        When(trigger=Trigger.SCHEDULED, then=Value(1)),
        default=Value(0),
        output_field=IntegerField(),
    )
    return queryset.filter(status=Status.QUEUED).alias(rank=rank).order_by("rank", "queued_at", "id")


def day_of(at: datetime) -> datetime:
    """The start of the UTC day of `at`."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def spent_on(at: datetime) -> Decimal:
    """Dollars spent on the UTC day of `at`, by sessions that ended in it or run now; imported logs do not count."""
    return Session.objects.paid_on(day_of(at)).cost_and_turns()[0]


class Rules:
    """The admission rules at one time (`at`, UTC).

    Running sessions (of `agents` only, when given) and the dollars of the day (unless `spent` is given) are read once,
    at first use.
    """

    def __init__(self, at: datetime, *, agents: Iterable[int] | None = None, spent: Decimal | None = None) -> None:
        self.at = at
        self._agents = agents
        self._spent = spent

    @cached_property
    def busy(self) -> dict[int, int]:
        """The running session of each agent that has one."""
        running = Session.objects.running().exclude(agent=None)
        if self._agents is not None:
            running = running.filter(agent__in=self._agents)
        return {agent: session for agent, session in running.values_list("agent_id", "id") if agent is not None}

    @cached_property
    def budget_reason(self) -> str:
        """Why scheduled sessions have to wait for the daily budget; empty when they need not."""
        budget = settings.CLAUDEOPS_DAILY_BUDGET_USD
        if not budget:
            return ""
        spent = spent_on(self.at) if self._spent is None else self._spent
        if spent < Decimal(str(budget)):
            return ""
        opens = day_of(self.at) + timedelta(days=1)
        return (
            f"The daily budget is spent: ${spent:.2f} of ${budget:.2f} since 00:00 UTC "
            f"(CLAUDEOPS_DAILY_BUDGET_USD). Scheduled sessions wait until {opens:%Y-%m-%d %H:%M} UTC."
        )

    def reason(self, session: Session) -> str:
        """Why `session` has to wait; empty when it may start. Reads `session.agent`."""
        agent = session.agent
        if agent is not None and agent.pk in self.busy:
            return (
                f"Agent {agent.slug} is busy with session {self.busy[agent.pk]}; an agent runs one session at a time."
            )
        if session.trigger != Trigger.SCHEDULED:
            return ""
        if agent is not None and not agent.enabled:
            return f"Agent {agent.slug} is disabled; its scheduled sessions wait until it is enabled."
        return self.budget_reason


def hold_reason_for(session: Session, at: datetime | None = None) -> str:
    """Why this queued session has to wait at `at` (UTC; now when None); empty when it may start."""
    agents = () if session.agent_id is None else (session.agent_id,)
    return Rules(at or timezone.now(), agents=agents).reason(session)
