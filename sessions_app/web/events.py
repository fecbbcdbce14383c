"""`/events`: the list with its filters and pages, its export, and its poll."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from claudeops.lib.capped import CAP, Count
from claudeops.lib.change_token import read_token
from claudeops.lib.distinct import distinct_values
from claudeops.lib.list_page import hold
from claudeops.lib.list_page.bar import View
from claudeops.lib.list_page.columns import Column
from claudeops.lib.list_page.export import FORMATS, MOST
from claudeops.lib.list_page.keyset import both, moment, ordered, page_of
from claudeops.lib.list_page.page import Action, ListPage, declare
from claudeops.lib.list_page.selection import Selection
from memories.taxonomy import GENERAL
from sessions_app.events import acknowledgement
from sessions_app.models import Event
from sessions_app.queries.filters import SEARCHED, EventListFilterSet
from sessions_app.web import answers, changes


def _agent_of(event: Event) -> str | None:
    return event.session.agent.slug if event.session and event.session.agent else None


ACKNOWLEDGE = "sessions_app.acknowledge_event"
SORTS = {sort.key: sort for sort in both("when", "when", F("created_at"), "created_at", moment)}

PAGE = declare(
    ListPage(
        EventListFilterSet,
        Event.objects.all,
        views=(
            View("All", ""),
            View("Critical", "level=critical"),
            View("Warning", "level=warning"),
            View("Open", "open=yes"),
            View("Open critical", "level=critical&open=yes"),
        ),
        example="open:yes level:critical service:jellyfin age:day, or words",
        shown=("level", "open", "service", "session", "age"),
        name="events",
        permission="sessions_app.view_event",
        columns=(
            Column("level", "Level", lambda event: event.level, fixed=True, bare=True),
            Column("message", "Event", lambda event: event.message, fixed=True),
            Column("service", "Service", lambda event: event.service or GENERAL),
            Column("session", "Session", lambda event: event.session_id, number=True),
            Column("agent", "Agent", _agent_of),
            Column("when", "When", lambda event: event.created_at, sort="when"),
            Column("acknowledged", "Acknowledged", lambda event: event.acknowledged_at),
        ),
        sorts=SORTS,
        first="-when",
        actions=(Action("acknowledge", "Acknowledge", ACKNOWLEDGE, key="a"), Action("reopen", "Reopen", ACKNOWLEDGE)),
    )
)

SUGGESTED = ("open:yes", "level:critical", "level:warning", "age:hour", "age:day", "age:week")
MOST_SUGGESTED = 50


def _matching(request: HttpRequest) -> tuple[EventListFilterSet, QuerySet[Event]]:
    """Return the filters and all matches with what a row shows; none when the filters are invalid."""
    filters = EventListFilterSet(request.GET, queryset=Event.objects.all())
    rows = filters.qs if filters.is_valid() and not PAGE.errors(request) else Event.objects.none()
    return filters, rows.select_related("session__agent").only(
        *(
            "id",
            "level",
            "service",
            "message",
            "created_at",
            "acknowledged_at",
            "acknowledged_by",
            "session__id",
            "session__agent__slug",
        )
    )


def _context(request: HttpRequest) -> dict[str, Any]:
    state = changes.events_state()  # read first: what comes while the rest is read is sent with the next poll
    filters, rows = _matching(request)
    sort, after, before = PAGE.place(request)
    chosen = PAGE.chosen(request)
    page = page_of(rows, sort, chosen.size, after=after, before=before)
    several = page.further or page.back
    count = rows.select_related(None).only("id").order_by()[: CAP + 1].count() if several else len(page.rows)
    return {
        **PAGE.list_context(request, sort, chosen),
        "filters": filters,
        "rows": rows,
        "state": state,
        "chosen": chosen,
        "page": page,
        "polls": not page.back and filters.is_valid(),
        "count": Count(count).shown,
        "one": count == 1,
        "total": "" if count > CAP else count,
        "bulk_url": reverse("events-bulk", args=[state.partition(".")[0]]),
        "searched": SEARCHED if request.GET.get(PAGE.text) else None,
        "seen": changes.events_token(state, page.rows),
    }


@require_safe
@never_cache
@permission_required("sessions_app.view_event", raise_exception=True)
def events(request: HttpRequest) -> HttpResponseBase:
    if request.GET.get("format") in FORMATS:
        sort, _, _ = PAGE.place(request)
        return PAGE.export(request.GET["format"], PAGE.chosen(request).shown, ordered(_matching(request)[1], sort))
    if away := PAGE.redirect(request):
        return away
    context = {**_context(request), "export_most": f"{MOST:,}"}
    services = [*distinct_values(Event, "service"), GENERAL]
    context["filters"].offer_services(services)
    suggested = (*SUGGESTED, *(f"service:{name}" for name in services[:MOST_SUGGESTED]))
    context |= PAGE.context(request, context["filters"], suggested, chosen=context["chosen"])
    return render(request, "sessions/events.html", context)


@require_safe
@never_cache
@permission_required("sessions_app.view_event", raise_exception=True)
def rows(request: HttpRequest) -> HttpResponse:
    """Answer the first page's poll: 204 while no event was written, else the new rows."""
    seen = read_token(request.GET.get("seen", ""))
    if seen.state == changes.events_state():
        return HttpResponse(status=204)
    context = _context(request)
    if not context["filters"].is_valid():
        return HttpResponse("The filter cannot be read.", status=400, content_type="text/plain")
    page = context["page"]
    if not seen.rows or not page.rows:  # an empty list has no row to insert beside
        response = render(request, "sessions/_events.html", context)
        response["HX-Retarget"], response["HX-Reswap"] = "#events", "outerHTML"
        return response
    news = changes.events_changes(seen, page.rows)
    if hold.holds(request, news):
        news = changes.events_changes(seen, page.rows, hold.pushed_off(context["rows"], news))
        context |= hold.held(request, seen, context["state"], news, changes.key_of, changes.event_mark)
        return render(request, "sessions/_events_news.html", context)
    return render(request, "sessions/_events_news.html", {**context, "news": news})


