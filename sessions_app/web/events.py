"""`/events`: the list with its filters and pages, its export, and its poll."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from claudeops.lib.change_token import read_token
from claudeops.lib.distinct import distinct_values
from claudeops.lib.list_page import hold
from claudeops.lib.list_page.bar import CAP, View
from claudeops.lib.list_page.columns import Column
from claudeops.lib.list_page.export import FORMATS, MOST
from claudeops.lib.list_page.keyset import both, moment, ordered, page_of
from claudeops.lib.list_page.page import ListPage, declare
from memories.taxonomy import GENERAL
from sessions_app.models import Event
from sessions_app.queries.filters import SEARCHED, EventListFilterSet
from sessions_app.web import changes


def _agent_of(event: Event) -> str | None:
    return event.session.agent.slug if event.session and event.session.agent else None


SORTS = {sort.key: sort for sort in both("when", "when", F("created_at"), "created_at", moment)}

PAGE = declare(
    ListPage(
        EventListFilterSet,
        Event.objects.all,
        views=(View("All", ""), View("Critical", "level=critical"), View("Warning", "level=warning")),
        example="level:critical service:jellyfin age:day, or words",
        shown=("level", "service", "session", "age"),
        name="events",
        permission="sessions_app.view_event",
        columns=(
            Column("level", "Level", lambda event: event.level, fixed=True, bare=True),
            Column("message", "Event", lambda event: event.message, fixed=True),
            Column("service", "Service", lambda event: event.service or GENERAL),
            Column("session", "Session", lambda event: event.session_id, number=True),
            Column("agent", "Agent", _agent_of),
            Column("when", "When", lambda event: event.created_at, sort="when"),
        ),
        sorts=SORTS,
        first="-when",
    )
)

SUGGESTED = ("level:critical", "level:warning", "age:hour", "age:day", "age:week")
MOST_SUGGESTED = 50


def _matching(request: HttpRequest) -> tuple[EventListFilterSet, QuerySet[Event]]:
    """Return the filters and all matches with what a row shows; none when the filters are invalid."""
    filters = EventListFilterSet(request.GET, queryset=Event.objects.all())
    rows = filters.qs if filters.is_valid() and not PAGE.errors(request) else Event.objects.none()
    return filters, rows.select_related("session__agent").only(
        *("id", "level", "service", "message", "created_at", "session__id", "session__agent__slug")
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
        "count": f"{CAP:,}+" if count > CAP else f"{count:,}",
        "one": count == 1,
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
        context |= hold.held(request, seen, context["state"], news, changes.key_of)
        return render(request, "sessions/_events_news.html", context)
    return render(request, "sessions/_events_news.html", {**context, "news": news})
