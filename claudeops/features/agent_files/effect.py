"""The effect of an agent's file: sessions with it against those without, and mistakes that came back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import sqrt
from statistics import median

from memories.models import AgentFile, AgentFileEntry, Change, Memory, MemoryChange
from sessions_app.models import Agent, Session, Status, Trigger
from sessions_app.queries.helped import ENDED

DAYS = 90
MOST = 2_000
"""Ended sessions of an agent that are compared, the latest ones."""
LEAST = 5
"""Sessions that each group needs for a comparison."""
CHANGES = 1_000
"""Restatements of an agent's mistakes that are read, the latest ones."""
Ran = tuple[str, int | None, Decimal | None]
"""The status, milliseconds and US dollars of a session."""
SURE = 1.96
"""Standard errors that 95 % of all samples stay within."""


@dataclass(frozen=True, slots=True)
class Group:
    """Ended sessions: how many completed, and the medians of seconds and US dollars (None without any)."""

    sessions: int
    completed: int
    seconds: float | None
    cost: Decimal | None

    @property
    def percent(self) -> int:
        return round(100 * self.completed / self.sessions) if self.sessions else 0


@dataclass(frozen=True, slots=True)
class Effect:
    """The sessions of an agent in a project of the last DAYS days, by whether they were told its file."""

    told: Group
    others: Group

    @property
    def groups(self) -> tuple[tuple[str, Group], ...]:
        return ("With it", self.told), ("Without", self.others)

    @property
    def is_enough(self) -> bool:
        return min(self.told.sessions, self.others.sessions) >= LEAST

    @property
    def points(self) -> int:
        """Percentage points by which more of the told ones completed; negative: fewer."""
        return self.told.percent - self.others.percent

    @property
    def chance(self) -> int:
        return round(chance(self.told.completed, self.told.sessions, self.others.completed, self.others.sessions))

    @property
    def is_chance(self) -> bool:
        return abs(self.points) <= self.chance


def chance(completed: int, sessions: int, others_completed: int, others: int) -> float:
    """Return by how many percentage points two shares differ by chance alone in 95 % of all samples. Pure.

    1.96 standard errors of the difference, by Agresti and Caffo: one success and one failure are added to each group,
    so that small groups and shares of 0 and 100 % are not taken for certain.
    """
    variance = 0.0
    for part, whole in ((completed, sessions), (others_completed, others)):
        share = (part + 1) / (whole + 2)
        variance += share * (1 - share) / (whole + 2)
    return 100 * SURE * sqrt(variance)


def effect_of(file: AgentFile, agents: Sequence[Agent], at: datetime) -> Effect:
    """Compare the sessions of `agents` in the file's project as of `at` (aware). One query.

    A session counts as told when its receipt has a text of this file. Imported logs are told nothing and left out.
    """
    rows = (
        Session.objects.filter(
            project=file.project_id, agent__in=agents, status__in=ENDED, queued_at__gte=at - timedelta(days=DAYS)
        )
        .exclude(trigger=Trigger.IMPORT)
        .order_by("-queued_at", "-pk")
    )
    columns = ("status", "duration_ms", "cost_usd", "receipt__agent_file__file", "receipt__agent_file__tokens")
    recipients: list[Ran] = []
    others: list[Ran] = []
    for status, duration, cost, of, tokens in rows.values_list(*columns)[:MOST]:
        (recipients if of == file.pk and tokens else others).append((status, duration, cost))
    return Effect(_group(recipients), _group(others))


def _group(rows: Sequence[Ran]) -> Group:
    durations = [duration for _, duration, _ in rows if duration]
    costs = [cost for _, _, cost in rows if cost is not None]
    return Group(
        len(rows),
        sum(status == Status.COMPLETED for status, _, _ in rows),
        median(durations) / 1000 if durations else None,
        median(costs) if costs else None,
    )


@dataclass(frozen=True, slots=True)
class CameBack:
    """A mistake that later sessions stated again after it was recorded: how many did, and the last one."""

    memory: Memory
    times: int
    session: int
    at: datetime


def came_back(rows: Iterable[AgentFileEntry]) -> list[CameBack]:
    """Return the mistakes among the entries that came back, the most frequent first. One query."""
    mistakes = {row.memory.pk: row.memory for row in rows if row.memory and row.memory.category == "mistake"}
    changes = MemoryChange.objects.filter(memory__in=mistakes, kind=Change.REINFORCED, session__isnull=False)
    sessions: dict[int, dict[int, datetime]] = {}
    for memory, session, at in changes.order_by("-pk").values_list("memory", "session", "at")[:CHANGES]:
        if memory is not None and session is not None and session != mistakes[memory].session_id:
            sessions.setdefault(memory, {}).setdefault(session, at)
    repeats = [CameBack(mistakes[pk], len(times), *next(iter(times.items()))) for pk, times in sessions.items()]
    return sorted(repeats, key=lambda one: (-one.times, one.memory.pk))
