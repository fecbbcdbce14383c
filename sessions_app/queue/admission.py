"""Decide the order of queued sessions, and why one has to wait (its hold reason), for dispatch and claim."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property

from django.conf import settings
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.utils import timezone

from claudeops.lib import outage
from sessions_app.models import Agent, Session, Status, Trigger

CENT = Decimal("0.01")
"""The least budget of a session (dollars)."""


def in_order(queryset: QuerySet[Session]) -> QuerySet[Session]:
    """Order queued sessions oldest first; those that a schedule requested come after all others."""
    rank = Case(
        When(trigger=Trigger.SCHEDULED, then=Value(1)),
        default=Value(0),
        output_field=IntegerField(),
    )
    return queryset.filter(status=Status.QUEUED).alias(rank=rank).order_by("rank", "queued_at", "id")


def day_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def spent_on(at: datetime) -> Decimal:
    """Sum the dollars of the UTC day of `at`: sessions that ended in it or run now, without imported logs."""
    return Session.objects.paid_on(day_of(at)).cost_and_turns()[0]


def budget_of(agent: Agent | None) -> Decimal:
    """Return the dollars that one session of `agent` may cost."""
    own = agent.max_budget_usd if agent else None
    return own or Decimal(str(settings.CLAUDEOPS_MAX_BUDGET_USD))


def reserved() -> Decimal:
    """Sum the dollars that running sessions may still cost; what one does not use is given back when it ends."""
    running = Session.objects.running().values_list("reserved_usd", "cost_usd")
    return sum((max(Decimal(0), limit - cost) for limit, cost in running), Decimal(0))


class Rules:
    """The admission rules at one time (`at`, UTC).

    Running sessions (of `agents` only, when given) and the dollars of the day (unless `spent` is given) are read once.
    """

    def __init__(self, at: datetime, *, agents: Iterable[int] | None = None, spent: Decimal | None = None) -> None:
        self.at = at
        self._agents = agents
        self._spent = spent

    @cached_property
    def busy(self) -> dict[int, int]:
        running = Session.objects.running().exclude(agent=None)
        if self._agents is not None:
            running = running.filter(agent__in=self._agents)
        return {agent: session for agent, session in running.values_list("agent_id", "id") if agent is not None}

    @cached_property
    def spent(self) -> Decimal:
        return spent_on(self.at) if self._spent is None else self._spent

    @cached_property
    def reserved(self) -> Decimal:
        return reserved()

    @cached_property
    def full_disk(self) -> str:
        return outage.full_disk()

    def budget_reason(self, own: Decimal) -> str:
        """Why a scheduled session that may cost `own` dollars has to wait for the daily budget; empty if it need not.

        With nothing reserved, the last session of a day starts with what is left (`may_cost`).
        """
        if not settings.CLAUDEOPS_DAILY_BUDGET_USD:
            return ""
        budget = Decimal(str(settings.CLAUDEOPS_DAILY_BUDGET_USD))
        if self.spent >= budget:
            opens = day_of(self.at) + timedelta(days=1)
            return (
                f"The daily budget is spent: ${self.spent:.2f} of ${budget:.2f} since 00:00 UTC "
                f"(CLAUDEOPS_DAILY_BUDGET_USD). Scheduled sessions wait until {opens:%Y-%m-%d %H:%M} UTC."
            )
        if self.reserved and self.spent + self.reserved + own > budget:
            return (
                f"The daily budget is reserved: of ${budget:.2f} (CLAUDEOPS_DAILY_BUDGET_USD) ${self.spent:.2f} is "
                f"spent since 00:00 UTC, and running sessions may cost ${self.reserved:.2f} more; this one may cost "
                f"${own:.2f}. It starts when one of them ends and leaves enough."
            )
        return ""

    def may_cost(self, session: Session) -> Decimal:
        """Return the dollars that `session` may cost: a scheduled one no more than the day has left."""
        own = budget_of(session.agent)
        if session.trigger != Trigger.SCHEDULED or not settings.CLAUDEOPS_DAILY_BUDGET_USD:
            return own
        left = Decimal(str(settings.CLAUDEOPS_DAILY_BUDGET_USD)) - self.spent - self.reserved
        return max(min(own, left), CENT)

    def reason(self, session: Session) -> str:
        """Say why `session` has to wait; empty when it may start. Reads `session.agent`."""
        if self.full_disk:
            return f"{self.full_disk} No session starts until there is room."
        agent = session.agent
        if agent is not None and agent.pk in self.busy:
            return (
                f"Agent {agent.slug} is busy with session {self.busy[agent.pk]}; an agent runs one session at a time."
            )
        if session.trigger != Trigger.SCHEDULED:
            return ""
        if agent is not None and not agent.enabled:
            return f"Agent {agent.slug} is disabled; its scheduled sessions wait until it is enabled."
        return self.budget_reason(budget_of(agent))


def rules_for(session: Session, at: datetime | None = None) -> Rules:
    """Return the rules at `at` (UTC; now when None) for this session alone."""
    return Rules(at or timezone.now(), agents=() if session.agent_id is None else (session.agent_id,))
