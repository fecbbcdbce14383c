"""`/api/projects` and the memories of a project, in camelCase, by the verbs and filters that the dashboard uses."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router, Status
from pydantic.alias_generators import to_camel

from claudeops.lib.api_errors import Refused, check_names
from memories import store
from memories.access import Access, memories_of, memory_of_project, project_named, visible_projects
from memories.api import project_shapes as shapes
from memories.api.serializers import history_of
from memories.api.shapes import Page
from memories.bearer import access_in, needs
from memories.capture.statement import Provenance
from memories.errors import AccessDenied, Conflict, InvalidMemory, InvalidProject
from memories.lifecycle import verbs
from memories.lifecycle.projects import add_project, set_project
from memories.models import Memory, Project, Scope, Source, Verdict
from memories.queries import project_memories
from memories.queries.list import latest_change_of
from memories.queries.numbers import Uses, uses_of
from memories.taxonomy import PROJECT

CHANNEL = "api"
NAMES = {"observation": "content", "category": "type", "default_expiry": "memory.defaultExpiry"}
"""The names of fields here that are not those of the columns in camelCase."""

PATHS = ("path", "memory_path", "files_folder", "files_pattern")
"""The settings that say where files are."""
COLUMNS = {"content": "observation", "type": "category"}
SEEN = {"If-Match": "The ETag of the state that you know; 409 when it has changed since."}
ACTIVE = {"true": True, "false": False, "all": None}

AGAIN = "Look at what it says now, then send the change again with its ETag."
NO_CHANGE = -1

router = Router(tags=["projects"], by_alias=True)


@router.get("/projects", **needs(Scope.READ, shapes.ProjectsOut), summary="Projects, by slug")
def projects(request: HttpRequest, asked: Query[Page]) -> dict[str, Any]:
    check_names(request, Page.model_fields)
    rows = visible_projects(access_in(request))
    shown = rows.order_by("slug")[asked.offset : asked.offset + asked.limit]
    return {"projects": [_project(row) for row in shown], "total": rows.count()}


@router.post("/projects", **needs(Scope.WRITE, {201: shapes.ProjectOut}), summary="Add a project")
def add(request: HttpRequest, given: shapes.ProjectIn, response: HttpResponse) -> Status:
    """A token with a project adds none."""
    access, settings = access_in(request), given.settings()
    _require_all_projects(access)
    _check_paths(access, Project(), settings)
    with in_camel_case():
        row = add_project(given.slug, **settings)
    response["Location"] = reverse("api:project", args=[row.slug])
    response["ETag"] = f'"{_etag(row)}"'
    return Status(201, _project(row))


@router.get("/projects/{project}", **needs(Scope.READ, shapes.ProjectOut), summary="One project", url_name="project")
def project(request: HttpRequest, project: str, response: HttpResponse) -> dict[str, Any]:
    """By number or slug. The ETag is of its settings."""
    row = project_named(access_in(request), project)
    response["ETag"] = f'"{_etag(row)}"'
    return _project(row)


@router.patch("/projects/{project}", **needs(Scope.WRITE, shapes.ProjectOut, headers=SEEN), summary="Change a project")
def change(request: HttpRequest, project: str, given: shapes.ProjectChangeIn, response: HttpResponse) -> dict[str, Any]:
    """A token with a project changes its memories, not its settings."""
    access = access_in(request)
    target = project_named(access, project)
    _require_all_projects(access)
    settings = _sent(given.settings())
    with in_camel_case(), transaction.atomic():
        row = Project.objects.select_for_update().get(pk=target.pk)
        etags = _known_states(request)
        if etags is not None and _etag(row) not in etags:
            raise Conflict(f"Project {row.slug} was changed meanwhile.", AGAIN, current=_project(row))
        _check_paths(access, row, settings)
        set_project(row, **settings)
    response["ETag"] = f'"{_etag(row)}"'
    return _project(row)


@router.get(
    "/projects/{project}/memories",
    **needs(Scope.READ, shapes.ProjectMemoriesOut),
    summary="The memories of a project, newest first",
)
def memories(request: HttpRequest, project: str, asked: Query[shapes.MemoriesAsked]) -> dict[str, Any]:
    """Those of the project taxonomy. What is held for review is not active, and shown with the scope review only."""
    check_names(request, shapes.MemoriesAsked.model_fields)
    access = access_in(request)
    with in_camel_case():
        within = project_named(access, project)
        rows = project_memories.narrowed(
            memories_of(access, within),
            within.pk,
            category=asked.type,
            active=ACTIVE[asked.active],
            tags=asked.tags.split(","),
        )
    page, total = project_memories.page_at(rows, limit=asked.limit, offset=asked.offset)
    return {"memories": _memories(page), "total": total}


@router.post(
    "/projects/{project}/memories",
    **needs(Scope.WRITE, dict.fromkeys((201, 200, 202), shapes.ProjectMemoryStored)),
    summary="Add a memory to a project",
)
def remember(request: HttpRequest, project: str, given: shapes.ProjectMemoryIn, response: HttpResponse) -> Status:
    """It passes the gate and is matched. 201: stored; 200: known, reinforced or a duplicate; 202: held for review; 422
    `discarded`: not stored. With `source` human and the scope review it is a person's: it passes no gate, its
    confidence is 1.0, and it is approved by who made the token.
    """
    access = access_in(request)
    within = project_named(access, project)
    more: dict[str, Any] = {"expires_at": given.expires_at} if "expires_at" in given.model_fields_set else {}
    with in_camel_case():
        statement = store.Statement(
            given.type,
            given.content,
            taxonomy=PROJECT.slug,
            tags=tuple(given.tags),
            relevance_score=given.relevance_score,
            **more,
        )
        result = _remember(access, statement, given, within)
    if result.memory_id is None:
        message = f"Not stored: {result.reason}."
        raise Refused(422, "discarded", message, "Say what was observed, in a sentence.", field="content")
    (memory,) = _memories([Memory.objects.select_related("approved_by").get(pk=result.memory_id)])
    response["Location"] = reverse("api:project-memory", args=[within.slug, result.memory_id])
    outcome = {"outcome": result.outcome, "reason": result.reason, "contradicted": list(result.contradicted)}
    return Status({"created": 201, "held": 202}.get(result.outcome, 200), memory | outcome)


@router.get(
    "/projects/{project}/memories/{memory_id}",
    **needs(Scope.READ, shapes.ProjectMemoryOut),
    summary="One memory of a project",
    url_name="project-memory",
)
def memory(request: HttpRequest, project: str, memory_id: str, response: HttpResponse) -> dict[str, Any]:
    """By number or UUID. The ETag is of its latest change."""
    access = access_in(request)
    return _shown(access, project_named(access, project), memory_id, response)


@router.get(
    "/projects/{project}/memories/{memory_id}/changes",
    **needs(Scope.READ, shapes.ProjectMemoryChangesOut),
    summary="What happened to a memory of a project",
)
def changes(request: HttpRequest, project: str, memory_id: str, asked: Query[Page]) -> dict[str, Any]:
    """The latest first."""
    check_names(request, Page.model_fields)
    access = access_in(request)
    row = memory_of_project(access, project_named(access, project), memory_id)
    entries, total = history_of(row, held_texts=access.may(Scope.REVIEW), **asked.model_dump())
    for change in entries:
        for state in ("before", "after"):
            change[state] = {NAMES.get(name, to_camel(name)): value for name, value in change[state].items()}
    return {"changes": [shapes.ProjectMemoryChangeOut(**change) for change in entries], "total": total}


@router.patch(
    "/projects/{project}/memories/{memory_id}",
    **needs(Scope.WRITE, shapes.ProjectMemoryOut, headers=SEEN),
    summary="Change a memory of a project",
)
def edit(
    request: HttpRequest,
    project: str,
    memory_id: str,
    given: shapes.ProjectMemoryChangeIn,
    response: HttpResponse,
) -> dict[str, Any]:
    """A new text passes the gate (422 `text_held`)."""
    access = access_in(request)
    within = project_named(access, project)
    row = memory_of_project(access, within, memory_id)
    sent = _sent(given.model_dump(exclude_unset=True))
    columns = {COLUMNS.get(name, name): value for name, value in sent.items()}
    with in_camel_case():
        verbs.edit(
            row.pk,
            by=access.actor,
            expected_change=_expected(request, row),
            provenance=access.provenance(CHANNEL),
            check=access.check_change,
            **columns,
        )
    return _shown(access, within, str(row.pk), response)


@router.delete(
    "/projects/{project}/memories/{memory_id}",
    **needs(Scope.WRITE, {204: None}, headers=SEEN),
    summary="Delete a memory of a project",
)
def remove(request: HttpRequest, project: str, memory_id: str) -> Status:
    """The history is kept."""
    access = access_in(request)
    row = memory_of_project(access, project_named(access, project), memory_id)
    with in_camel_case():
        verbs.delete(row.pk, by=access.actor, expected_change=_expected(request, row))
    return Status(204, None)


@router.patch(
    "/projects/{project}/memories/{memory_id}/approve",
    **needs(Scope.REVIEW, shapes.ProjectMemoryOut, headers=SEEN),
    summary="Approve a memory of a project",
)
def approve(request: HttpRequest, project: str, memory_id: str, response: HttpResponse) -> dict[str, Any]:
    """Its confidence becomes 1.0, and its life begins anew. `approvedBy` is the token."""
    access = access_in(request)
    within = project_named(access, project)
    row = memory_of_project(access, within, memory_id)
    with in_camel_case():
        verbs.approve(row.pk, by=access.actor, expected_change=_expected(request, row))
    return _shown(access, within, str(row.pk), response)


def _remember(
    access: Access, statement: store.Statement, payload: shapes.ProjectMemoryIn, within: Project
) -> store.Remembered:
    """Store a statement of a run, or of a person, whose word the owner of a token with the scope review approves."""
    run = _run_of(access, payload, within)
    provenance = access.provenance(CHANNEL, project_id=within.pk)
    if payload.source != Source.HUMAN.value:
        run_provenance = replace(
            provenance, source=payload.source, session_id=run and run.pk, tier=run.tier if run else 0
        )
        return store.remember(statement, run_provenance)
    access.require(Scope.REVIEW)
    with transaction.atomic():
        result = store.remember(
            statement, Provenance(Source.HUMAN, access.actor, project_id=within.pk, channel=CHANNEL)
        )
        if result.memory_id is not None:
            verbs.approve(result.memory_id, by=access.owner or access.actor, reason=f"Said by {access.actor}.")
    return result


def _run_of(access: Access, payload: shapes.ProjectMemoryIn, within: Project) -> Any:
    """Return the session that a statement comes from. Raises Refused for a person's, and for another project's."""
    if payload.source_run_id is None:
        return None
    visible = Q(project=within) if access.confined else Q(project=within) | Q(project=None)
    session = apps.get_model("sessions_app.Session")._base_manager.filter(visible, pk=payload.source_run_id).first()
    if payload.source == Source.HUMAN.value or session is None:
        why = f"Project {within.slug} has no such session." if session is None else "A person's memory comes from none."
        raise Refused(422, "invalid_memory", f"sourceRunId is {payload.source_run_id}. {why}", field="sourceRunId")
    return session


@contextmanager
def in_camel_case() -> Iterator[None]:
    """Name the fields of a refusal, and the current state of a conflict, as they are named here."""
    try:
        yield
    except Conflict as error:
        current = _memories([error.current])[0] if isinstance(error.current, Memory) else error.current
        raise Conflict(str(error), AGAIN, current=current) from error
    except (InvalidMemory, InvalidProject) as error:
        fields = {NAMES.get(name, to_camel(name)): text for name, text in error.fields.items()}
        message = str(error)
        for old, new in zip(error.fields, fields, strict=True):
            message = re.sub(rf"^{old}\b", new, message)
        raise Refused(422, error.code, message, error.fix, fields=fields) from error


def _require_all_projects(access: Access) -> None:
    if access.confined:
        raise AccessDenied(
            f"{access.actor} has a project: it changes memories, not projects.", "Ask with a token without a project."
        )


def _check_paths(access: Access, row: Project, settings: Mapping[str, Any]) -> None:
    """Raise AccessDenied for a change of where files are read and written, without the scope admin."""
    changed = [to_camel(name) for name in PATHS if name in settings and settings[name] != getattr(row, name)]
    if changed and not access.may(Scope.ADMIN):
        message = (
            f"Where files are is an operator's to set ({', '.join(changed)}): {access.actor} has not the scope admin."
        )
        raise AccessDenied(message, "Set it on the project's page, or with manage.py project set; or leave it out.")


def _sent(settings: dict[str, Any]) -> dict[str, Any]:
    if not settings:
        raise Refused(422, "nothing_to_change", "No field was sent.", "Send the fields to change.")
    return settings


def _project(row: Project) -> dict[str, Any]:
    columns = ("id", "slug", "name", "path", "memory_path", "description", "memories_in_prompt", "memory_budget")
    data = {name: getattr(row, name) for name in (*columns, "used_means", "observed", "created_at")}
    files = {name: getattr(row, setting) for name, setting in shapes.OF_FILES.items()}
    memory = {"default_expiry": row.default_expiry}
    output = shapes.ProjectOut.model_validate(data | {"memory": memory, "agent_memory": files})
    return output.model_dump(by_alias=True)


def _etag(row: Project) -> str:
    state = json.dumps(_project(row), cls=DjangoJSONEncoder, sort_keys=True)
    return hashlib.sha256(state.encode()).hexdigest()[:16]


def _known_states(request: HttpRequest) -> set[str] | None:
    """Return the ETags of If-Match, without marks; None when the caller states none, or any."""
    stated = request.headers.get("If-Match", "").strip()
    if stated in ("", "*"):
        return None
    return {tag.strip().removeprefix("W/").strip('"') for tag in stated.split(",")}


def _expected(request: HttpRequest, row: Memory) -> int | None:
    """Return the change that must still be the latest one when the verb holds the lock; None: any may be.

    NO_CHANGE, which none has, when the caller knows an older state.
    """
    etags, latest = _known_states(request), latest_change_of(row)
    return None if etags is None else latest if str(latest) in etags else NO_CHANGE


def _shown(access: Access, within: Project, memory_id: str, response: HttpResponse) -> dict[str, Any]:
    """Return one memory, and set its ETag: read before the row, so that it is never newer than what is shown."""
    row = memory_of_project(access, within, memory_id)
    response["ETag"] = f'"{latest_change_of(row)}"'
    return _memories([memory_of_project(access, within, memory_id)])[0]


def _memories(rows: Sequence[Memory]) -> list[dict[str, Any]]:
    who = project_memories.approvers(rows)
    uses = uses_of([row.pk for row in rows])
    return [_memory(row, who.get(row.pk), uses[row.pk]) for row in rows]


def _memory(row: Memory, approved_by: str | None, uses: Uses) -> dict[str, Any]:
    return shapes.ProjectMemoryOut(
        id=row.pk,
        project_id=row.project_id or 0,
        type=row.category,
        content=row.observation,
        source=row.source,
        source_run_id=row.session_id,
        tags=row.tags,
        relevance_score=row.relevance_score,
        confidence=row.confidence,
        active=row.active and row.verdict == Verdict.ALLOW,
        expires_at=row.expires_at,
        approved_by=approved_by,
        approved_at=row.approved_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        used_count=uses.used,
        helped_count=uses.helped,
    ).model_dump(by_alias=True)
