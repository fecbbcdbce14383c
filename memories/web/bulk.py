"""`/memories/bulk`: bulk actions on the selected memories, or on all that match the list's filters.

A page confirms actions that need values, cannot be undone or are about all matching memories.
"""

from __future__ import annotations

from collections.abc import Collection

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from claudeops.lib.form_method import FIELD
from claudeops.lib.list_page.selection import IdRangesField
from claudeops.lib.masked import masked_note
from memories.capture.statement import Provenance
from memories.errors import MemoriesError
from memories.exchange.import_export import export_lines
from memories.lifecycle import undo as lifecycle
from memories.lifecycle.bulk import BULK_ACTIONS, BulkAction
from memories.lifecycle.merge import check_mergeable
from memories.models import Memory
from memories.web.answers import actor, by_htmx, in_words, moved, toast
from memories.web.forms import AnswersForm, SelectionForm
from memories.web.memories import matching, query_of

SAMPLE = 8
MOST_MERGED = 50
"""Rows that a person can compare, and so merge at once."""

UNREADABLE = "The selection could not be read. Nothing was changed."


@require_http_methods(["POST", "DELETE"])
@permission_required("memories.view_memory", raise_exception=True)
def bulk(request: HttpRequest) -> HttpResponseBase:
    """POST an `action` with `id`s, `ids` as ranges or `all_matching`=1; DELETE deletes without confirmation."""
    form = SelectionForm(request.POST)
    if not form.is_valid():
        return _back(request, UNREADABLE, messages.ERROR)
    name = "delete" if request.method == "DELETE" else form.cleaned_data["action"]
    if name != "export" and not request.user.has_perm(_permission(name)):
        raise PermissionDenied("Your role does not allow this.")
    if not name:
        return _back(request, "No action was chosen. Nothing was changed.", messages.ERROR)
    if form.cleaned_data["all_matching"]:
        filters, rows = matching(request)
        if not filters.is_valid():
            return _back(request, "The list's filters could not be read. Nothing was changed.", messages.ERROR)
        ids = None
    else:
        ids = form.chosen()
        rows = Memory.objects.filter(pk__in=ids)
        if request.method == "DELETE" and (gone := set(ids) - set(rows.values_list("pk", flat=True))):
            return _back(request, f"There is no memory {min(gone)}. Nothing was changed.", messages.ERROR)
    if name == "export":
        return _export(rows)
    back, here = (_with_query(request, reverse(page)) for page in ("memories", "memories-bulk"))
    return confirm_and_run(request, BULK_ACTIONS[name], rows, ids, back=back, post_url=here)


def _permission(name: str) -> str:
    return "memories.delete_memory" if name == "delete" else "memories.change_memory"


def _export(rows: QuerySet[Memory]) -> StreamingHttpResponse:
    lines = (f"{line}\n" for line in export_lines(rows))
    name = f"memories-{timezone.now():%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type="application/x-ndjson", headers=headers)


def confirm_and_run(
    request: HttpRequest,
    action: BulkAction,
    rows: QuerySet[Memory],
    ids: Collection[int] | None,
    *,
    back: str,
    post_url: str,
    undoable: bool = True,
) -> HttpResponse:
    """Run `action` on `rows` and redirect to `back`, or show the confirmation page, which posts to `post_url`.

    `ids` None: all that match, of which only those that existed when the page was drawn (`up_to`) count. `undoable`:
    the page `back` can offer an undo.
    """
    form = SelectionForm(request.POST)
    if not form.is_valid():
        return moved(request, back, UNREADABLE, level=messages.ERROR)
    newest = form.cleaned_data["up_to"] or Memory.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    if ids is None:
        rows = rows.filter(pk__lte=newest)
    count, merging = rows.count(), action.name == "merge"
    if not count:
        return moved(request, back, "No memory is selected. Nothing was changed.", level=messages.WARNING)
    sample = list(rows.order_by("-active", "-confidence", "pk")[: MOST_MERGED if merging else SAMPLE])
    if merging and (refused := _unmergeable(sample, count)):
        return moved(request, back, refused, level=messages.ERROR)
    asks = action.confirm or action.params or ids is None
    sent = bool(form.cleaned_data["confirmed"] or request.method == "DELETE" or not asks)
    answers = AnswersForm(action, rows, sample if merging else [], request.POST if sent else None)
    seen = form.cleaned_data["count"]
    if sent and seen in (None, count) and answers.is_valid():
        try:
            result = action.run(
                rows,
                by=actor(request),
                provenance=Provenance.typed_by(actor(request)),
                drawn=form.cleaned_data["drawn"],
                **answers.answers(),
            )
        except MemoriesError as error:
            answers.add_error(None, in_words(error))
        else:
            level = messages.SUCCESS if result.changed else messages.INFO
            undo_url = ""
            if result.change and undoable:
                undo_url = _with_query(request, reverse("memories-undo", args=[result.change]))
            note = masked_note(request.POST.get("observation", ""))
            return moved(request, back, f"{result.message}{note}", level=level, undo=undo_url)
    context = {
        "action": action,
        "form": answers,
        "sample": sample,
        "count": count,
        "more": count - len(sample),
        "merging": merging,
        "ids": None if ids is None else IdRangesField.pack(ids),
        "up_to": newest,
        "drawn_at": form.cleaned_data["drawn"] or timezone.now(),
        "seen": seen if sent and seen != count else None,
        "back": back,
        "post_url": post_url,
    }
    return render(request, "memories/bulk.html", context, status=422 if sent else 200)


def _unmergeable(sample: list[Memory], count: int) -> str:
    """Return why these memories cannot be merged; "" when they can."""
    if not 2 <= count <= MOST_MERGED:
        return f"Choose 2 to {MOST_MERGED} memories to merge; these are {count:,}. Nothing was changed."
    try:
        check_mergeable(sample[0], sample[1:])
    except MemoriesError as error:
        return in_words(error)
    return ""


@require_POST
@permission_required("memories.change_memory", raise_exception=True)
def undo(request: HttpRequest, change: int) -> HttpResponse:
    """Undo the action that the change belongs to, a person's; the open list then reloads its rows.

    A session's change is refused (409): the memory's page rolls it back alone.
    """
    try:
        done = lifecycle.undo(change, by=actor(request))
    except MemoriesError as error:
        return _answer(request, in_words(error), "error", 409)
    return _answer(request, done.message, "success" if done.back else "info", 200)


def _answer(request: HttpRequest, text: str, level: str, status: int) -> HttpResponse:
    if not by_htmx(request):
        return _back(request, text, getattr(messages, level.upper()))
    response = HttpResponse(toast(request, text, level=level), status=status)
    response["HX-Trigger"] = "wake"
    return response


def _with_query(request: HttpRequest, address: str) -> str:
    query = query_of(request)
    return f"{address}?{query}" if query else address


def _back(request: HttpRequest, text: str, level: int) -> HttpResponse:
    """Return to the list with a message; to a DELETE that no form sent, say it as an error."""
    if request.method == "DELETE" and FIELD not in request.POST:
        return HttpResponse(text, status=422, content_type="text/plain; charset=utf-8")
    return moved(request, _with_query(request, reverse("memories")), text, level=level)
