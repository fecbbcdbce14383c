"""`/sessions/bulk`: stop or run again the selected sessions, or all that match the list's filters.

A page asks first: stopping loses work, running costs money.
"""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from claudeops.lib.answers import action, answer, moved
from claudeops.lib.list_view.selection import UNREADABLE, IdRangesField, Selection, UnreadableSelection
from sessions_app import queue
from sessions_app.bulk import BULK_ACTIONS
from sessions_app.errors import SessionsError
from sessions_app.models import Session
from sessions_app.models.session import OPEN_STATUSES
from sessions_app.web.sessions import SessionList

SAMPLE = 8


@action("sessions_app.view_session")
def bulk(request: HttpRequest) -> HttpResponse:
    """POST an `action` with `id`s, `ids` as ranges or `all_matching`=1; then once more with `confirmed`=1."""
    action = BULK_ACTIONS.get(request.POST.get("action", ""))
    page, form = SessionList.of(request), Selection(request.POST)
    back = page.address
    if action is None:
        return moved(request, back, "No action was chosen. Nothing was changed.", level=messages.ERROR)
    if not request.user.has_perm(action.permission):
        raise PermissionDenied("Your role does not allow this.")
    try:
        selected, ids = page.selected(form)
    except UnreadableSelection as error:
        return moved(request, back, str(error), level=messages.ERROR)
    cleaned = form.cleaned_data
    newest = cleaned["up_to"] or Session.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    if ids is None:
        selected = selected.filter(pk__lte=newest)
    rows = action.among(selected)
    count = rows.count()
    if not count:
        text = "None of these sessions is open." if action.name == "stop" else "None of these sessions has ended."
        return moved(request, back, f"{text} Nothing was changed.", level=messages.WARNING)
    if count > action.most:
        text = f"{action.label} takes at most {action.most} sessions at once; these are {count:,}. Nothing was changed."
        return moved(request, back, text, level=messages.ERROR)
    if cleaned["confirmed"] and cleaned["count"] == count:
        result = action.run(rows, by=request.user.get_username())
        undo = ""
        if action.name == "again" and result.done:
            undo = reverse("sessions-again-undo", args=[IdRangesField.pack(result.done)])
        level = messages.SUCCESS if result.done else messages.WARNING
        return moved(request, back, result.message, level=level, undo=undo)
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
        "seen": cleaned["count"] if cleaned["confirmed"] else None,
        "post_url": page.with_query(page.bulk_url()),
        "back": back,
    }
    return render(request, "sessions/bulk.html", context, status=422 if cleaned["confirmed"] else 200)


@action(("sessions_app.view_session", "sessions_app.stop_session"))
def undo(request: HttpRequest, ids: str) -> HttpResponse:
    """Stop the sessions that this person asked for by running others again. Twice is once."""
    back, form = SessionList.of(request).address, Selection({"ids": ids})
    if not form.is_valid():
        return answer(request, UNREADABLE, back=back, level=messages.ERROR)
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
    if not stopped:
        return answer(request, "These sessions have ended already.", back=back, level=messages.INFO)
    return answer(request, words, back=back)