@require_POST
@permission_required(("sessions_app.view_event", ACKNOWLEDGE), raise_exception=True)
def change(request: HttpRequest, verb: str = "", up_to: int = 0) -> HttpResponse:
    """Acknowledge or reopen the selected events, or all that match up to the id that the page has shown."""
    form, verb = Selection(request.POST), verb or request.POST.get("action", "")
    if not form.is_valid() or verb not in ("acknowledge", "reopen"):
        return HttpResponseBadRequest("The selection could not be read. Nothing was changed.")
    if form.cleaned_data["all_matching"]:
        found = _matching(request)[1].select_related(None).only("id").filter(pk__lte=up_to)
        rows = Event.objects.filter(pk__in=found.order_by().values("pk"))
    else:
        rows = Event.objects.filter(pk__in=form.chosen())
    at, by = timezone.now(), request.user.get_username()
    if verb == "reopen":
        count = acknowledgement.reopen(rows, at=at)
        return _said(request, f"{_number(count)} open again." if count else "None of them was acknowledged.")
    count = acknowledgement.acknowledge(rows, by=by, at=at)
    undo = reverse("events-undo", args=[at.isoformat()]) if count else ""
    return _said(request, f"{_number(count)} acknowledged." if count else "None of them is open.", undo)


@require_POST
@permission_required(("sessions_app.view_event", ACKNOWLEDGE), raise_exception=True)
def undo(request: HttpRequest, at: str) -> HttpResponse:
    """Reopen what this person acknowledged at this time. Twice is once."""
    try:
        rows = acknowledgement.acknowledged_together(request.user.get_username(), moment(at))
    except ValueError:
        return HttpResponseBadRequest("This is no time.")
    count = acknowledgement.reopen(rows, at=timezone.now())
    return _said(request, f"{_number(count)} open again." if count else "They were changed since.")


def _number(count: int) -> str:
    return "1 event is" if count == 1 else f"{count:,} events are"


def _said(request: HttpRequest, text: str, undo: str = "") -> HttpResponse:
    session = request.POST.get("session", "")
    back = f"{reverse('session', args=[session])}?tab=events" if session.isdecimal() and len(session) < 19 else ""
    query = PAGE.query_of(request)
    return answers.done(request, text, back=back or reverse("events") + (f"?{query}" if query else ""), undo=undo)
