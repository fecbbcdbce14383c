"""`/api/memories`: list, add, show, change, delete, and many at once, by the verbs and filters of the dashboard."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Query, Router, Status

from claudeops.lib.api_errors import Refused, check_names, narrowed
from claudeops.lib.list_view import keyset
from claudeops.lib.list_view.columns import SIZE
from memories import store
from memories.access import changeable_memories, changeable_memory, memory_of, project_of, visible_memories
from memories.api import serializers, shapes
from memories.bearer import access_in, needs
from memories.errors import AccessDenied, MemoryNotFound
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS, OF_REVIEW
from memories.models import Memory, Scope
from memories.queries import list as listing
from memories.queries.filters import MemoryFilterSet

CHANNEL = "api"
HISTORY = 100
PLACE = {
    "sort": "Order: " + ", ".join(listing.SORTS) + f" ({listing.FIRST} by default).",
    "after": "`next` of the page before.",
}

router = Router(tags=["memories"])


@router.get(
    "/memories",
    **needs(Scope.READ, shapes.MemoriesOut, filters=MemoryFilterSet, also=PLACE),
    summary="Memories, 50 a page",
)
def memories(request: HttpRequest) -> dict[str, Any]:
    """The filters of the dashboard, all optional, combined by AND."""
    check_names(request, [*MemoryFilterSet.base_filters, *PLACE])
    rows = narrowed(MemoryFilterSet(request.GET, queryset=visible_memories(access_in(request))))
    sort, after = _place(request)
    page = keyset.page_of(listing.listed(rows.order_by()), sort, SIZE, after=after)
    whole = {
        row.pk: row for row in Memory.objects.filter(pk__in=[row.pk for row in page.rows]).select_related("project")
    }
    shown = [whole[row.pk] for row in page.rows if row.pk in whole]
    return {"memories": serializers.all_as_data(shown), "next": page.further}


@router.post(
    "/memories", **needs(Scope.WRITE, {201: shapes.Stored, 200: shapes.Stored, 202: shapes.Stored}), summary="Remember"
)
def add(request: HttpRequest, given: shapes.MemoryIn) -> Status:
    """The statement passes the gate and is matched within its project. 201: stored; 200: known, reinforced or a
    duplicate; 202: held for review; 422: discarded.
    """
    access = access_in(request)
    project = project_of(access, given.project)
    result = store.remember(
        store.Statement(
            given.category,
            given.observation,
            given.service,
            given.taxonomy,
            given.confidence,
            tuple(given.tags),
            surface=given.surface,
        ),
        access.provenance(CHANNEL, project_id=project.pk if project else None, agent=given.agent),
    )
    if result.memory_id is None:
        raise Refused(422, "discarded", f"Not stored: {result.reason}.", "Say what was observed, in a sentence.")
    memory = Memory.objects.select_related("project").filter(pk=result.memory_id).first()
    answer = {
        "outcome": result.outcome,
        "reason": result.reason,
        "contradicted": list(result.contradicted),
        "memory": memory and serializers.as_data(memory),
    }
    return Status({"created": 201, "held": 202}.get(result.outcome, 200), answer)


@router.post("/memories/bulk", **needs(Scope.WRITE, shapes.BulkOut), summary="Bulk action")
def bulk(request: HttpRequest, given: shapes.BulkIn) -> dict[str, Any]:
    """One transaction, with a change row each. With a filter, memories that the token may only read are left out.

    The action `extend` adds 30 days each time that it arrives; `renew` sets a whole lifetime from now.
    """
    access, action = access_in(request), BULK_ACTIONS.get(given.action)
    if action is None:
        allowed = f"Allowed are: {', '.join(BULK_ACTIONS)}."
        raise Refused(422, "unknown_action", f"action is {given.action!r}.", allowed, field="action")
    params = {param.name: getattr(given, param.name) for param in action.params}
    if action.name in OF_REVIEW and None not in params.values():  # what is missing is named below
        access.require(Scope.REVIEW)
    if params.get("target") is not None:
        changeable_memory(access, params["target"])
    rows = _chosen(request, given.ids, given.filter)
    result = action.run(rows, by=access.actor, reason=given.reason, provenance=access.provenance(CHANNEL), **params)
    return {"changed": result.changed, "unchanged": result.unchanged, "message": result.message}


@router.delete("/memories/bulk", **needs(Scope.WRITE, shapes.BulkOut), summary="Delete many")
def bulk_delete(request: HttpRequest, given: shapes.BulkDeleteIn) -> dict[str, Any]:
    """The history is kept."""
    rows = _chosen(request, given.ids, given.filter)
    result = BULK_ACTIONS["delete"].run(rows, by=access_in(request).actor, reason=given.reason)
    return {"changed": result.changed, "unchanged": result.unchanged, "message": result.message}


@router.get("/memories/{memory_id}", **needs(Scope.READ, shapes.MemoryWithHistory), summary="One memory")
def memory(request: HttpRequest, memory_id: str) -> dict[str, Any]:
    """By number or UUID, with its last 100 changes, the latest last."""
    access = access_in(request)
    row = memory_of(access, memory_id)
    history, _ = serializers.history_of(row, held_texts=access.may(Scope.REVIEW), limit=HISTORY)
    return serializers.as_data(row) | {"history": history[::-1]}


@router.get(
    "/memories/{memory_id}/changes", **needs(Scope.READ, shapes.ChangesOut), summary="What happened to a memory"
)
def changes(request: HttpRequest, memory_id: str, asked: Query[shapes.Page]) -> dict[str, Any]:
    """The latest first."""
    check_names(request, shapes.Page.model_fields)
    access = access_in(request)
    row = memory_of(access, memory_id)
    entries, total = serializers.history_of(row, held_texts=access.may(Scope.REVIEW), **asked.model_dump())
    return {"changes": entries, "total": total}


@router.put("/memories/{memory_id}", **needs(Scope.WRITE, shapes.MemoryOut), summary="Change one")
def change(request: HttpRequest, memory_id: str, given: shapes.MemoryChangeIn) -> dict[str, Any]:
    """409 when `seen` is sent and somebody else changed it since."""
    access = access_in(request)
    row = changeable_memory(access, memory_id)
    fields = given.model_dump(exclude_unset=True, exclude={"reason", "seen"})
    for name, value in fields.items():
        if value is None and name not in ("service", "expires_at"):
            raise Refused(422, "invalid_memory", f"{name} is null.", "Leave out fields that do not change.", field=name)
    if (until := given.expires_at) is not None and until.tzinfo is None:
        message = f"expires_at is {until}, without a zone."
        raise Refused(422, "invalid_memory", message, "Like 2026-12-31T00:00:00Z.", field="expires_at")
    if not fields:
        raise Refused(422, "nothing_to_change", "No field was sent.", "Send the fields to change.")
    verbs.edit(
        row.pk,
        by=access.actor,
        reason=given.reason,
        expected_change=given.seen,
        provenance=access.provenance(CHANNEL),
        check=access.check_change,
        **fields,
    )
    return serializers.as_data(memory_of(access, row.pk))


@router.delete("/memories/{memory_id}", **needs(Scope.WRITE, {204: None}), summary="Delete one")
def remove(request: HttpRequest, memory_id: str) -> Status:
    """The history is kept."""
    access = access_in(request)
    verbs.delete(changeable_memory(access, memory_id).pk, by=access.actor)
    return Status(204, None)


def _place(request: HttpRequest) -> tuple[keyset.Sort, keyset.Place | None]:
    key, after = request.GET.get("sort") or listing.FIRST, request.GET.get("after", "")
    if key not in listing.SORTS:
        allowed = f"Allowed are: {', '.join(listing.SORTS)}."
        raise Refused(422, "invalid_sort", f"sort is {key!r}.", allowed, field="sort")
    try:
        return listing.SORTS[key], keyset.read_place(listing.SORTS[key], after) if after else None
    except ValueError:
        message = f"after is {after!r}."
        raise Refused(422, "invalid_place", message, "Send the value of `next` unchanged.", field="after") from None


def _chosen(request: HttpRequest, ids: list[int] | None, filters: dict[str, str] | None) -> QuerySet[Memory]:
    """Return the memories of a bulk action. Raises for an unknown id and one that the token may only read."""
    access = access_in(request)
    if (ids is None) == (filters is None):
        raise Refused(422, "invalid_selection", "Send either ids or a filter.", "An empty filter {} means all.")
    if filters is not None:
        unknown = sorted(set(filters) - set(MemoryFilterSet.base_filters))
        if unknown:
            raise Refused(
                422,
                "invalid_filter",
                f"{unknown[0]!r} is not a filter.",
                f"Allowed are: {', '.join(MemoryFilterSet.base_filters)}.",
                field=f"filter.{unknown[0]}",
            )
        return narrowed(MemoryFilterSet(filters, queryset=changeable_memories(access))).order_by()
    wanted = set(ids or ())
    visible = set(visible_memories(access).filter(pk__in=wanted).values_list("pk", flat=True))
    if missing := sorted(wanted - visible):
        raise MemoryNotFound(f"There is no memory {missing[0]}.", "Nothing was changed; leave it out.")
    rows = changeable_memories(access).filter(pk__in=wanted)
    mine = set(rows.values_list("pk", flat=True))
    if only_read := sorted(visible - mine):
        raise AccessDenied(
            f"Memory {only_read[0]} is global; a token with a project only reads it.",
            "Nothing was changed; leave it out, or ask with a token without a project.",
        )
    return rows.order_by()
