"""`/inbox`: the queue of all that waits for a person, one item open, decisions on it or on a selection."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.http import urlencode

from claudeops.lib.answers import action, actor, by_htmx, in_words, moved, page
from claudeops.lib.domain_error import DomainError
from memories import inbox as items
from memories.inbox.kinds import Kind, Pick, Row, read_id, read_pick
from memories.models import Memory
from memories.queries import disagreements as questions
from memories.queries.similar import nearest_to

SHOWN = 100
"""Most items of a kind in the queue; the rest follow when these are decided."""

MOST_PICKED = 500
ANSWERED = "answered"
UNREADABLE = "The decision could not be read. Nothing was changed."


@page("memories.view_memory")
def inbox(request: HttpRequest) -> HttpResponse:
    return _page(request, request.GET.get("view", ""), request.GET.get("item", ""))


@page("memories.view_memory")
def nearest(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the nearest known memory to one that waits: for the item, which loads it after the page, or as a page."""
    memory = get_object_or_404(Memory, pk=pk)
    context = {"memory": memory, "nearest": nearest_to(memory), "is_loaded": True}
    return render(
        request, "memories/_inbox_nearest.html" if by_htmx(request) else "memories/inbox_nearest.html", context
    )


@action("memories.view_memory")
def decide(request: HttpRequest) -> HttpResponse:
    """Carry out `decision` ("kind.name") on each `pick` of that kind; what others changed meanwhile is left alone."""
    kind_name, _, name = request.POST.get("decision", "").partition(".")
    kind = items.KINDS.get(kind_name)
    _check_right(request, kind)
    decision = next((one for one in kind.decisions if one.name == name), None) if kind else None
    try:
        chosen = [read_pick(text) for text in request.POST.getlist("pick")[:MOST_PICKED]]
    except ValueError:
        kind = None
    if kind is None or decision is None:
        return _answer(request, UNREADABLE, level=messages.ERROR)
    picks: list[Pick] = [pick for of, pick in chosen if of == kind_name]
    if not picks:
        return _answer(request, "Nothing of this kind is selected.", level=messages.WARNING)
    try:
        result = kind.decide(name, picks, by=actor(request), text=request.POST.get("observation"))
    except DomainError as error:
        return _answer(request, in_words(error), level=messages.ERROR)
    lines = [f"{result.count} {decision.done}."] if result.count else []
    undo = reverse("inbox-undo", args=[kind_name, result.undo]) if result.undo else ""
    level = messages.WARNING if result.refused else messages.SUCCESS
    return _answer(request, " ".join([*lines, *result.refused]), level=level, undo=undo)


@action("memories.view_memory")
def undo(request: HttpRequest, kind: str, token: str) -> HttpResponse:
    item_kind = items.KINDS.get(kind)
    _check_right(request, item_kind)
    if item_kind is None:
        return _answer(request, UNREADABLE, level=messages.ERROR)
    try:
        message = item_kind.undo(token, by=actor(request))
    except DomainError as error:
        return _answer(request, in_words(error), level=messages.ERROR)
    return _answer(request, message)


def _check_right(request: HttpRequest, kind: Kind | None) -> None:
    if not request.user.has_perm(kind.permission if kind else "memories.change_memory"):
        raise PermissionDenied


def _answer(request: HttpRequest, message: str, *, level: int = messages.SUCCESS, undo: str = "") -> HttpResponse:
    view, item = request.POST.get("view", ""), request.POST.get("next", "")
    if by_htmx(request):
        return _page(request, view, item, said=message, undo=undo, is_refused=level != messages.SUCCESS)
    query = urlencode({name: value for name, value in (("view", view), ("item", item)) if value})
    return moved(request, f"{reverse('inbox')}?{query}".rstrip("?"), message, level=level, undo=undo)


def _page(request: HttpRequest, view: str, wanted: str, **said: Any) -> HttpResponse:
    counts = items.counts(items.KINDS)
    total = sum(counts[name] for name in items.WAITING)
    shared = {
        "views": [
            (name, label, items.shown(items.count_of_view(name, counts)) or "0")
            for name, (label, _) in items.VIEWS.items()
        ],
        "total": items.shown(total),
        **said,
    }
    if view == ANSWERED:
        return _render(request, {**shared, "view": view, **_answered(request)})
    view = view if view in items.VIEWS else ""
    names = items.VIEWS[view][1] if view else items.WAITING
    groups = [(items.KINDS[name], items.KINDS[name].rows(SHOWN)) for name in names if counts[name]]
    rows = [row for _, group in groups for row in group]
    row, item = _opened(rows, wanted)
    place = rows.index(row) if row else 0
    context: dict[str, Any] = {
        **shared,
        "groups": groups,
        "view": view,
        "only": groups[0][0] if len(groups) == 1 else None,
        "open": row,
        "item": item,
        "kind": items.KINDS[row.kind] if row else None,
        "decidable": {name for name in names if request.user.has_perm(items.KINDS[name].permission)},
        "place": place + 1,
        "count": len(rows),
        "before": rows[place - 1] if row and place else None,
        "after": rows[(place + 1) % len(rows)] if len(rows) > 1 else None,
    }
    return _render(request, context)


def _answered(request: HttpRequest) -> dict[str, Any]:
    """Return a page of the answered disagreements, newest first; `after` is the id of the last one before it."""
    try:
        after = read_id(request.GET.get("after", ""))
    except ValueError:
        after = None
    return {"answered": questions.page_of(questions.answered(), after), "is_first": after is None}


def _render(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    is_part = by_htmx(request) and not request.htmx.history_restore_request  # type: ignore[attr-defined]
    return render(request, "memories/_inbox.html" if is_part else "memories/inbox.html", context)


def _opened(rows: list[Row], wanted: str) -> tuple[Row | None, dict[str, Any] | None]:
    """Return the wanted row, or else the first, and its item; rows that were decided meanwhile are passed over."""
    first = [row for row in rows if row.key == wanted]
    for row in [*first, *rows]:
        if item := items.KINDS[row.kind].item(row.pk):
            return row, item
    return None, None
