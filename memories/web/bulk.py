"""`/memories/bulk`: bulk actions on the selected memories, or on all that match the list's filters, and their undo.

A page confirms actions that need values, cannot be undone or are about all matching memories.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from claudeops.lib.answers import action, actor, answer, in_words, moved
from claudeops.lib.domain_error import DomainError
from claudeops.lib.form_method import FIELD
from claudeops.lib.list_view.selection import IdRangesField, UnreadableSelection
from claudeops.lib.list_view.view import ListView
from claudeops.lib.masked import masked_note
from memories import inbox
from memories.capture.statement import Provenance
from memories.exchange.import_export import export_lines
from memories.lifecycle import undo as lifecycle
from memories.lifecycle.bulk import BULK_ACTIONS, BulkAction
from memories.lifecycle.merge import check_mergeable
from memories.lifecycle.undo import restore
from memories.models import Memory
from memories.web.forms import AnswersForm, SelectionForm
from memories.web.memories import MemoryList

SAMPLE = 8
MOST_MERGED = 50
"""Rows that a person can compare, and so merge at once."""


@require_http_methods(["POST", "DELETE"])
@permission_required("memories.view_memory", raise_exception=True)
def bulk(request: HttpRequest) -> HttpResponseBase:
    """POST an `action` with `id`s, `ids` as ranges or `all_matching`=1; DELETE deletes without confirmation."""
    page, form = MemoryList.of(request), SelectionForm(request.POST)
    try:
        rows, ids = page.selected(form)
    except UnreadableSelection as error:
        return _back(request, str(error), messages.ERROR)
    name = "delete" if request.method == "DELETE" else form.cleaned_data["action"]
    needed = "memories.delete_memory" if name == "delete" else "memories.change_memory"
    if name != "export" and not request.user.has_perm(needed):
        raise PermissionDenied("Your role does not allow this.")
    if not name:
        return _back(request, "No action was chosen. Nothing was changed.", messages.ERROR)
    if request.method == "DELETE" and ids and (gone := set(ids) - set(rows.values_list("pk", flat=True))):
        return _back(request, f"There is no memory {min(gone)}. Nothing was changed.", messages.ERROR)
    if name == "export":
        return _export(rows)
    return run_on_list(request, page, form, BULK_ACTIONS[name], rows, ids)


def _export(rows: QuerySet[Memory]) -> StreamingHttpResponse:
    lines = (f"{line}\n" for line in export_lines(rows))
    name = f"memories-{timezone.now():%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type="application/x-ndjson", headers=headers)


def run_on_list(
    request: HttpRequest,
    page: ListView,
    form: SelectionForm,
    action: BulkAction,
    rows: QuerySet[Memory],
    ids: Collection[int] | None,
) -> HttpResponse:
    """Run `action` on the selected rows of a list and lead back to it, or ask first."""
    post_url = page.with_query(page.bulk_url())
    return confirm_and_run(request, form, action, rows, ids, back=page.address, post_url=post_url, page=page)


def confirm_and_run(
    request: HttpRequest,
    form: SelectionForm,
    action: BulkAction,
    rows: QuerySet[Memory],
    ids: Collection[int] | None,
    *,
    back: str,
    post_url: str,
    page: ListView | None = None,
) -> HttpResponse:
    """Run `action` on `rows` and redirect to `back`, or show the confirmation page, which posts to `post_url`.

    `form` is valid. `ids` None: all that match, of which only those that existed when the page was drawn (`up_to`)
    count. The `page` that it leads back to offers an undo.
    """
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
    shown_count = form.cleaned_data["count"]
    if sent and shown_count in (None, count) and answers.is_valid():
        try:
            result = action.run(
                rows,
                by=actor(request),
                provenance=Provenance.typed_by(actor(request)),
                drawn=form.cleaned_data["drawn"],
                **answers.answers(),
            )
        except DomainError as error:
            answers.add_error(None, in_words(error))
        else:
            level = messages.SUCCESS if result.changed else messages.INFO
            undo_url = ""
            if result.change and page is not None:
                undo_url = page.with_query(reverse("memories-undo", args=[result.change]))
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
        "seen": shown_count if sent and shown_count != count else None,
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
    except DomainError as error:
        return in_words(error)
    return ""


@action("memories.change_memory")
def undo(request: HttpRequest, change: int) -> HttpResponse:
    """Undo the action that the change belongs to, a person's; the open list then reloads its rows.

    A session's change is refused (409): the memory's page rolls it back alone.
    """
    back = MemoryList.of(request).address
    try:
        undone = lifecycle.undo(change, by=actor(request))
    except DomainError as error:
        return answer(request, in_words(error), back=back, level=messages.ERROR, status=409)
    return answer(request, undone.message, back=back, level=messages.SUCCESS if undone.back else messages.INFO)


def _back(request: HttpRequest, text: str, level: int) -> HttpResponse:
    """Return to the list with a message; to a DELETE that no form sent, say it as an error."""
    if request.method == "DELETE" and FIELD not in request.POST:
        return HttpResponse(text, status=422, content_type="text/plain; charset=utf-8")
    return moved(request, MemoryList.of(request).address, text, level=level)


MOST_UNDONE = 100
SAID = 3
"""Most refusals that are said one by one."""


@action(("memories.view_memory", "memories.change_memory"))
def undo_all(request: HttpRequest) -> HttpResponse:
    """Undo what each `undo` names, the address of a single undo, the latest first.

    Each is conditional as it is alone: what somebody changed since is left as it is, and the answer says so.
    """
    addresses = list(dict.fromkeys(request.POST.getlist("undo")))[-MOST_UNDONE:]
    count, refused = 0, []
    for address in reversed(addresses):
        try:
            count += _undo(address, request)
        except (DomainError, ValueError) as error:
            refused.append(str(error))
    lines = [f"{count} {'change is' if count == 1 else 'changes are'} undone."] if count or not refused else []
    lines += refused[:SAID]
    if len(refused) > SAID:
        lines.append(f"{len(refused) - SAID} more are left as they are.")
    level = messages.SUCCESS if count and not refused else messages.WARNING
    return answer(request, " ".join(lines), back=reverse("memories"), level=level)


def _undo(address: str, request: HttpRequest) -> bool:
    """Undo one action and return whether that changed anything. Raises MemoriesError, ValueError for no such undo."""
    by = actor(request)
    try:
        match = resolve(address.partition("?")[0])
    except Resolver404:
        raise ValueError(f"There is nothing to undo at {address[:80]}.") from None
    arguments: dict[str, Any] = match.kwargs
    if match.url_name == "memory-undo":
        return restore(arguments["pk"], arguments["change"], by=by, only_latest=True) is not None
    if match.url_name == "memories-undo":
        return lifecycle.undo(arguments["change"], by=by).back > 0
    if match.url_name == "inbox-undo" and arguments["kind"] in inbox.KINDS:
        kind = inbox.KINDS[arguments["kind"]]
        if not request.user.has_perm(kind.permission):
            raise ValueError(f"You may not decide about {kind.label.lower()}.")
        kind.undo(arguments["token"], by=by)
        return True
    raise ValueError(f"There is nothing to undo at {address[:80]}.")
