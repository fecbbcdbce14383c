"""What is going on, in a few numbers and short lists: read for the front page when something has changed.

Each number is one look into an index, or counted no further than CAP, so that a million rows cost what a thousand
do. Each is counted as the list it leads to counts it. In SQL as it
stands: putting a dozen of these together took longer than answering them. Reads only; knows no request.
"""
# ruff: noqa: S608 - names of our own tables and values of our own, put together once; times are parameters.

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Substr
from django.utils import timezone

from claudeops.workers.schedules import LATE
from memories import embedding
from memories.filters import ACTIVE, HELD, INACTIVE
from memories.models import Memory
from sessions_app.cooldowns import limits
from sessions_app.filters import AGES, GROUPS, WEEK, WENT_WRONG
from sessions_app.models import Agent, Event, Level, LogEntry, ScheduleKind, Session, Status, Trigger
from sessions_app.queue.admission import Rules, day_of
from sessions_app.schedule import cron_error

CAP = 10_000
SHOWN = 8
LONGEST_LINE = 240
"""Characters of the last line of a running session's log."""
LISTED = (
    *("agent", "tier", "trigger", "status", "status_reason", "hold_reason", "queued_at", "started_at", "ended_at"),
    *("coalesced", "stop_requested_at", "stop_requested_by"),
)


RUNNING, QUEUED, FAILED = "running", "queued", "failed"
"""The lists of sessions."""

SESSIONS, AGENTS = Session._meta.db_table, Agent._meta.db_table
MEMORIES = {
    ACTIVE: "active AND verdict = 'allow'",
    HELD: "verdict = 'hold' AND NOT (inactive_reason = 'operator')",
    INACTIVE: "NOT active AND verdict = 'allow'",
}
"""What the lists of memories are narrowed to, as their indexes have it."""
LEVELS = [level.value for level in reversed(Level)]


def _counting(table: str, condition: str) -> str:
    return f"(SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE {condition} LIMIT {CAP + 1}) counted)"


OURS = f"NOT (trigger = '{Trigger.IMPORT.value}')"
WEEKS = f"FROM {SESSIONS} WHERE ended_at >= %s AND {OURS}"
FIGURES = "SELECT " + ", ".join(
    [
        *(_counting(SESSIONS, f"status = '{status}'") for status in (Status.RUNNING.value, Status.QUEUED.value)),
        *(_counting(Memory._meta.db_table, condition) for condition in MEMORIES.values()),
        *(_counting(Event._meta.db_table, f"created_at >= %s AND level = '{level}'") for level in LEVELS),
        # Two looks into two indexes rather than an OR: a running session has not ended.
        f"(SELECT SUM(cost_usd) FROM (SELECT cost_usd FROM {SESSIONS} WHERE ended_at >= %s AND ended_at < %s "
        f"AND {OURS} UNION ALL SELECT cost_usd FROM {SESSIONS} WHERE status = '{Status.RUNNING.value}' "
        f"AND ended_at IS NULL AND {OURS}) today)",
        f"(SELECT SUM(cost_usd) {WEEKS})",
        f"(SELECT SUM(num_turns) {WEEKS})",
        f"(SELECT COUNT(*) FROM (SELECT 1 FROM {AGENTS} LIMIT 1) counted)",
    ]
)


def _newest(name: str, inner: str, order: str) -> str:
    return f"SELECT '{name}', id FROM (SELECT id FROM {inner} ORDER BY {order} LIMIT {SHOWN}) {name}"


# One look a status: an index serves each, none serves all together.
WRONG = " UNION ALL ".join(
    f"SELECT * FROM (SELECT id, COALESCE(ended_at, queued_at) AS closed FROM {SESSIONS} "
    f"WHERE status = '{Status(status).value}' ORDER BY queued_at DESC, id DESC LIMIT {SHOWN}) {status}"
    for status in map(str, GROUPS[WENT_WRONG])
)
LISTS = " UNION ALL ".join(
    [
        _newest(RUNNING, f"{SESSIONS} WHERE status = '{Status.RUNNING.value}'", "queued_at DESC, id DESC"),
        _newest(QUEUED, f"{SESSIONS} WHERE status = '{Status.QUEUED.value}'", "queued_at, id"),
        _newest(FAILED, f"({WRONG}) wrong", "closed DESC, id DESC"),
    ]
)

