"""`/sessions`: the list with its filters and pages, its poll, and running a session."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from claudeops.lib.change_token import read_token
from claudeops.lib.list_page.bar import QueryBar
from claudeops.lib.masked_note import masked_note
from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Agent, Session, Trigger
from sessions_app.queries.filters import SessionFilterSet
from sessions_app.web import changes
from sessions_app.web.forms import PlaceForm, RunForm
from sessions_app.web.hours import hours_of
from sessions_app.web.paging import Page, Slice, counted, query_of, slice_of

HAND_OVER = "Give agents credentials in their environment (CLAUDEOPS_PASS_ENV) or in a file, not in the task."
BAR = QueryBar(
    SessionFilterSet,
    Session.objects.all,
    views=(("All", ""), ("Failed in 24 h", "status=went_wrong&ended=24h"), ("Running", "status=unfinished")),
    example="status:failed agent:homelab-watch, or words",
    shown=("status", "agent", "ended", "age", "trigger", "cost", "tier", "project", "by"),
)
SUGGESTED = ("status:running", "status:failed", "status:went_wrong", "age:day", "age:week", "cost:>0.5")
MOST_SUGGESTED = 50
LAST = 200
"""Sessions among whose costs one is dear if it is in the highest tenth."""

COLUMNS = (*changes.SHOWN, "queued_at", "stats", "agent", "agent__slug", "stop_requested_at")


def in_words(error: SessionsError) -> str:
    return f"{error} {error.fix}".strip()


def polls(page: Page[Session]) -> bool:
    """Whether a page polls: the first may get new rows; others change only while a session on them is open."""
    return page.on_top or any(session.is_open for session in page.rows)


def _found(request: HttpRequest) -> tuple[SessionFilterSet, Slice[Session]]:
    form = PlaceForm(request.GET)
    place = form.cleaned_data if form.is_valid() else {}
    filters = SessionFilterSet(request.GET, queryset=Session.objects.all())
    readable = filters.is_valid() and not BAR.errors(request)
    rows = filters.qs if readable else Session.objects.none()
    rows = rows.select_related("agent").only(*COLUMNS)
    return filters, slice_of(rows, "queued_at", before=place.get("before"), after=place.get("after"))


def _context(request: HttpRequest, filters: SessionFilterSet, page: Page[Session], state: str) -> dict[str, Any]:
    rows = filters.qs if filters.is_valid() else Session.objects.none()  # fills in cleaned_data, too
    place = {name: request.GET[name] for name in ("before", "after") if page.newer and name in request.GET}
    return {
        "filters": filters,
        "page": page,
        "polls": polls(page) and filters.is_valid(),
        **counted(rows, page),
        "taken": filters.qs.cost_and_turns() if filters.form.cleaned_data.get("spent") else None,
        "query": query_of(request),
        "place": urlencode(place),
        "seen": changes.list_token(state, page.rows),
    }


def _own_views(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the views whose filter depends on who asks and on what sessions cost of late."""
    views = [("Mine", urlencode({"by": request.user.get_username()}))]
    last = Session.objects.order_by("-queued_at", "-id").values_list("cost_usd", flat=True)[:LAST]
    costs = sorted(cost for cost in last if cost)
    if len(costs) >= 10:
        views.append(("Dear", urlencode({"cost": f">={costs[-(len(costs) // 10)]:.4f}"})))
    return views


def _list(request: HttpRequest, form: RunForm, *, status: int = 200) -> HttpResponse:
    filters, part = _found(request)
    state = changes.list_state(part)
    context = {**_context(request, filters, part.read(), state), "form": form, "hours": hours_of(request, filters)}
    agents = Agent.objects.order_by("slug").values_list("slug", flat=True)[:MOST_SUGGESTED]
    context |= BAR.context(request, filters, (*SUGGESTED, *(f"agent:{slug}" for slug in agents)), _own_views(request))
    return render(request, "sessions/list.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def sessions(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _run(request)
    return BAR.redirect(request) or _list(request, RunForm(initial={"agent": request.GET.get("agent", "")}))


@permission_required("sessions_app.run_session", raise_exception=True)
def _run(request: HttpRequest) -> HttpResponse:
    form = RunForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    try:
        made = queue.request_session(trigger=Trigger.MANUAL, by=request.user.get_username(), **form.asked())
    except SessionsError as error:
        form.add_error(None, in_words(error))
        return _list(request, form, status=422)
    say_asked(request, made)
    if note := masked_note(form.cleaned_data["prompt"]):
        messages.warning(request, f"{note.strip()} {HAND_OVER}")
    return HttpResponseRedirect(reverse("sessions"))


def said_of(made: Session) -> tuple[int, SafeString]:
    """Return the level of the message about a session that was requested, and its text."""
    link = format_html('<a href="{}">Session {}</a>', reverse("session", args=[made.pk]), made.pk)
    if made.hold_reason:
        return messages.WARNING, format_html("{} is held. {}", link, made.hold_reason)
    return messages.SUCCESS, format_html("{} is queued; it starts as soon as a worker is free.", link)


def say_asked(request: HttpRequest, made: Session) -> None:
    level, text = said_of(made)
    messages.add_message(request, level, text)


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def rows(request: HttpRequest) -> HttpResponse:
    """Answer the list's poll: 204 when the browser (`seen`) shows everything, else what changed."""
    seen = read_token(request.GET.get("seen", ""))
    if set(request.GET) == {"seen"}:  # without filters the rows are known without building the form
        state = changes.list_state(slice_of(Session.objects.all(), "queued_at"))
        if seen.state == state:
            return HttpResponse(status=204)
    filters, part = _found(request)
    if not filters.is_valid():
        return HttpResponse("The filter cannot be read.", status=400, content_type="text/plain")
    state = changes.list_state(part)
    if seen.state == state:
        return HttpResponse(status=204)
    page = part.read()
    context = _context(request, filters, page, state)
    if not seen.rows or not page.rows:  # an empty list has no row to insert beside
        response = render(request, "sessions/_list.html", context)
        response["HX-Retarget"], response["HX-Reswap"] = "#sessions", "outerHTML"
        return response
    return render(request, "sessions/_rows.html", {**context, "news": changes.list_changes(seen, page.rows)})
