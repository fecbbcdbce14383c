"""Read the overview's figures and lists; all are capped, so that the cost does not depend on the number of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Substr

from claudeops.lib.capped import Count
from memories import embedding, inbox
from memories.models import trust
from memories.queries import numbers as of_memories
from memories.queries.filters import ACTIVE, INACTIVE, WAITING
from sessions_app.cooldowns import limits
from sessions_app.models import Level, LogEntry, Session
from sessions_app.queries import numbers as of_sessions
from sessions_app.queries.filters import AGES, GROUPS, WEEK, WENT_WRONG
from sessions_app.queue.dispatch import day_of

SHOWN = 8
LONGEST_LINE = 240
"""Most characters shown of the last log line of a running session."""
FAILED_READ = 50
"""Latest sessions of each status that went wrong, among which equal reasons are put together."""
LISTED = (
    *("agent", "tier", "trigger", "status", "status_reason", "hold_reason", "queued_at", "started_at", "ended_at"),
    *("coalesced", "stop_requested_at", "stop_requested_by"),
)
ROWS = ("running", "queued", "failed")


@dataclass(frozen=True, slots=True)
class Figures:
    """Times are UTC, money is US dollars. `events` are of the last 24 hours by level, `critical_open` of any age,
    `lost_workers` were lost in them; `memories` by status.

    `trust` is CLAUDEOPS_TRUST.

    Each session of `running` has the last line of its log as `line`; each of `failed` stands for `times` sessions with
    its reason (`shown` is for people: "50+" where no more were read), of the agents `slugs`. `failed_day` counts what
    went wrong among the sessions queued in the last 24 hours.
    """

    running: list[Session]
    running_count: Count
    queued: list[Session]
    queued_count: Count
    failed: list[Session]
    failed_day: Count
    disagreements: int
    proposals: int
    memories: dict[str, Count]
    trust: str
    events: dict[str, Count]
    critical_open: Count
    lost_workers: Count
    cooldowns: int
    cost_today: Decimal
    week_cost: Decimal
    week_turns: int
    daily_budget: float
    semantic_off: str

    @property
    def disagreements_shown(self) -> str:
        """As the inbox shows it."""
        return inbox.shown(self.disagreements) or "0"

    @property
    def proposals_shown(self) -> str:
        return inbox.shown(self.proposals)


def read(at: datetime) -> Figures:
    """Read the figures as of `at` (aware)."""
    cost_today, _ = Session.objects.paid_on(day_of(at)).cost_and_turns()
    week_cost, week_turns = Session.objects.paid_since(at - AGES[WEEK]).cost_and_turns()
    waiting = inbox.counts()
    events = of_sessions.events_last_day(at)
    return Figures(
        running=_listed(Session.objects.running().order_by("-queued_at", "-id")),
        running_count=of_sessions.running(),
        queued=_listed(Session.objects.queued().order_by("queued_at", "id")),
        queued_count=of_sessions.queued(),
        failed=_failed(),
        failed_day=of_sessions.failed_last_day(at),
        disagreements=inbox.count_of_view("disagreements", waiting),
        proposals=inbox.count_of_view("proposals", waiting),
        memories={name: of_memories.memories(name) for name in (ACTIVE, INACTIVE)} | {WAITING: of_memories.waiting()},
        trust=trust.mode(),
        events={level.value: events.get(level, Count(0)) for level in reversed(Level)},
        critical_open=of_sessions.critical_open(),
        lost_workers=of_sessions.lost_workers(at),
        cooldowns=len(limits.refused(at=at)),
        cost_today=cost_today,
        week_cost=week_cost,
        week_turns=week_turns,
        daily_budget=settings.CLAUDEOPS_DAILY_BUDGET_USD,
        semantic_off=embedding.off_reason() or "",
    )


def _listed(rows: QuerySet[Session]) -> list[Session]:
    last = LogEntry.objects.filter(session=OuterRef("pk")).order_by("-seq")
    line = Subquery(last.values(head=Substr("text", 1, LONGEST_LINE))[:1])
    return list(rows.select_related("agent").only(*LISTED, "agent__slug").annotate(line=line)[:SHOWN])


def _failed() -> list[Session]:
    """Return the last sessions that went wrong, the latest of each reason, with one query a status: an index serves
    each, none serves all."""
    sessions: list[Session] = []
    for status in GROUPS[WENT_WRONG]:
        rows = Session.objects.filter(status=status).order_by("-queued_at", "-id").select_related("agent")
        sessions += rows.only(*LISTED, "agent__slug")[:FAILED_READ]
    sessions.sort(key=lambda session: (session.ended_at or session.queued_at, session.pk), reverse=True)
    equal: dict[str, list[Session]] = {}
    for session in sessions:
        equal.setdefault(session.status_reason or str(session.pk), []).append(session)
    latest = []
    for group in list(equal.values())[:SHOWN]:
        first: Any = group[0]
        first.times = len(group)
        is_cut = max(Counter(session.status for session in group).values()) == FAILED_READ
        first.shown = f"{first.times}+" if is_cut else str(first.times)
        first.slugs = sorted({session.agent.slug if session.agent else "no agent" for session in group})
        latest.append(first)
    return latest
