"""What is usual for an agent: the medians of its last completed sessions, and the last good run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from statistics import median

from django.db.models import Model, OuterRef, Q, QuerySet, Subquery

from memories.models import Project
from sessions_app.models import Agent, Session, Status

RUNS = 20
"""Completed sessions whose medians are usual."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One completed session: milliseconds, turns, US dollars; of the first two 0 means that nothing stated it."""

    pk: int
    ended_at: datetime | None
    duration_ms: int
    num_turns: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class Usual:
    """The medians of `runs` completed sessions; None where none of them has a value. `last` is the latest of them."""

    runs: int = 0
    duration_ms: int | None = None
    num_turns: int | None = None
    cost_usd: Decimal | None = None
    last: Ran | None = None


def medians(rows: Sequence[Ran]) -> Usual:
    """Compute what is usual of `rows`, the latest first. Pure."""
    durations = [row.duration_ms for row in rows if row.duration_ms]
    turns = [row.num_turns for row in rows if row.num_turns]
    return Usual(
        runs=len(rows),
        duration_ms=round(median(durations)) if durations else None,
        num_turns=int(median(turns) + 0.5) if turns else None,
        cost_usd=median(row.cost_usd for row in rows) if rows else None,
        last=rows[0] if rows else None,
    )


def completed_before(session: Session) -> QuerySet[Session]:
    """Return the completed sessions of the same agent that were queued before `session`, the latest first."""
    if session.agent_id is None:
        return Session.objects.none()
    earlier = Q(queued_at__lte=session.queued_at) & ~Q(queued_at=session.queued_at, pk__gte=session.pk)
    rows = Session.objects.filter(earlier, agent=session.agent_id, status=Status.COMPLETED)
    return rows.order_by("-queued_at", "-id")


def usual_for(session: Session) -> Usual:
    """Return what was usual for the agent of `session` before it; one query of its own index."""
    rows = completed_before(session).values_list("pk", "ended_at", "duration_ms", "num_turns", "cost_usd")
    return medians([Ran(*row) for row in rows[:RUNS]])


MOST = 20
COLUMNS = (
    *("agent_id", "project_id", "status", "status_reason", "summary", "cost_usd", "duration_ms"),
    *("queued_at", "started_at", "ended_at"),
)


def last_runs(agents: Collection[int], most: int = MOST) -> dict[int, list[Session]]:
    """Map the ids of `agents` to their last `most` sessions that have started or ended, the oldest first.

    Two queries: first since when each agent's last runs are, from the index of its sessions, then the runs since. (A
    window function would read all sessions of the agents.)
    """
    return _last(Agent, "agent", agents, most)


def last_runs_of_projects(projects: Collection[int], most: int = MOST) -> dict[int, list[Session]]:
    """Map the ids of `projects` to their last sessions, as `last_runs` does for agents."""
    return _last(Project, "project", projects, most)


def _last(model: type[Model], field: str, ids: Collection[int], most: int) -> dict[int, list[Session]]:
    """`field` is the session's link to the `model`."""
    begun = ~Q(status=Status.QUEUED)
    own = Session.objects.filter(begun, **{field: OuterRef("pk")}).order_by("-queued_at", "-id")
    owners = model._default_manager.filter(pk__in=ids)
    rows = owners.annotate(since=Subquery(own.values("queued_at")[most - 1 : most]))
    wanted = Q(pk__in=())
    for owner, since in rows.order_by().values_list("pk", "since"):
        wanted |= Q(**{field: owner}) if since is None else Q(**{field: owner, "queued_at__gte": since})
    by_owner: dict[int, list[Session]] = defaultdict(list)
    # Sorted here: for an order, SQLite would go through the sessions of all of them.
    rows_since = Session.objects.filter(begun & wanted).order_by().only(*COLUMNS)
    for session in sorted(rows_since, key=lambda session: (session.queued_at, session.pk)):
        by_owner[getattr(session, f"{field}_id") or 0].append(session)
    return {owner: sessions[-most:] for owner, sessions in by_owner.items()}
