"""`/events`: the list with its filters and pages, and its poll."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from claudeops.lib.change_token import read_token
from sessions_app.models import Event
from sessions_app.queries.filters import EventFilterSet
from sessions_app.web import changes
from sessions_app.web.forms import PlaceForm
from sessions_app.web.paging import Page, counted, page_of, query_of


def _found(request: HttpRequest) -> tuple[EventFilterSet, Page[Event]]:
    form = PlaceForm(request.GET)
    place = form.cleaned_data if form.is_valid() else {}
    filters = EventFilterSet(request.GET, queryset=Event.objects.all())
    rows = filters.qs if filters.is_valid() else Event.objects.none()
    rows = rows.select_related("session__agent").only(
        *("id", "level", "service", "message", "created_at", "session__id", "session__agent__slug")
    )
    return filters, page_of(rows, "created_at", before=place.get("before"), after=place.get("after"))


def _context(request: HttpRequest) -> dict[str, Any]:
    state = changes.events_state()  # read first: what comes while the rest is read is sent with the next poll
    filters, page = _found(request)
    return {
        "filters": filters,
        "page": page,
        "polls": page.on_top and filters.is_valid(),
        "query": query_of(request),
        "seen": changes.events_token(state, page.rows),
        **counted(filters.qs if filters.is_valid() else Event.objects.none(), page),
    }


@require_safe
@never_cache
@permission_required("sessions_app.view_event", raise_exception=True)
def events(request: HttpRequest) -> HttpResponse:
    context = _context(request)
    context["filters"].offer_services()
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
    return render(request, "sessions/_events_news.html", {**context, "news": changes.events_changes(seen, page.rows)})
