"""`/memories/bulk`: what is done to the memories that were ticked, or to all that the list's filters match.

What asks for something, cannot be taken back, or is about all that match has a page in between; what it was about
then may have changed until the answer: then it is shown again instead of carried out.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from memories.bulk import BULK_ACTIONS, BulkAction, BulkResult
from memories.errors import MemoriesError
from memories.exchange.import_export import export_lines
from memories.forms import AnswersForm, SelectionForm
from memories.lifecycle import undo as lifecycle
from memories.lifecycle.curate import check_mergeable
from memories.models import Memory
from memories.views.answers import actor, by_htmx, in_words, moved, toast
from memories.views.memories import matching, query_of

SAMPLE = 8
MOST_MERGED = 50
"""Rows that can be compared by eye, and so be merged at once."""


@require_http_methods(["POST", "DELETE"])
@permission_required("memories.view_memory", raise_exception=True)
def bulk(request: HttpRequest) -> HttpResponseBase:
    """POST an `action` with `id`s or `all_matching`=1; DELETE deletes, without asking again."""
    form = SelectionForm(request.POST)
    if not form.is_valid():
        return _back(request, "The selection could not be read. Nothing was changed.", messages.ERROR)
    name = "delete" if request.method == "DELETE" else form.cleaned_data["action"]
    if name != "export" and not request.user.has_perm(_permission(name)):
        raise PermissionDenied("Your role does not allow this.")
    if not name:
        return _back(request, "No action was chosen. Nothing was changed.", messages.ERROR)
    filters, rows = matching(request)
    if form.cleaned_data["all_matching"] and not filters.is_valid():
        return _back(request, "The list's filters could not be read. Nothing was changed.", messages.ERROR)
    if not form.cleaned_data["all_matching"]:
        rows = Memory.objects.filter(pk__in=form.ids())
    if name == "export":
        return _export(rows)
    return _act(request, BULK_ACTIONS[name], rows, form)


def _permission(name: str) -> str:
    return "memories.delete_memory" if name == "delete" else "memories.change_memory"


def _export(rows: QuerySet[Memory]) -> StreamingHttpResponse:
    lines = (f"{line}\n" for line in export_lines(rows))
    name = f"memories-{timezone.now():%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type="application/x-ndjson", headers=headers)


def _act(request: HttpRequest, action: BulkAction, rows: QuerySet[Memory], form: SelectionForm) -> HttpResponse:
    given = form.cleaned_data
    newest = given["up_to"] or Memory.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    if given["all_matching"]:
        rows = rows.filter(pk__lte=newest)  # what came since the page was drawn was not seen on it
    count = rows.count()
    if not count:
        return _back(request, "No memory was chosen. Nothing was changed.", messages.WARNING)
    sample = list(rows.order_by("-active", "-confidence", "pk")[: MOST_MERGED if action.name == "merge" else SAMPLE])
    if refused := _unmergeable(action, sample, count):
        return _back(request, refused, messages.ERROR)
    asks = bool(action.confirm or action.params or given["all_matching"])
    sent = bool(given["confirmed"] or request.method == "DELETE" or not asks)
    answers = AnswersForm(action, sample if action.name == "merge" else [], request.POST if sent else None)
    unchanged = given["count"] in (None, count)
    if sent and unchanged and answers.is_valid():
        try:
            result = action.run(rows, by=actor(request), **answers.answers())
        except MemoriesError as error:
            answers.add_error(None, in_words(error))
        else:
            return _done(request, result)
    context = _context(request, action, answers, sample, count) | {"all_matching": given["all_matching"]}
    context |= {"ids": [] if given["all_matching"] else form.ids(), "up_to": newest, "changed": not unchanged}
    return render(request, "memories/bulk.html", context, status=422 if sent else 200)


def _unmergeable(action: BulkAction, sample: list[Memory], count: int) -> str:
    if action.name != "merge":
        return ""
    if not 2 <= count <= MOST_MERGED:
        return f"Choose 2 to {MOST_MERGED} memories to merge; these are {count:,}. Nothing was changed."
    try:
        check_mergeable(sample[0], sample[1:])
    except MemoriesError as error:
        return in_words(error)
    return ""


def _context(
    request: HttpRequest, action: BulkAction, answers: AnswersForm, sample: list[Memory], count: int
) -> dict[str, Any]:
    return {
        "action": action,
        "form": answers,
        "sample": sample,
        "count": count,
        "more": count - len(sample),
        "merging": action.name == "merge",
        "query": query_of(request),
    }


def _done(request: HttpRequest, result: BulkResult) -> HttpResponse:
    """What it did, and the way back where there is one."""
    way_back = _with_query(request, reverse("memories-undo", args=[result.change])) if result.change else ""
    level = messages.SUCCESS if result.changed else messages.INFO
    return _back(request, result.message, level, undo=way_back)


@require_POST
@permission_required("memories.change_memory", raise_exception=True)
def undo(request: HttpRequest, change: int) -> HttpResponse:
    """`/memories/undo/{change}`: take back the action that the change belongs to. Wakes the list that shows it."""
    try:
        done = lifecycle.undo(change, by=actor(request))
    except MemoriesError as error:
        return _told(request, in_words(error), "error", 409)
    return _told(request, done.message, "success" if done.back else "info", 200)


def _told(request: HttpRequest, text: str, level: str, status: int) -> HttpResponse:
    if not by_htmx(request):
        return _back(request, text, getattr(messages, level.upper()))
    response = HttpResponse(toast(request, text, level=level), status=status)
    response["HX-Trigger"] = "wake"
    return response


def _with_query(request: HttpRequest, address: str) -> str:
    """`address` with the filters and the order of the list."""
    query = query_of(request)
    return f"{address}?{query}" if query else address


def _back(request: HttpRequest, text: str, level: int, *, undo: str = "") -> HttpResponse:
    """To the list as it was filtered, with the message."""
    return moved(request, _with_query(request, reverse("memories")), text, level=level, undo=undo)
