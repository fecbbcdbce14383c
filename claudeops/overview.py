"""What is going on, in a few numbers: read for the front page, every few seconds, by every open browser.

Each number is one look into an index, or counted no further than CAP, so that a million rows cost what a thousand
do. Reads only; knows no request.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.db.models import QuerySet, Sum
from django.utils import timezone

from memories import embedding
from memories.models import Memory, Verdict
from sessions_app import cooldowns
from sessions_app.models import Agent, Event, Level, Session, Status, Trigger, WorkerHeartbeat
from sessions_app.queue.holds import spent_on

CAP = 10_000
SHOWN = 8
FAILURES = (Status.FAILED, Status.TIMED_OUT, Status.LOST)
ALIVE = timedelta(seconds=60)
LISTED = ("agent", "tier", "status", "status_reason", "hold_reason", "queued_at", "started_at", "ended_at", "coalesced")


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
class Spent:
    """What sessions took: US dollars, and turns of the model."""

    cost: Decimal
    turns: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The front page's numbers and short lists. Times are UTC, money is US dollars."""

    running: list[Session]
    running_count: Count
    queued: list[Session]
    queued_count: Count
    failed: list[Session]
    memories: dict[str, Count]
    latest: list[Memory]
    events: dict[str, Count]
    cost_today: Decimal
    week: Spent
    refused: int
    daily_budget: float
    workers: list[WorkerHeartbeat]
    workers_gone: int
    next_runs: list[Agent]
    agents: int
    semantic_off: str

    @property
    def cost_percent(self) -> int:
        """Today's cost in whole percent of the budget, at most 100."""
        return min(100, round(100 * float(self.cost_today) / self.daily_budget)) if self.daily_budget else 0

    @property
    def cost_level(self) -> str:
        return "low" if self.cost_percent >= 100 else "mid" if self.cost_percent >= 80 else "high"


def _count(rows: QuerySet) -> Count:
    return Count(rows.order_by()[: CAP + 1].count())


def _sessions(status: str) -> QuerySet[Session]:
    rows = Session.objects.filter(status=status).select_related("agent")
    return rows.only(*LISTED, "agent__slug").order_by("-queued_at")


def _failed() -> list[Session]:
    """The last sessions that went wrong. One look a status: an index serves each, none serves all together."""
    found = [session for status in FAILURES for session in _sessions(status)[:SHOWN]]
    return sorted(found, key=lambda session: session.ended_at or session.queued_at, reverse=True)[:SHOWN]


def _spent_since(start: datetime) -> Spent:
    """Of the sessions that ended after `start`, but for imported logs: this house did not spend what those cost."""
    ended = Session.objects.filter(ended_at__gte=start).exclude(trigger=Trigger.IMPORT)
    found = ended.aggregate(cost=Sum("cost_usd"), turns=Sum("num_turns"))
    return Spent(found["cost"] or Decimal(0), found["turns"] or 0)


def read(*, at: datetime | None = None) -> Overview:
    """Everything the front page shows, as of `at` (aware; now by default)."""
    now = at or timezone.now()
    running = list(_sessions(Status.RUNNING)[:SHOWN])
    queued = list(
        Session.objects.queued()
        .select_related("agent")
        .only(*LISTED, "agent__slug")
        .order_by("queued_at", "id")[:SHOWN]
    )
    beats = list(WorkerHeartbeat.objects.all())
    alive = [beat for beat in beats if beat.beat_at >= now - ALIVE]
    recent = Event.objects.filter(created_at__gte=now - timedelta(days=1))
    allowed = Memory.objects.allowed()
    return Overview(
        running=running,
        running_count=_count(Session.objects.running()),
        queued=queued,
        queued_count=_count(Session.objects.queued()),
        failed=_failed(),
        memories={
            "active": _count(allowed.active()),
            "inactive": _count(allowed.filter(active=False)),
            "held": _count(Memory.objects.filter(verdict=Verdict.HOLD)),
        },
        latest=list(allowed.order_by("-updated_at", "-id")[:SHOWN]),
        events={level.value: _count(recent.filter(level=level)) for level in reversed(Level)},
        cost_today=spent_on(now),
        refused=sum(not decision.allowed for decision in cooldowns.in_force(at=now)),
        week=_spent_since(now - timedelta(days=7)),
        daily_budget=settings.CLAUDEOPS_DAILY_BUDGET_USD,
        workers=alive,
        workers_gone=len(beats) - len(alive),
        next_runs=list(Agent.objects.scheduled().filter(next_run_at__isnull=False).order_by("next_run_at")[:SHOWN]),
        agents=Agent.objects.count(),
        semantic_off=embedding.off_reason() or "",
    )
