"""Decide what an MCP server may see and do: for a session, an agent, a project, or global memories only."""

from __future__ import annotations

from uuid import UUID

from memories.access import Access
from memories.errors import ProjectNotFound
from memories.models import Project, Scope
from sessions_app.errors import InvalidSession, SessionNotFound
from sessions_app.models import Agent, Session

READS = frozenset({Scope.READ.value})
WRITES = READS | {Scope.WRITE.value}


def access_for(*, session: str = "", agent: str = "", project: str = "", read_only: bool = False) -> Access:
    """Return the access of a server with these options; without any, global memories of no agent.

    `session` is a number or UUID and determines agent and project. Raises SessionNotFound, AgentNotFound,
    ProjectNotFound, and InvalidSession when an agent or project is given with a session.
    """
    scopes = READS if read_only else WRITES
    if session:
        if agent or project:
            raise InvalidSession("A session determines agent and project.", "Leave out --agent and --project.")
        return _of_session(session, scopes)
    profile = Agent.objects.select_related("project").named(agent) if agent else None
    within = profile.project if profile else None
    if project:
        within = Project.objects.filter(slug=project).first()
        if within is None:
            raise ProjectNotFound(f"There is no project {project!r}.", "Give the slug of an existing project.")
    return Access(
        actor=f"agent:{agent}" if agent else "mcp",
        scopes=scopes,
        project=within.pk if within else None,
        agent=agent or None,
        tier=profile.tier if profile else 0,
    )


def _of_session(given: str, scopes: frozenset[str]) -> Access:
    key: dict[str, int | UUID] = {"pk": 0}
    if given.isdecimal() and len(given) < 19:
        key = {"pk": int(given)}
    else:
        try:
            key = {"uuid": UUID(given)}
        except ValueError:
            pass
    row = Session.objects.select_related("agent").filter(**key).first()
    if row is None:
        raise SessionNotFound(f"There is no session {given}.", "`manage.py session list` shows the latest.")
    slug = row.agent.slug if row.agent else None
    return Access(
        actor=f"agent:{slug}" if slug else f"session:{row.pk}",
        scopes=scopes,
        project=row.project_id,
        agent=slug,
        session_id=row.pk,
        tier=row.tier,
    )
