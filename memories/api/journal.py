"""`/api/journal`: read and write the journal, by the filters of its page."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from claudeops.lib.api_errors import Given, check_names, narrowed, page_of
from memories.access import Access, project_named
from memories.bearer import access_in, needs
from memories.library import journal
from memories.models import Project, Scope
from memories.queries.journal import JournalFilterSet, visible_entries

AFTER = {"after": "`next` of the page before."}

router = Router(tags=["journal"])


class JournalEntryOut(Schema):
    """What was done. Of an entry that the gate holds there are neither detail nor reason, and `held` says why."""

    id: str
    timestamp: datetime
    action: str
    tool: str
    detail: str
    reason: str
    session: int | None
    agent: str
    project: str
    host: str
    by: str
    held: str


class JournalOut(Schema):
    entries: list[JournalEntryOut]
    next: str


class JournalWrittenOut(Schema):
    entry: JournalEntryOut
    suggestions: dict[str, str] = Field(description="For a new action or tool the known one that it is nearly.")


class JournalIn(Given):
    action: str = Field(max_length=40, description="A verb: deploy, restart, change.", examples=["restart"])
    tool: str = Field(max_length=80, description="A noun: what it was done with or to.", examples=["jellyfin"])
    detail: str = Field(max_length=4_000, description="What was done, in a sentence.")
    reason: str = Field("", max_length=2_000)
    project: str | None = Field(None, max_length=64, description="The project's slug; a token's own is taken.")


@router.get(
    "/journal",
    **needs(Scope.READ, JournalOut, filters=JournalFilterSet, also=AFTER),
    summary="Entries of the journal, 50 a page, the newest first",
)
def entries(request: HttpRequest) -> dict[str, Any]:
    check_names(request, [*JournalFilterSet.base_filters, *AFTER])
    journal.catch_up()
    filters = JournalFilterSet(request.GET, queryset=visible_entries(access_in(request)))
    rows, further = page_of(narrowed(filters), "at", request.GET.get("after", ""))
    return {"entries": [journal.as_data(one, told=True) for one in rows], "next": further}


@router.post("/journal", **needs(Scope.WRITE, JournalWrittenOut), summary="Write an entry, which is never edited")
def write(request: HttpRequest, given: JournalIn) -> dict[str, Any]:
    access = access_in(request)
    return written(access, given.action, given.tool, given.detail, given.reason, given.project)


def written(
    access: Access, action: str, tool: str, detail: str, reason: str = "", project: str | None = None
) -> dict[str, Any]:
    """Write an entry for a caller: about its own project, or one that it may see. Raises ProjectNotFound."""
    within = project_named(access, project) if project else Project.objects.filter(pk=access.project_id or 0).first()
    answer = journal.write(
        action,
        tool,
        detail,
        reason=reason,
        session=access.session_id,
        agent=access.agent if access.actor.startswith("agent:") and access.agent else "",
        project=within.slug if within else "",
        by=access.actor,
    )
    return {"entry": journal.as_data(answer.entry, told=True), "suggestions": dict(answer.suggestions)}
