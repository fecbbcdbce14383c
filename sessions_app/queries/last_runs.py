"""Read the last runs of several agents at once, for strips and for what is usual of an agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from django.db.models import OuterRef, Q, Subquery

from sessions_app.models import Agent, Session, Status

MOST = 20
COLUMNS = (
    *("agent_id", "status", "status_reason", "summary", "cost_usd", "duration_ms"),
    *("queued_at", "started_at", "ended_at"),
)


def last_runs(agents: Collection[int], most: int = MOST) -> dict[int, list[Session]]:
    """Map the ids of `agents` to their last `most` sessions that have started or ended, the oldest first.

    Two queries: first since when each agent's last runs are, from the index of its sessions, then the runs since. (A
    window function would read all sessions of the agents.)
    """
    begun = ~Q(status=Status.QUEUED)
    own = Session.objects.filter(begun, agent=OuterRef("pk")).order_by("-queued_at", "-id")
    rows = Agent.objects.filter(pk__in=agents).annotate(since=Subquery(own.values("queued_at")[most - 1 : most]))
    wanted = Q(pk__in=())
    for agent, since in rows.order_by().values_list("pk", "since"):
        wanted |= Q(agent=agent) if since is None else Q(agent=agent, queued_at__gte=since)
    found: dict[int, list[Session]] = defaultdict(list)
    # Sorted here: for an order, SQLite would go through the sessions of all agents.
    rows_since = Session.objects.filter(begun & wanted).order_by().only(*COLUMNS)
    for session in sorted(rows_since, key=lambda session: (session.queued_at, session.pk)):
        found[session.agent_id or 0].append(session)
    return {agent: sessions[-most:] for agent, sessions in found.items()}
