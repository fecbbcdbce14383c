"""`/api/sessions`, `/api/events`, `/api/cooldowns/check`. A token with a project sees only that project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router, Schema, Status
from pydantic import Field, StrictBool

from claudeops.lib.api_errors import Given, Refused, Whole, check_names, narrowed, page_of
from memories.access import Access, project_of
from memories.bearer import access_in, needs
from memories.models import Project, Scope
from sessions_app import queue
from sessions_app.api import serializers
from sessions_app.cooldowns import limits
from sessions_app.errors import EventNotFound, SessionNotFound
from sessions_app.events import acknowledgement
from sessions_app.models import Agent, Event, Session, Trigger
from sessions_app.models.agent import AgentQuerySet
from sessions_app.queries.filters import EventFilterSet, SessionFilterSet
from sessions_app.queries.search import visible_events, visible_sessions
from sessions_app.runner.parts import answer_for

BRIEF = ("task_id", "title", "write_scope", "excluded_paths", "read_first", "prohibited")
AFTER = {"after": "`next` of the page before."}

router = Router()


class SessionOut(Schema):
    """One session, as in a list. Money in US dollars, times in UTC."""

    id: int
    uuid: str
    agent: str | None
    tier: int
    trigger: str
    status: str
    status_reason: str
    hold_reason: str
    model: str
    cost_usd: float
    cost_is_estimated: bool = Field(description="Whether no result line has stated the cost, or a part of it, yet.")
    num_turns: int
    duration_ms: int = Field(description="From its start to its end, or to now; 0 before its start.")
    queued_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    parent: int | None
    dry_run: bool
    summary: str


class ShownOut(Schema):
    """A memory that the session was shown: in its prompt (`injected`), or in the answer to a recall of its own."""

    memory_id: int
    injected: bool
    how: str = Field(description="How it was used: named, answered, quoted, injected; empty = it was not used.")
    helped: bool | None = Field(description="Whether the session that used it completed; null = not known.")


class HookReceiptOut(Schema):
    """What the answer to a hook of the CLI put into the session, or into the subagent `part` of it."""

    event: str
    agent: str = Field(description="The subagent, by the id of its memory file.")
    part: str = Field(description="The subagent's id in the CLI; empty = the session itself.")
    tokens: int = Field(description="Of the text: characters / 4.")
    sha256: str
    at: datetime


class WholeSession(SessionOut):
    """With its answer, results, remediations and injection receipt."""

    exposure: str = Field(description="What it has read so far: nothing, house (its own machines), or outside text.")
    exposed_to: list[str] = Field(description="The outside sources, by name.")
    exit_code: int | None
    error: str
    escalation: dict[str, Any]
    response: str
    usage: dict[str, Any]
    stats: dict[str, Any]
    log_file: str
    children: list[int]
    receipt: dict[str, Any] | None
    hook_receipts: list[HookReceiptOut]
    shown: list[ShownOut]
    events: list[dict[str, Any]]
    memories: list[dict[str, Any]]
    cooldowns: list[dict[str, Any]]


class SessionsOut(Schema):
    sessions: list[SessionOut]
    next: str


class SessionIn(Given):
    agent: str = Field(description="An agent's slug: it says with which rights, tools and limits.")
    prompt: str = Field("", max_length=100_000, description="What it is asked to do.")
    tier: Whole | None = Field(None, ge=1, le=3, description="1 to 3; null = the agent's own.")
    project: str | None = Field(None, description="A slug; null = the agent's, or the token's.")
    dry_run: StrictBool | None = None
    task_id: str = Field("", max_length=100, description="The task's id elsewhere, such as SHOP-42.")
    title: str = Field("", max_length=300, description="The task in a few words.")
    write_scope: list[str] = Field([], max_length=100, description="Globs of files that it may change.")
    excluded_paths: list[str] = Field([], max_length=100, description="Globs of files that it leaves alone.")
    read_first: list[str] = Field([], max_length=100, description="Files that it reads first.")
    prohibited: list[str] = Field([], max_length=100, description="What it does not do.")

    def brief(self) -> dict[str, Any]:
        return {name: value for name in BRIEF if (value := getattr(self, name))}


class FollowIn(Given):
    note: str = Field("", max_length=20_000, description="Words for the new session; they arrive whole.")


class Stopped(Schema):
    message: str


class EventOut(Schema):
    id: int
    session: int | None
    level: str
    service: str | None
    message: str
    created_at: datetime
    acknowledged_at: datetime | None = Field(
        description="A warning or a critical event without it is open; information needs nobody."
    )
    acknowledged_by: str = Field(description="An account or a token; `import` or `upgrade` for what was old; or empty.")


class EventsOut(Schema):
    events: list[EventOut]
    next: str


class ContextIn(Given):
    task: str = Field("", max_length=100_000, description="What it is asked to do; empty = nothing in particular.")
    agent: str | None = Field(None, description="An agent's slug; null = any agent of tier 1 in the token's project.")


class ToldLineOut(Schema):
    """A line that is told, why, and the memory that it comes from, if any."""

    text: str
    why: str
    memory: int | None


class ToldPartOut(Schema):
    name: str = Field(description="curated (MEMORY.md), file (the agent's own), project, knowledge, ops, or other.")
    title: str
    tokens: int = Field(description="Characters / 4.")
    budget: int = Field(description="In tokens; 0 = it has none.")
    lines: list[ToldLineOut]


class ContextOut(Schema):
    tokens: int
    budget: int
    told_once: int = Field(description="How many lines stood in two places and are told in one.")
    parts: list[ToldPartOut]


class DecisionOut(Schema):
    """Whether it is allowed now and why; `until` (UTC) is when it will be."""

    action: str
    service: str
    allowed: bool
    reason: str
    used: int
    limit: int
    window_hours: float
    until: datetime | None
    since: datetime | None


@router.get(
    "/sessions",
    **needs(Scope.READ, SessionsOut, filters=SessionFilterSet, also=AFTER),
    tags=["sessions"],
    summary="Sessions, 50 a page, the latest first",
)
def sessions(request: HttpRequest) -> dict[str, Any]:
    access = access_in(request)
    check_names(request, [*SessionFilterSet.base_filters, *AFTER])
    filters = SessionFilterSet(request.GET, queryset=visible_sessions(access))
    if access.confined:  # another project's agents are as unknown as ones that do not exist
        filters.filters["agent"].queryset = agents_of(access)
        filters.filters["project"].queryset = Project.objects.filter(pk=access.project_id or 0)
    rows, further = page_of(narrowed(filters).select_related("agent"), "queued_at", request.GET.get("after", ""))
    return {"sessions": [serializers.as_row(row) for row in rows], "next": further}


@router.post("/sessions", **needs(Scope.RUN, {202: SessionOut}), tags=["sessions"], summary="Run a session")
def run(request: HttpRequest, given: SessionIn) -> Status:
    """It is queued; `hold_reason` says what it waits for. It runs with the agent's own rights and limits.

    403: its tier is above the token's highest tier; 422: above the agent's.
    """
    access = access_in(request)
    agent = agents_of(access).named(given.agent)
    session = queue.request_session(
        agent=agent,
        trigger=Trigger.API,
        by=access.actor,
        tier=given.tier,
        prompt_task=given.prompt,
        project=project_of(access, given.project),
        dry_run=given.dry_run,
        highest=access.max_tier,
        brief=given.brief(),
    )
    return Status(202, serializers.as_row(session))


@router.post(
    "/sessions/{int:session_id}/retry", **needs(Scope.RUN, {202: SessionOut}), tags=["sessions"], summary="Try again"
)
def retry(request: HttpRequest, session_id: int, given: FollowIn) -> Status:
    """A new session is asked the same, and told how this one ended. While it is open, asking again returns it."""
    return _follow(request, session_id, given, queue.request_retry)


@router.post(
    "/sessions/{int:session_id}/continue", **needs(Scope.RUN, {202: SessionOut}), tags=["sessions"], summary="Go on"
)
def continue_(request: HttpRequest, session_id: int, given: FollowIn) -> Status:
    """A new session resumes the conversation of this one. While it is open, asking again returns it."""
    return _follow(request, session_id, given, queue.request_continue)


def _follow(request: HttpRequest, session_id: int, payload: FollowIn, verb: Callable[..., Session]) -> Status:
    access = access_in(request)
    old = _session(access, session_id)
    successor = verb(old, by=access.actor, note=payload.note, trigger=Trigger.API, highest=access.max_tier)
    return Status(202, serializers.as_row(successor))


@router.get(
    "/sessions/{int:session_id}",
    **needs(Scope.READ, WholeSession),
    tags=["sessions"],
    summary="One session",
    url_name="session",
)
def session(request: HttpRequest, session_id: int) -> dict[str, Any]:
    access = access_in(request)
    return serializers.as_data(_session(access, session_id), review=access.may(Scope.REVIEW))


@router.post(
    "/sessions/{int:session_id}/stop", **needs(Scope.RUN, Stopped), tags=["sessions"], summary="Stop a session"
)
def stop(request: HttpRequest, session_id: int) -> dict[str, Any]:
    access = access_in(request)
    return {"message": queue.request_stop(_session(access, session_id).pk, by=access.actor)}


@router.get(
    "/events",
    **needs(Scope.READ, EventsOut, filters=EventFilterSet, also=AFTER),
    tags=["events"],
    summary="Events, 50 a page, the latest first",
)
def events(request: HttpRequest) -> dict[str, Any]:
    access = access_in(request)
    check_names(request, [*EventFilterSet.base_filters, *AFTER])
    filters = EventFilterSet(request.GET, queryset=visible_events(access))
    rows, further = page_of(narrowed(filters), "created_at", request.GET.get("after", ""))
    return {"events": [serializers.event_as_row(row) for row in rows], "next": further}


@router.post(
    "/events/{int:event_id}/acknowledge",
    **needs(Scope.RUN, EventOut),
    tags=["events"],
    summary="Acknowledge an event",
)
def acknowledge(request: HttpRequest, event_id: int) -> dict[str, Any]:
    """The event is not open any more. One that is not open, or is information, stays as it is."""
    access = access_in(request)
    rows = visible_events(access).filter(pk=event_id) if event_id < 2**63 else Event.objects.none()
    acknowledgement.acknowledge(Event.objects.filter(pk__in=rows.values("pk")), by=access.actor, at=timezone.now())
    event = rows.first()
    if event is None:
        raise EventNotFound(f"There is no event {event_id}.", "List what there is: GET /api/events")
    return serializers.event_as_row(event)


@router.get(
    "/cooldowns/check",
    **needs(
        Scope.READ,
        DecisionOut,
        also={"action": "restart or redeployment.", "service": "The service, like jellyfin."},
    ),
    tags=["cooldowns"],
    summary="Whether a service may be restarted or redeployed now",
)
def check(request: HttpRequest) -> dict[str, Any]:
    """A cooldown belongs to a service, not to a project: the actions of every project count."""
    check_names(request, ["action", "service"])
    values = {name: request.GET.get(name, "") for name in ("action", "service")}
    if missing := [name for name, value in values.items() if not value or "\0" in value]:
        message = f"{missing[0]} is missing."
        raise Refused(
            422,
            "missing_parameter",
            message,
            "Like ?action=restart&service=jellyfin",
            fields={name: f"{name} is missing." for name in missing},
        )
    return asdict(limits.check(values["action"], values["service"]))


@router.post("/context", **needs(Scope.READ, ContextOut, body=True), tags=["recall"], summary="What an agent is told")
def context(request: HttpRequest, given: ContextIn) -> dict[str, Any]:
    """Everything that its next session would be told for a task, line by line. Nothing is recorded or spent."""
    access = access_in(request)
    agent = agents_of(access).named(given.agent) if given.agent else None
    project = Project.objects.filter(pk=access.project_id or 0).first()
    return answer_for(agent, project, given.task, at=timezone.now()).as_data()


def agents_of(access: Access) -> AgentQuerySet:
    """Return the agents that a token may run: with a project only that project's."""
    return Agent.objects.filter(project=access.project_id) if access.confined else Agent.objects.all()


def _session(access: Access, pk: int) -> Session:
    rows = visible_sessions(access).select_related("agent", "receipt")
    row = rows.filter(pk=pk).first() if pk < 2**63 else None
    if row is None:
        raise SessionNotFound(f"There is no session {pk}.", "List what there is: GET /api/sessions")
    return row
