"""When a model may not be called: its role's budget of the day is used up, or it failed several times in a row.

Both are read from the rows of calls, so that all processes and hosts agree. Calls that run at the same moment are not
known to each other: a budget can be exceeded by as many calls as run at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Q, Sum

from memories.llm.roles import ROLES, Chosen
from memories.models import CallOutcome, ModelCall

FAILURES, PAUSE = 3, timedelta(minutes=5)
"""After so many failures in a row a backend's model is not called for so long."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Of one role since 00:00 UTC: US dollars and calls. `budget` in US dollars, 0: no limit."""

    usd: float
    calls: int
    failures: int
    budget: float
    most_calls: int

    @property
    def left(self) -> float | None:
        """US dollars; None without a limit."""
        return max(0.0, self.budget - self.usd) if self.budget else None

    @property
    def over(self) -> str:
        """Say which limit of the day is reached; "" when none is."""
        if self.budget and self.usd >= self.budget:
            return f"${self.usd:.2f} of ${self.budget:.2f} are spent today"
        if self.most_calls and self.calls >= self.most_calls:
            return f"{self.calls:,} of {self.most_calls:,} calls are made today"
        return ""


def midnight(at: datetime) -> datetime:
    """Return 00:00 UTC of the day of `at` (aware, UTC)."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def spent(at: datetime, roles: Iterable[str] = ROLES) -> dict[str, Spent]:
    """Return what each of `roles` has spent since 00:00 UTC, by one query."""
    names = list(roles)
    rows = (
        ModelCall.objects.filter(role__in=names, asked_at__gte=midnight(at))
        .order_by()
        .values("role")
        .annotate(
            usd=Sum("cost_usd"),
            calls=Count("pk"),
            failures=Count("pk", filter=~Q(outcome__in=(CallOutcome.ANSWERED, CallOutcome.ASKED))),
        )
    )
    found = {row["role"]: (row["usd"], row["calls"], row["failures"]) for row in rows}
    budgets, most = settings.CLAUDEOPS_MODEL_DAILY_USD, settings.CLAUDEOPS_MODEL_DAILY_CALLS
    spent_by = {}
    for name in names:
        usd, calls, failures = found.get(name, (None, 0, 0))
        budget = budgets.get(name, budgets[""])
        spent_by[name] = Spent(float(usd or 0), calls, failures, budget, most)
    return spent_by


@dataclass(frozen=True, slots=True)
class Resting:
    """A model that is not called until `until` (UTC), and how its last call failed."""

    until: datetime
    error: str


def resting(chosen: Chosen, at: datetime) -> Resting | None:
    """Return the rest of the role's model at `at`; None when it may be called.

    Failures of all roles that use the model of the backend count; a late answer counts for its own role alone, since
    roles differ in the time they give. An unreadable answer is no failure of the backend.
    """
    ended = (
        ModelCall.objects.filter(backend=chosen.backend_name, model=chosen.model, asked_at__gt=at - timedelta(hours=1))
        .exclude(outcome=CallOutcome.ASKED)
        .exclude(Q(outcome=CallOutcome.LATE) & ~Q(role=chosen.role.name))
    )
    last = list(ended.values_list("outcome", "asked_at", "duration_ms", "error")[:FAILURES])
    if len(last) < FAILURES or any(row[0] not in (CallOutcome.FAILED, CallOutcome.LATE) for row in last):
        return None
    _, asked, duration, error = last[0]
    until = asked + timedelta(milliseconds=duration or 0) + PAUSE
    return Resting(until, error) if at < until else None
