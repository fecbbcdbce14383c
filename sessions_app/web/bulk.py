"""`/sessions/bulk`: stop or run again the selected sessions, or all that match the list's filters.

A page asks first: stopping loses work, running costs money.
"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_POST

from claudeops.lib.list_page.selection import IdRangesField, Selection
from sessions_app import queue
from sessions_app.bulk import BULK_ACTIONS
from sessions_app.errors import SessionsError
from sessions_app.models import Session
from sessions_app.models.session import OPEN_STATUSES
from sessions_app.web.sessions import PAGE, matching

SAMPLE = 8
UNREADABLE = "The selection could not be read. Nothing was changed."


@require_POST
@permission_required("sessions_app.view_session", raise_exception=True)
def bulk(request: HttpRequest) -> HttpResponse:
    """POST an `action` with `id`s, `ids` as ranges or `all_matching`=1; then once more with `confirmed`=1."""
    action = BULK_ACTIONS.get(request.POST.get("action", ""))
    form = Selection(request.POST)
    if action is None or not form.is_valid():
        return _back(request, UNREADABLE if action else "No action was chosen. Nothing was changed.", messages.ERROR)
    if not request.user.has_perm(action.permission):
        raise PermissionDenied("Your role does not allow this.")
    given = form.cleaned_data
    newest = given["up_to"] or Session.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    ids = None if given["all_matching"] else form.chosen()
    if ids is None:
        filters, rows = matching(request)
        if not filters.is_valid():
            return _back(request, "The list's filters could not be read. Nothing was changed.", messages.ERROR)
        rows = rows.filter(pk__lte=newest)
    else:
        rows = Session.objects.filter(pk__in=ids)
    selected, rows = rows.order_by(), action.among(rows.order_by())
    count = rows.count()
    if not count:
        text = "None of these sessions is open." if action.name == "stop" else "None of these sessions has ended."
        return _back(request, f"{text} Nothing was changed.", messages.WARNING)
    if count > action.most:
        text = f"{action.label} takes at most {action.most} sessions at once; these are {count:,}. Nothing was changed."
        return _back(request, text, messages.ERROR)
    if given["confirmed"] and given["count"] == count:
        done = action.run(rows, by=request.user.get_username())
        undo = ""
        if action.name == "again" and done.done:
            undo = reverse("sessions-again-undo", args=[IdRangesField.pack(done.done)])
        return _back(request, done.message, messages.SUCCESS if done.done else messages.WARNING, undo)
    sample = list(rows.select_related("agent").order_by("-queued_at", "-pk")[:SAMPLE])
    context = {
        "action": action,
        "sample": sample,
        "count": count,
        "more": count - len(sample),
        "left_out": selected.count() - count,
        "cost": rows.aggregate(cost=Sum("cost_usd"))["cost"] if action.name == "again" else None,
        "ids": None if ids is None else IdRangesField.pack(ids),
        "up_to": newest,
        "seen": given["count"] if given["confirmed"] else None,
        "post_url": _with_query(request, reverse("sessions-bulk")),
        "back": _with_query(request, reverse("sessions")),
    }
    return render(request, "sessions/bulk.html", context, status=422 if given["confirmed"] else 200)


@require_POST
@permission_required(("sessions_app.view_session", "sessions_app.stop_session"), raise_exception=True)
def undo(request: HttpRequest, ids: str) -> HttpResponse:
    """Stop the sessions that this person asked for by running others again. Twice is once."""
    form = Selection({"ids": ids})
    if not form.is_valid():
        return _answer(request, UNREADABLE, "error")
    by = request.user.get_username()
    rows = Session.objects.filter(pk__in=form.cleaned_data["ids"], requested_by=by, status__in=OPEN_STATUSES)
    stopped = 0
    for pk in rows.order_by("pk").values_list("pk", flat=True)[: BULK_ACTIONS["again"].most]:
        try:
            queue.request_stop(pk, by=by)
            stopped += 1
        except SessionsError:
            continue  # it has ended meanwhile
    words = "1 session is stopped." if stopped == 1 else f"{stopped} sessions are stopped."
    return _answer(
        request, words if stopped else "These sessions have ended already.", "success" if stopped else "info"
    )


def _answer(request: HttpRequest, text: str, level: str) -> HttpResponse:
    if not getattr(request, "htmx", False):
        return _back(request, text, getattr(messages, level.upper()))
    toast = render_to_string("_toast.html", {"text": text, "level": level, "oob": True}, request)
    response = HttpResponse(f"<template>{toast}</template>")
    response["HX-Trigger"] = "wake"
    return response


def _with_query(request: HttpRequest, address: str) -> str:
    query = PAGE.query_of(request)
    return f"{address}?{query}" if query else address


def _back(request: HttpRequest, text: str, level: int, undo: str = "") -> HttpResponse:
    messages.add_message(request, level, text, extra_tags=f"undo:{undo}" if undo else "")
    return HttpResponseRedirect(_with_query(request, reverse("sessions")))
