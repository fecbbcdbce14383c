"""What a caller from outside may see and change: its scopes, its project, its agent.

The API and MCP both use it. It knows no request and no page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from memories.errors import AccessDenied, MemoryNotFound, ProjectNotFound
from memories.models import Memory, Project, Scope
from memories.models.memory import ANY_AGENT, ANY_PROJECT, MemoryQuerySet


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks and what they may do; `actor` is the name in the history.

    `project` and `agent` bound what is seen, as in a recall's `Filters`: an id gives a project and what is global,
    None what is global alone, ANY_PROJECT everything. `token_id` is set where a token asks, `session_id` and `tier`
    where an agent's own session does.
    """

    actor: str
    scopes: frozenset[str]
    project: int | Literal["any"] | None = ANY_PROJECT
    agent: str | None = ANY_AGENT
    token_id: int | None = None
    last_used_at: datetime | None = None
    session_id: int | None = None
    tier: int = 0

    @property
    def confined(self) -> bool:
        """Whether it sees less than every project."""
        return self.project != ANY_PROJECT

    @property
    def project_id(self) -> int | None:
        """The project that what it adds belongs to; None = global."""
        return self.project if isinstance(self.project, int) else None

    def may(self, scope: str) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def require(self, scope: str) -> None:
        """Raises AccessDenied without the scope."""
        if not self.may(scope):
            held = ", ".join(sorted(self.scopes)) or "none"
            raise AccessDenied(
                f"This needs the scope {scope}; {self.actor} has {held}.",
                f"Make a token with it: manage.py token add NAME --scope {scope}",
            )


def visible_memories(access: Access) -> MemoryQuerySet:
    """What may be seen: with a project its memories and the global ones, else all; of agents, its own."""
    return Memory.objects.all().isolated_to(access.project, access.agent)


def changeable_memories(access: Access) -> MemoryQuerySet:
    """What may be changed: with a project its memories only. What is global is everybody's."""
    rows = visible_memories(access)
    return rows.filter(project=access.project_id) if access.confined else rows


def memory_of(access: Access, given: str | int) -> Memory:
    """The memory of a number or UUID. Raises MemoryNotFound, also for another project's: it is not there."""
    rows = visible_memories(access).select_related("project")
    found = rows.filter(**key).first() if (key := _key(str(given))) else None
    if found is None:
        raise MemoryNotFound(f"There is no memory {given}.", "List what there is: GET /api/memories")
    return found


def changeable_memory(access: Access, given: str | int) -> Memory:
    """The same, to change it. Raises AccessDenied for a global one that only may be read."""
    found = memory_of(access, given)
    if access.confined and found.project_id != access.project_id:
        raise AccessDenied(
            f"Memory {found.pk} is global; a token with a project only reads it.", "Ask with a token without a project."
        )
    return found


def project_of(access: Access, slug: str | None) -> Project | None:
    """The project a caller named: its own when it has one, whichever there is when it has none.

    Raises AccessDenied for another than its own, whether it is there or not; ProjectNotFound.
    """
    if access.confined:
        own = Project.objects.filter(pk=access.project_id or 0).first()
        if slug and (own is None or slug != own.slug):
            raise AccessDenied(
                f"{access.actor} asks within its own project only.", "Leave the project out, or name its own."
            )
        return own
    if not slug:
        return None
    found = Project.objects.filter(slug=slug).first()
    if found is None:
        raise ProjectNotFound(f"There is no project {slug!r}.", "Name one that is there, by its slug.")
    return found


def _key(given: str) -> dict[str, int | UUID]:
    if given.isdecimal():
        return {"pk": int(given)} if len(given) < 19 else {}
    try:
        return {"uuid": UUID(given)}
    except ValueError:
        return {}
