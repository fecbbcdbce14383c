"""Read the overview's figures and lists; all are capped, so that the cost does not depend on the number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Substr

from claudeops.lib import hour_counts, periods
from claudeops.workers.schedules import LATE
from memories import embedding
from memories.models import Memory, trust
from memories.queries.disagreements import count_open
from memories.queries.filters import ACTIVE, INACTIVE, WAITING, with_status
from sessions_app.cooldowns import limits
from sessions_app.models import Agent, EventCount, Level, LogEntry, ScheduleKind, Session, SessionCount, Trigger
from sessions_app.queries.filters import AGES, GROUPS, WEEK, WENT_WRONG
from sessions_app.queue.admission import Rules, day_of
from sessions_app.schedule import cron_error

CAP = 10_000
SHOWN = 8
LONGEST_LINE = 240
"""Most characters shown of the last log line of a running session."""
FAILED_READ = 50
"""Latest sessions of each status that went wrong, among which equal reasons are put together."""
QUEUE_READ = 1000
"""Most queued sessions that are searched for the waiting one of an agent."""
LISTED = (
    *("agent", "tier", "trigger", "status", "status_reason", "hold_reason", "queued_at", "started_at", "ended_at"),
    *("coalesced", "stop_requested_at", "stop_requested_by"),
)


@dataclass(frozen=True, slots=True)
class Count:
    value: int

    @property
    def shown(self) -> str:
        return f"{CAP:,}+" if self.value > CAP else f"{self.value:,}"

    def __bool__(self) -> bool:
        return self.value > 0


@dataclass(frozen=True, slots=True)
class Upcoming:
    """An agent with a schedule, and why its next run is held (empty: it is not)."""

    agent: Agent
    reason: str


ROWS = ("running", "queued", "failed", "upcoming")


@dataclass(frozen=True, slots=True)
class Figures:
    """Times are UTC, money is US dollars. `events` are of the last 24 hours by level, `memories` by status.

    `trust` is CLAUDEOPS_TRUST.

    Each session of `running` has the last line of its log as `line`; each of `failed` stands for `times` sessions with
    its reason (`shown` is for people: "50+" where no more were read), of the agents `slugs`. `failed_day` counts what
    went wrong among the sessions that ended in the last 24 hours: in the hour that runs and the 23 before it.
    """

    running: list[Session]
    running_count: Count
    queued: list[Session]
    queued_count: Count
    failed: list[Session]
    failed_day: Count
    disagreements: int
    memories: dict[str, Count]
    trust: str
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


def read(at: datetime) -> Figures:
    """Read the figures as of `at` (aware)."""
    running, queued = Session.objects.running(), Session.objects.queued()
    day = periods.edges_of(periods.RANGES["24h"], at, UTC)[0]
    ended, reported = hour_counts.since(SessionCount, day), hour_counts.since(EventCount, day)
    cost_today, _ = Session.objects.paid_on(day_of(at)).cost_and_turns()
    week_cost, week_turns = Session.objects.paid_since(at - AGES[WEEK]).cost_and_turns()
    return Figures(
        running=_listed(running.order_by("-queued_at", "-id")),
        running_count=count(running),
        queued=_listed(queued.order_by("queued_at", "id")),
        queued_count=count(queued),
        failed=_failed(),
        failed_day=Count(sum(ended[status] for status in GROUPS[WENT_WRONG])),
        disagreements=count_open(),
        memories={name: count(with_status(Memory.objects.all(), name)) for name in (ACTIVE, INACTIVE)}
        | {WAITING: waiting()},
        trust=trust.mode(),
        events={level.value: Count(reported[level]) for level in reversed(Level)},
        cooldowns=len(limits.refused(at=at)),
        cost_today=cost_today,
        week_cost=week_cost,
        week_turns=week_turns,
        daily_budget=settings.CLAUDEOPS_DAILY_BUDGET_USD,
        upcoming=_upcoming(at, cost_today),
        agents=Agent.objects.exists(),
        semantic_off=embedding.off_reason() or "",
    )


def waiting() -> Count:
    """Count the memories that wait for a person: held and unconfirmed ones, each from its own index."""
    return Count(count(Memory.objects.awaiting_review()).value + count(Memory.objects.unconfirmed()).value)


def count(rows: QuerySet[Any]) -> Count:
    return Count(rows.order_by()[: CAP + 1].count())


def _listed(rows: QuerySet[Session]) -> list[Session]:
    last = LogEntry.objects.filter(session=OuterRef("pk")).order_by("-seq")
    line = Subquery(last.values(head=Substr("text", 1, LONGEST_LINE))[:1])
    return list(rows.select_related("agent").only(*LISTED, "agent__slug").annotate(line=line)[:SHOWN])


def _failed() -> list[Session]:
    """Return the last sessions that went wrong, the latest of each reason, with one query a status: an index serves
    each, none serves all."""
    found: list[Session] = []
    for status in GROUPS[WENT_WRONG]:
        rows = Session.objects.filter(status=status).order_by("-queued_at", "-id").select_related("agent")
        found += rows.only(*LISTED, "agent__slug")[:FAILED_READ]
    found.sort(key=lambda session: (session.ended_at or session.queued_at, session.pk), reverse=True)
    equal: dict[tuple[str, str], list[Session]] = {}
    for session in found:
        equal.setdefault((session.status, session.status_reason or str(session.pk)), []).append(session)
    latest = []
    for group in list(equal.values())[:SHOWN]:
        first: Any = group[0]
        first.times = len(group)
        first.shown = f"{first.times}+" if first.times == FAILED_READ else str(first.times)
        first.slugs = sorted({session.agent.slug if session.agent else "no agent" for session in group})
        latest.append(first)
    return latest


def _upcoming(at: datetime, spent: Decimal) -> list[Upcoming]:
    """Return the agents that run next, in order, then those whose cron expression never matches."""
    scheduled = Agent.objects.scheduled()
    agents = list(scheduled.filter(next_run_at__isnull=False).order_by("next_run_at", "id")[:SHOWN])
    ids = [agent.pk for agent in agents]
    waits, rules = _waiting(ids), Rules(at, agents=ids, spent=spent)
    found = [Upcoming(agent, _held(agent, waits.get(agent.pk), rules)) for agent in agents]
    stuck = scheduled.filter(next_run_at=None, schedule_kind=ScheduleKind.CRON).order_by("id")[:SHOWN]
    return found + [
        Upcoming(agent, f"It never runs: {problem}") for agent in stuck if (problem := cron_error(agent.cron))
    ]


def _waiting(agents: list[int]) -> dict[int, int]:
    """Map agents to their queued scheduled session. Filtered here: SQLite would read all sessions of an agent."""
    rows = Session.objects.queued().order_by("queued_at", "id").values_list("agent_id", "trigger", "id")[:QUEUE_READ]
    return {agent: pk for agent, trigger, pk in rows if agent in agents and trigger == Trigger.SCHEDULED}


def _held(agent: Agent, waits: int | None, rules: Rules) -> str:
    if agent.next_run_at is not None and agent.next_run_at < rules.at - LATE:
        return "No worker checks the schedules. Start `manage.py runworker` (or `up`)."
    if waits is not None:
        return f"Session {waits} of this schedule is still queued; a further run joins it."
    return rules.reason(Session(agent=agent, trigger=Trigger.SCHEDULED))
