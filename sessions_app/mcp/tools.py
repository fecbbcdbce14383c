"""The MCP tools as plain functions of an Access. Statements go through gate and matching, and count once a session."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.utils import timezone

from claudeops.lib.secrets import mask
from memories import store
from memories.access import Access, memory_of
from memories.api import serializers
from memories.api.journal import written
from memories.capture import fields
from memories.capture.markers import statement_of
from memories.capture.text import fold
from memories.errors import InvalidEntry, ProjectNotFound
from memories.injection.escape import safe
from memories.library import journal
from memories.library.decisions import index as decisions
from memories.library.decisions.filters import DecisionFilterSet, visible_decisions
from memories.library.decisions.record import HOLDS
from memories.models import MemoryChange, Project, Scope
from memories.models.memory import ANY_AGENT
from memories.queries.journal import JournalFilterSet, visible_entries
from memories.recall.service import Question, ask
from memories.taxonomy import GENERAL
from sessions_app.cooldowns import limits
from sessions_app.errors import InvalidSession, SessionNotFound
from sessions_app.models import Agent, Event, Session
from sessions_app.queries import search as one_search
from sessions_app.runner.ingest import provenance_now
from sessions_app.runner.markers import EventMarker
from sessions_app.runner.parts import answer_for

CHANNEL = "mcp"
LONGEST_MESSAGE = 4000
HISTORY = 20
MOST_DECISIONS, MOST_SEEN = 20, 500


def recall(access: Access, query: str, service: str | None, category: str | None, limit: int) -> dict[str, Any]:
    """Return memories that answer the query, best first, with few fields: a model reads them."""
    answer = ask(access, Question(query, service=service, category=category, limit=limit), CHANNEL)
    hits = [
        {
            "id": hit.memory_id,
            "observation": safe(hit.observation),
            "service": hit.service or GENERAL,
            "category": hit.category,
            "confidence": hit.confidence,
            "confirmed_at": hit.updated_at.isoformat() if hit.updated_at else None,
            "score": round(hit.score, 3),
        }
        for hit in answer.hits
    ]
    return {"memories": hits, "semantic_search": answer.trace.semantic}


def context(access: Access, task: str) -> dict[str, Any]:
    """Return what the caller's agent would be told for a task, as texts by part: nothing is recorded or spent."""
    slug = access.agent if access.agent != ANY_AGENT else None
    project = Project.objects.filter(pk=access.project_id or 0).first()
    answer = answer_for(Agent.objects.named(slug) if slug else None, project, task, at=timezone.now())
    return answer.as_data()


def memory_show(access: Access, memory_id: int) -> dict[str, Any]:
    row = memory_of(access, memory_id)
    changes = MemoryChange.objects.filter(memory=row).order_by("-at", "-pk")[:HISTORY]
    lines = [
        {"at": change.at.isoformat(), "what": change.kind, "by": change.actor, "why": safe(change.reason)}
        for change in reversed(changes)
    ]
    data = serializers.as_data(row)
    names = ("id", "observation", "category", "taxonomy", "confidence", "active", "inactive_reason", "verdict", "tags")
    times = {name: data[name].isoformat() for name in ("created_at", "updated_at")}
    shown = {name: data[name] for name in names} | {"observation": safe(row.observation)}
    return shown | times | {"service": row.service or GENERAL, "history": lines}


def remember(access: Access, observation: str, category: str, service: str | None) -> dict[str, Any]:
    """Store a statement for the session and its project; return what the gate and the matching decided.

    A category of projects needs a project, and its memory begins like one of a marker. Raises InvalidMemory.
    """
    provenance = access.provenance(CHANNEL, project_id=access.project_id)
    statement = statement_of(category, observation, service, in_project=access.project_id is not None)
    if access.session_id is not None:
        provenance = provenance_now(Session.objects.get(pk=access.session_id), provenance, statement.text)
    result = store.remember(statement, provenance)
    return {"outcome": result.outcome, "memory_id": result.memory_id, "reason": result.reason}


def log_event(access: Access, level: str, message: str, service: str | None) -> dict[str, Any]:
    """Store an event. Within a session the same message counts once, by this tool or by a marker."""
    text = fold(mask(message))[:LONGEST_MESSAGE]
    if not text:
        raise InvalidSession("The message is empty.", "Say in one sentence what happened.")
    event = EventMarker(level, fields.checked_service(service), text)
    values = {"level": event.level, "service": event.service, "message": event.message, "created_at": timezone.now()}
    if access.session_id is None:  # without a session every message is a separate event
        return {"event_id": Event.objects.create(fingerprint=event.fingerprint, **values).pk, "logged": True}
    row, logged = Event.objects.get_or_create(
        session_id=access.session_id, fingerprint=event.fingerprint, defaults=values
    )
    return {"event_id": row.pk, "logged": logged}


def journal_query(access: Access, text: str, action: str, tool: str, during: str, limit: int) -> dict[str, Any]:
    """Return entries of the journal, the latest first. Raises InvalidEntry for a filter that cannot be read."""
    given = {"text": text, "action": action, "tool": tool, "during": during}
    journal.catch_up()
    filters = JournalFilterSet({name: one for name, one in given.items() if one}, queryset=visible_entries(access))
    if not filters.is_valid():
        name, errors = next(iter(filters.errors.items()))
        raise InvalidEntry(f"{name} is {given.get(name)!r}: {errors[0]}", field=name)
    rows = filters.qs.order_by("-at", "-pk")[:limit]
    return {"entries": [journal.as_data(one, told=True) for one in rows]}


def journal_write(access: Access, action: str, tool: str, detail: str, reason: str) -> dict[str, Any]:
    return written(access, action, tool, detail, reason)


def search(access: Access, text: str, kind: str, limit: int) -> dict[str, Any]:
    """Return what has these words, each kind apart, as an agent is told it."""
    found = one_search.search(access, text, kinds=[kind] if kind else (), limit=limit, told=True)
    return {"kinds": [asdict(one) for one in found if one.count]}


def search_decisions(access: Access, text: str, path: str) -> dict[str, Any]:
    """Return the decision records with these words, or that govern a path; those that hold first."""
    given = {"text": text, "path": path}
    rows = DecisionFilterSet(given, queryset=visible_decisions(access)).qs.select_related("project").defer("text")
    found = sorted(rows[:MOST_SEEN], key=lambda one: one.status not in HOLDS)[:MOST_DECISIONS]
    return {"decisions": decisions.with_successors(found)}


def check_cooldown(access: Access, action: str, service: str) -> dict[str, Any]:
    decision = asdict(limits.check(action, service))
    until = decision.pop("until")
    decision.pop("since")
    return decision | {"allowed_again_at": until.isoformat() if until else None}


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


def _of_session(reference: str, scopes: frozenset[str]) -> Access:
    key: dict[str, int | UUID] = {"pk": 0}
    if reference.isdecimal() and len(reference) < 19:
        key = {"pk": int(reference)}
    else:
        try:
            key = {"uuid": UUID(reference)}
        except ValueError:
            pass
    row = Session.objects.select_related("agent").filter(**key).first()
    if row is None:
        raise SessionNotFound(f"There is no session {reference}.", "`manage.py session list` shows the latest.")
    slug = row.agent.slug if row.agent else None
    return Access(
        actor=f"agent:{slug}" if slug else f"session:{row.pk}",
        scopes=scopes,
        project=row.project_id,
        agent=slug,
        session_id=row.pk,
        tier=row.tier,
    )
