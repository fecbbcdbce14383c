"""What is going on, in a few numbers and short lists: read for the front page when something has changed.

Each number is one look into an index, or counted no further than CAP, so that a million rows cost what a thousand
do. Each is counted as the list it leads to counts it. Reads only; knows no request.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Substr
from django.utils import timezone

from claudeops.scheduling import LATE
from memories import embedding
from memories.filters import ACTIVE, HELD, INACTIVE, MemoryFilterSet
from memories.models import Memory
from sessions_app import cooldowns
from sessions_app.filters import AGES, GROUPS, WEEK, WENT_WRONG
from sessions_app.models import Agent, Event, Level, LogEntry, ScheduleKind, Session, Trigger
from sessions_app.queue.holds import Rules, day_of
from sessions_app.schedule import cron_error

CAP = 10_000
SHOWN = 8
LONGEST_LINE = 240
"""Characters of the last line of a running session's log."""
LISTED = (
    *("agent", "tier", "trigger", "status", "status_reason", "hold_reason", "queued_at", "started_at", "ended_at"),
    *("coalesced", "stop_requested_at", "stop_requested_by"),
)


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows, counted up to CAP."""

    value: int

    @property
    def shown(self) -> str:
        return f"{CAP:,}+" if self.value > CAP else f"{self.value:,}"

    def __bool__(self) -> bool:
        return self.value > 0


@dataclass(frozen=True, slots=True)
class Upcoming:
    """An agent that runs by itself, and what holds its next run back, in words; empty when nothing does."""

    agent: Agent
    reason: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The front page's numbers and short lists. Times are UTC, money is US dollars.

    `memories` by status, `events` of the last 24 hours by level. A session of `running` has its last line as `line`.
    """

    running: list[Session]
    running_count: Count
    queued: list[Session]
    queued_count: Count
    failed: list[Session]
    memories: dict[str, Count]
    events: dict[str, Count]
    cooldowns: int
    cost_today: Decimal
    week_cost: Decimal
    week_turns: int
    daily_budget: float
    upcoming: list[Upcoming]
    agents: bool
    semantic_off: str

    @property
    def cost_percent(self) -> int:
        """Today's cost in whole percent of the budget, at most 100."""
        return min(100, round(100 * float(self.cost_today) / self.daily_budget)) if self.daily_budget else 0

    @property
    def cost_level(self) -> str:
        return "low" if self.cost_percent >= 100 else "mid" if self.cost_percent >= 80 else "high"


def read(*, at: datetime | None = None) -> Overview:
    """Everything the front page shows but its feed and the workers, as of `at` (aware; now by default)."""
    now = at or timezone.now()
    day = Event.objects.filter(created_at__gte=now - AGES["day"])
    week_cost, week_turns = Session.objects.paid_since(now - AGES[WEEK]).cost_and_turns()
    upcoming = _upcoming(now)
    return Overview(
        running=_running(),
        running_count=_count(Session.objects.running()),
        queued=list(_sessions(Session.objects.queued()).order_by("queued_at", "id")[:SHOWN]),
        queued_count=_count(Session.objects.queued()),
        failed=_failed(),
        memories={status: _count(_memories(status)) for status in (ACTIVE, HELD, INACTIVE)},
        events={level.value: _count(day.filter(level=level)) for level in reversed(Level)},
        cooldowns=len(cooldowns.refused(at=now)),
        cost_today=Session.objects.paid_on(day_of(now)).cost_and_turns()[0],
        week_cost=week_cost,
        week_turns=week_turns,
        daily_budget=settings.CLAUDEOPS_DAILY_BUDGET_USD,
        upcoming=upcoming,
        agents=bool(upcoming) or Agent.objects.exists(),
        semantic_off=embedding.off_reason() or "",
    )


def _count(rows: QuerySet) -> Count:
    return Count(rows.order_by()[: CAP + 1].count())


def _memories(status: str) -> QuerySet[Memory]:
    return MemoryFilterSet({}).by_status(Memory.objects.all(), "status", status)


def _sessions(rows: QuerySet[Session]) -> QuerySet[Session]:
    return rows.select_related("agent").only(*LISTED, "agent__slug")


def _running() -> list[Session]:
    """The sessions that run, the newest first, each with the last line of its log."""
    last = LogEntry.objects.filter(session=OuterRef("pk")).order_by("-seq")
    rows: QuerySet[Any] = Session.objects.running().annotate(
        line=Subquery(last.values(head=Substr("text", 1, LONGEST_LINE))[:1])
    )
    return list(_sessions(rows).order_by("-queued_at", "-id")[:SHOWN])


def _failed() -> list[Session]:
    """The last sessions that went wrong. One look a status: an index serves each, none serves all together."""
    found: list[Session] = []
    for status in GROUPS[WENT_WRONG]:
        found += _sessions(Session.objects.filter(status=status)).order_by("-queued_at", "-id")[:SHOWN]
    return sorted(found, key=lambda session: session.ended_at or session.queued_at, reverse=True)[:SHOWN]


def _upcoming(at: datetime) -> list[Upcoming]:
    """The agents that run next, in their order, then those that never will."""
    scheduled = Agent.objects.scheduled()
    agents = list(scheduled.filter(next_run_at__isnull=False).order_by("next_run_at", "id")[:SHOWN])
    ids = [agent.pk for agent in agents]
    waiting = Session.objects.queued().filter(agent__in=ids, trigger=Trigger.SCHEDULED).order_by("-queued_at", "-id")
    waits = dict(waiting.values_list("agent_id", "id")[: 10 * SHOWN])
    rules = Rules(at, agents=ids)
    found = [Upcoming(agent, _held(agent, waits.get(agent.pk), rules)) for agent in agents]
    stuck = scheduled.filter(next_run_at=None, schedule_kind=ScheduleKind.CRON).order_by("id")[:SHOWN]
    return found + [
        Upcoming(agent, f"It never runs: {problem}") for agent in stuck if (problem := cron_error(agent.cron))
    ]


def _held(agent: Agent, waits: int | None, rules: Rules) -> str:
    """What holds the next run of an agent's schedule back."""
    if agent.next_run_at is not None and agent.next_run_at < rules.at - LATE:
        return "No worker looks at the schedules. Start `manage.py runworker` (or `up`)."
    if waits is not None:
        return f"Session {waits} of this schedule still waits; a further run joins it."
    return rules.reason(Session(agent=agent, trigger=Trigger.SCHEDULED))
