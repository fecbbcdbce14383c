"""Read the agents of the overview, one row each: its last runs and what they took, its next run and what holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from statistics import median

from django.conf import settings
from django.db.models import Count, F, Q

from claudeops.lib.charts.strip import Strip
from claudeops.workers.schedules import LATE
from sessions_app.models import Agent, ScheduleKind, Session, Status, Trigger
from sessions_app.queries.usual import last_runs
from sessions_app.queue.dispatch import Rules
from sessions_app.schedule import cron_error, cron_in_words, interval_in_words
from sessions_app.web.strips import strip_of

MOST = 12
"""Agents that are shown: enabled ones first, of these the one that runs next."""
QUEUE_READ = 1000
"""Most queued sessions that are searched for the waiting one of an agent."""
GOOD, FAIR = 90, 80
"""Percent of completed runs from which nothing is amiss, and below which something is wrong."""
SUCCEEDED = (Status.COMPLETED, Status.ESCALATED)
NEVER, ON_REQUEST, PAUSED, SOON = "never", "on request", "paused", "when a worker looks"


@dataclass(frozen=True, slots=True)
class Usual:
    """What the last runs of an agent were like: `runs` of them ended. None where none of them says it.

    `success` is the share of those completed or escalated, in whole percent; `duration_ms` and `cost` (US dollars) are
    medians.
    """

    runs: int
    success: int | None
    duration_ms: int | None
    cost: Decimal | None

    @property
    def level(self) -> str:
        """The class of `success`: empty, warn or bad."""
        if self.success is None or self.success >= GOOD:
            return ""
        return "warn" if self.success >= FAIR else "bad"


@dataclass(frozen=True, slots=True)
class Row:
    """An agent of the overview. `next` is when it runs next (UTC), or None with `instead` in its place.

    `reason` is why the next run is held, empty when it is not; `running` is the session that runs now.
    """

    agent: Agent
    schedule: str
    is_cron: bool
    strip: Strip
    usual: Usual
    next: datetime | None
    instead: str
    reason: str
    running: int | None


@dataclass(frozen=True, slots=True)
class Agents:
    """The rows, and how many agents there are, enabled ones among them."""

    rows: tuple[Row, ...]
    total: int
    enabled: int


def read(at: datetime, spent: Decimal) -> Agents:
    """Read the agents as of `at` (aware), with the dollars `spent` on its day. Six queries, however many there are."""
    order = ("-enabled", F("next_run_at").asc(nulls_last=True), "slug")
    agents = list(Agent.objects.defer("prompt_template", "description").order_by(*order)[:MOST])
    counted = Agent.objects.aggregate(total=Count("pk"), enabled=Count("pk", filter=Q(enabled=True)))
    ids = [agent.pk for agent in agents]
    runs, waits, rules = last_runs(ids), _waiting(ids), Rules(at, agents=ids, spent=spent)
    rows = [_row(agent, runs.get(agent.pk, []), waits.get(agent.pk), rules) for agent in agents]
    return Agents(tuple(rows), counted["total"], counted["enabled"])


def row_of(agent: Agent, runs: Sequence[Session], at: datetime) -> Row:
    """Return the row of one agent with its last `runs` (oldest first), as of `at` (aware)."""
    ids = [agent.pk]
    return _row(agent, runs, _waiting(ids).get(agent.pk), Rules(at, agents=ids))


def usual_of(runs: Sequence[Session]) -> Usual:
    """Sum up the `runs` that have ended."""
    ended = [run for run in runs if not run.is_open]
    durations = [run.duration_ms for run in ended if run.duration_ms]
    costs = [run.cost_usd for run in ended if run.cost_usd]
    succeeded = sum(run.status in SUCCEEDED for run in ended)
    return Usual(
        runs=len(ended),
        success=round(100 * succeeded / len(ended)) if ended else None,
        duration_ms=round(median(durations)) if durations else None,
        cost=median(costs) if costs else None,
    )


def _row(agent: Agent, runs: Sequence[Session], waits: int | None, rules: Rules) -> Row:
    words = _schedule(agent)
    following, instead, reason = _next(agent, waits, rules)
    return Row(
        agent=agent,
        schedule=words or agent.cron,
        is_cron=not words,
        strip=strip_of(runs),
        usual=usual_of(runs),
        next=following,
        instead=instead,
        reason=reason,
        running=rules.busy.get(agent.pk),
    )


def _schedule(agent: Agent) -> str:
    """Say the schedule of `agent`; empty for a cron expression that has no short words."""
    if agent.schedule_kind == ScheduleKind.INTERVAL:
        return interval_in_words(agent.interval_seconds or settings.CLAUDEOPS_INTERVAL)
    if agent.schedule_kind == ScheduleKind.CRON:
        words = cron_in_words(agent.cron)
        return f"{words} UTC" if ":" in words else words
    return ON_REQUEST


def _next(agent: Agent, waits: int | None, rules: Rules) -> tuple[datetime | None, str, str]:
    if not agent.enabled:
        return None, PAUSED, ""
    if agent.schedule_kind == ScheduleKind.NONE:
        return None, ON_REQUEST, ""
    if agent.next_run_at is None:
        problem = cron_error(agent.cron) if agent.schedule_kind == ScheduleKind.CRON else ""
        return (None, NEVER, f"It never runs: {problem}") if problem else (None, SOON, "")
    return agent.next_run_at, "", _held(agent, waits, rules)


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
