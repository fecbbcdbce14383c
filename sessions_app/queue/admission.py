"""Who goes first, and why a queued session may not start yet, in plain words.

The same rules hold the queue back and guard the claim. Reads only; writes nothing, knows no wake-ups.
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

FIRST_CLASS, SECOND_CLASS = 0, 1


def in_order(queryset: QuerySet[Session]) -> QuerySet[Session]:
    """Queued sessions as they go: what somebody or something asked for, then what a schedule did; oldest first."""
    rank = Case(
        When(trigger=Trigger.SCHEDULED, then=Value(SECOND_CLASS)),
        default=Value(FIRST_CLASS),
        output_field=IntegerField(),
    )
    return queryset.filter(status=Status.QUEUED).alias(rank=rank).order_by("rank", "queued_at", "id")


def day_of(at: datetime) -> datetime:
    """When the UTC day of `at` began."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def spent_on(at: datetime) -> Decimal:
    """Dollars of the UTC day of `at`: sessions that ended in it and those that run now.

    Imported logs do not count: what they cost was not spent by this house.
    """
    return Session.objects.paid_on(day_of(at)).cost_and_turns()[0]


class Rules:
    """The rules at one moment (`at`, UTC). What is running and what was spent (US dollars of the day, unless it is
    told) is read once, when first asked for."""

    def __init__(self, at: datetime, *, agents: Iterable[int] | None = None, spent: Decimal | None = None) -> None:
        self.at = at
        self._agents = agents
        self._spent = spent

    @cached_property
    def busy(self) -> dict[int, int]:
        """The running session of each agent that has one; of `agents` only, when given."""
        running = Session.objects.running().exclude(agent=None)
        if self._agents is not None:
            running = running.filter(agent__in=self._agents)
        return {agent: session for agent, session in running.values_list("agent_id", "id") if agent is not None}

    @cached_property
    def budget_reason(self) -> str:
        budget = settings.CLAUDEOPS_DAILY_BUDGET_USD
        if not budget:
            return ""
        spent = spent_on(self.at) if self._spent is None else self._spent
        if spent < Decimal(str(budget)):
            return ""
        opens = day_of(self.at) + timedelta(days=1)
        return (
            f"The day's budget is spent: ${spent:.2f} of ${budget:.2f} since 00:00 UTC "
            f"(CLAUDEOPS_DAILY_BUDGET_USD). Scheduled sessions wait until {opens:%Y-%m-%d %H:%M} UTC."
        )

    def reason(self, session: Session) -> str:
        """Why `session` may not start at this moment; an empty string when it may. Reads `session.agent`."""
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
    """Why this queued session may not start at `at` (UTC; now when None), in words; empty when it may."""
    agents = () if session.agent_id is None else (session.agent_id,)
    return Rules(at or timezone.now(), agents=agents).reason(session)
