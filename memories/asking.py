"""A recall as it is asked for from outside: names in, the asker's own scope added, never a wider one.

The API, MCP, the command line and the page ask here. Knows no request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from memories import recall as engine
from memories.access.permissions import Access, project_of
from memories.capture import fields
from memories.errors import AccessDenied
from memories.models import Project
from memories.recall.values import ANY_AGENT, Asker, Filters, InvalidRecall, Recall
from memories.taxonomy import TAXONOMIES

GLOBAL = "global"
OTHER_SCOPE = "other scope"
PROFILES = ("lean", "balanced", "deep", "auto")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, by names: `project` a slug or `global`, `service` one word or `general`, `as_of` aware UTC."""

    query: str
    project: str | None = None
    agent: str | None = None
    service: str | None = None
    category: str | None = None
    taxonomy: str | None = None
    tags: tuple[str, ...] = ()
    limit: int | None = None
    profile: str = "balanced"
    as_of: datetime | None = None
    include_hold: bool = False


def ask(access: Access, question: Question, surface: str) -> Recall:
    """The answer within what `access` may see, recorded under its name.

    How much another project would have had is not told to who may not see it. Raises InvalidRecall, InvalidMemory
    for a service that cannot be one, AccessDenied and ProjectNotFound for a project.
    """
    asker = Asker(surface, access.actor, access.session_id)
    found = engine.recall(
        question.query, filters_of(access, question), profile=question.profile, limit=question.limit, asked_by=asker
    )
    if access.confined and OTHER_SCOPE in found.trace.dropped:
        kept = {reason: count for reason, count in found.trace.dropped.items() if reason != OTHER_SCOPE}
        found = replace(found, trace=replace(found.trace, dropped=kept))
    return found


def by_person(name: str) -> Access:
    """The scope of a signed-in member of staff: everything there is, as on every page."""
    return Access(name, frozenset())


def as_data(found: Recall) -> dict[str, Any]:
    """The answer as plain values; each hit with its project's slug."""
    data = found.as_dict()
    slugs = dict(Project.objects.filter(pk__in={hit.project_id for hit in found.hits}).values_list("pk", "slug"))
    for hit in data["hits"]:
        hit["project"] = slugs.get(hit.pop("project_id"))
    return data


def filters_of(access: Access, question: Question) -> Filters:
    """The question's names as a recall's filters. Raises as `ask` does."""
    if question.category and not any(question.category in one.categories for one in TAXONOMIES.values()):
        known = sorted({category for one in TAXONOMIES.values() for category in one.categories})
        raise InvalidRecall(f"category is {question.category!r}; allowed are {', '.join(known)}.")
    return Filters(
        project=_project(access, question.project),
        agent=_agent(access, question.agent),
        services=(fields.checked_service(question.service),) if question.service else None,
        taxonomy=question.taxonomy or None,
        categories=(question.category,) if question.category else None,
        tags=tuple(question.tags),
        include_hold=question.include_hold,
        as_of=question.as_of,
    ).checked()


def _project(access: Access, slug: str | None) -> int | Literal["any"] | None:
    if slug == GLOBAL and not Project.objects.filter(slug=GLOBAL).exists():
        return None  # what is global is for everybody
    if access.confined:
        project_of(access, slug)
        return access.project
    found = project_of(access, slug)
    return found.pk if found else access.project


def _agent(access: Access, slug: str | None) -> str | None:
    """An agent's slug, or whom the asker may see."""
    if not slug or slug == access.agent:
        return access.agent
    if access.agent != ANY_AGENT:
        raise AccessDenied(f"{access.actor} asks for its own agent only.", "Leave the agent out.")
    return slug