# Among what waits, in its order: SQLite would rather look through everything that the agents or schedules ever
# started, and is kept from their indexes by the + and the ||.
WAITING = (
    f"SELECT agent_id, id FROM {SESSIONS} WHERE status = '{Status.QUEUED.value}' AND +agent_id IN ({{agents}}) "
    f"AND trigger || '' = '{Trigger.SCHEDULED.value}' ORDER BY queued_at DESC, id DESC LIMIT {10 * SHOWN}"
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
    figures, lists = _figures(now), _lists()
    upcoming = _upcoming(now, figures.cost_today)
    return Overview(
        running=lists[RUNNING],
        running_count=figures.sessions[RUNNING],
        queued=lists[QUEUED],
        queued_count=figures.sessions[QUEUED],
        failed=lists[FAILED],
        memories=figures.memories,
        events=figures.events,
        cooldowns=len(limits.refused(at=now)),
        cost_today=figures.cost_today,
        week_cost=figures.week_cost,
        week_turns=figures.week_turns,
        daily_budget=settings.CLAUDEOPS_DAILY_BUDGET_USD,
        upcoming=upcoming,
        agents=figures.agents,
        semantic_off=embedding.off_reason() or "",
    )


@dataclass(frozen=True, slots=True)
class _Figures:
    """What one statement counts; money is US dollars."""

    sessions: dict[str, Count]
    memories: dict[str, Count]
    events: dict[str, Count]
    cost_today: Decimal
    week_cost: Decimal
    week_turns: int
    agents: bool


def _figures(at: datetime) -> _Figures:
    today = day_of(at)
    times = [at - AGES["day"]] * len(LEVELS) + [today, today + AGES["day"], at - AGES[WEEK], at - AGES[WEEK]]
    with connection.cursor() as cursor:
        cursor.execute(FIGURES, [connection.ops.adapt_datetimefield_value(time) for time in times])
        values = iter(cursor.fetchone())

    def counts(names: Iterable[str]) -> dict[str, Count]:
        return {name: Count(next(values)) for name in names}

    return _Figures(
        sessions=counts((RUNNING, QUEUED)),
        memories=counts(MEMORIES),
        events=counts(LEVELS),
        cost_today=_dollars(next(values)),
        week_cost=_dollars(next(values)),
        week_turns=next(values) or 0,
        agents=bool(next(values)),
    )


def _dollars(value: Any) -> Decimal:
    """A sum as the database gives it (SQLite: a float, or a whole number) with the places its column has."""
    return Decimal(str(value or 0)).quantize(Decimal("0.000001"))


def _lists() -> dict[str, list[Session]]:
    """The sessions that run, those that wait and the last ones that went wrong, each with the last line of its log."""
    with connection.cursor() as cursor:
        cursor.execute(LISTS)
        places = cursor.fetchall()
    last = LogEntry.objects.filter(session=OuterRef("pk")).order_by("-seq")
    rows: QuerySet[Any] = Session.objects.filter(pk__in=[pk for _, pk in places]).annotate(
        line=Subquery(last.values(head=Substr("text", 1, LONGEST_LINE))[:1])
    )
    shown = {row.pk: row for row in rows.order_by().select_related("agent").only(*LISTED, "agent__slug")}
    found: dict[str, list[Session]] = {RUNNING: [], QUEUED: [], FAILED: []}
    for name, pk in places:
        if pk in shown:  # it may have been deleted meanwhile
            found[name].append(shown[pk])
    found[RUNNING].sort(key=lambda session: (session.queued_at, session.pk), reverse=True)
    found[QUEUED].sort(key=lambda session: (session.queued_at, session.pk))
    found[FAILED].sort(key=lambda session: (session.ended_at or session.queued_at, session.pk), reverse=True)
    return found


def _upcoming(at: datetime, spent: Decimal) -> list[Upcoming]:
    """The agents that run next, in their order, then those that never will."""
    scheduled = Agent.objects.scheduled()
    agents = list(scheduled.filter(next_run_at__isnull=False).order_by("next_run_at", "id")[:SHOWN])
    ids = [agent.pk for agent in agents]
    waits = _waiting(ids)
    rules = Rules(at, agents=ids, spent=spent)
    found = [Upcoming(agent, _held(agent, waits.get(agent.pk), rules)) for agent in agents]
    stuck = scheduled.filter(next_run_at=None, schedule_kind=ScheduleKind.CRON).order_by("id")[:SHOWN]
    return found + [
        Upcoming(agent, f"It never runs: {problem}") for agent in stuck if (problem := cron_error(agent.cron))
    ]


def _waiting(agents: list[int]) -> dict[int, int]:
    """By agent the session of its schedule that waits."""
    if not agents:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(WAITING.format(agents=", ".join(["%s"] * len(agents))), agents)
        return dict(cursor.fetchall())


def _held(agent: Agent, waits: int | None, rules: Rules) -> str:
    """What holds the next run of an agent's schedule back."""
    if agent.next_run_at is not None and agent.next_run_at < rules.at - LATE:
        return "No worker looks at the schedules. Start `manage.py runworker` (or `up`)."
    if waits is not None:
        return f"Session {waits} of this schedule still waits; a further run joins it."
    return rules.reason(Session(agent=agent, trigger=Trigger.SCHEDULED))
