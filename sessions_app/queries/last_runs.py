"""Read the last runs of several agents or projects at once, for strips and for what is usual of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Model, OuterRef, Q, Subquery

from memories.models import Project
from sessions_app.models import Agent, Session, Status

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
    found: dict[int, list[Session]] = defaultdict(list)
    # Sorted here: for an order, SQLite would go through the sessions of all of them.
    rows_since = Session.objects.filter(begun & wanted).order_by().only(*COLUMNS)
    for session in sorted(rows_since, key=lambda session: (session.queued_at, session.pk)):
        found[getattr(session, f"{field}_id") or 0].append(session)
    return {owner: sessions[-most:] for owner, sessions in found.items()}
