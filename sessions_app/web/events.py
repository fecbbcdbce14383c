"""`/events`: the list with its filters and pages, its export, its poll, and acknowledging events."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.db import connection
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.urls import reverse
from django.utils import timezone

from claudeops.lib import times
from claudeops.lib.answers import action, answer
from claudeops.lib.change_token import hash_of
from claudeops.lib.distinct import distinct_values
from claudeops.lib.list_view.columns import Action, BuiltIn, Column
from claudeops.lib.list_view.keyset import both
from claudeops.lib.list_view.selection import UNREADABLE, Selection, UnreadableSelection
from claudeops.lib.list_view.view import ListView
from memories.taxonomy import GENERAL
from sessions_app.events import acknowledgement
from sessions_app.models import Event
from sessions_app.queries.filters import SEARCHED, EventListFilterSet

ACKNOWLEDGE = "sessions_app.acknowledge_event"
SHOWN = (
    *("id", "level", "service", "message", "created_at", "acknowledged_at", "acknowledged_by"),
    *("session__id", "session__agent__slug"),
)
SUGGESTED = ("open:yes", "level:critical", "level:warning", "age:hour", "age:day", "age:week")
MOST_SUGGESTED = 50


def _agent_of(event: Event) -> str | None:
    return event.session.agent.slug if event.session and event.session.agent else None


class EventList(ListView):
    name, heading, one = "events", "Events", "event"
    template, row_template = "events/list.html", "events/_row.html"
    permission_required = "sessions_app.view_event"
    model, filterset = Event, EventListFilterSet
    searched = f"{SEARCHED:,} that the other filters leave"
    fields = ("level", "open", "service", "session", "age")
    example = "open:yes level:critical service:jellyfin age:day, or words"
    built_in = (
        BuiltIn("All", ""),
        BuiltIn("Critical", "level=critical"),
        BuiltIn("Warning", "level=warning"),
        BuiltIn("Open", "open=yes"),
        BuiltIn("Open critical", "level=critical&open=yes"),
    )
    columns = (
        Column("level", "Level", lambda event: event.level, fixed=True, bare=True),
        Column("message", "Event", lambda event: event.message, fixed=True),
        Column("service", "Service", lambda event: event.service or GENERAL),
        Column("session", "Session", lambda event: event.session_id, number=True),
        Column("agent", "Agent", _agent_of),
        Column("when", "When", lambda event: event.created_at, sort="when"),
        Column("acknowledged", "Acknowledged", lambda event: event.acknowledged_at),
    )
    sorts, first = both("when", "when", F("created_at"), "created_at", times.parse), "-when"
    actions = (Action("acknowledge", "Acknowledge", ACKNOWLEDGE, key="a"), Action("reopen", "Reopen", ACKNOWLEDGE))
    row_acts = (ACKNOWLEDGE,)
    polled = True

    def listed(self, rows: QuerySet[Event]) -> QuerySet[Event]:
        return rows.select_related("session__agent").only(*SHOWN)

    @cached_property
    def state(self) -> str:
        """The highest id, and a hash of when one was last acknowledged or reopened: two looks into indexes."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT MAX(id) FROM events), (SELECT MAX(touched_at) FROM events WHERE touched_at IS NOT NULL)"
            )
            last, touched = cursor.fetchone()
        return f"{last or 0}.{hash_of(touched)}"

    def mark(self, row: Event) -> str:
        return hash_of(row.acknowledged_at) if row.acknowledged_at else ""

    def bulk_url(self) -> str:
        return reverse("events-bulk", args=[self.state.partition(".")[0]])

    def response(self, *, status: int = 200, **more: Any) -> HttpResponse:
        services = [*distinct_values(Event, "service"), GENERAL]
        self.filters.offer_services(services)
        suggested = (*SUGGESTED, *(f"service:{name}" for name in services[:MOST_SUGGESTED]))
        return super().response(status=status, suggested=suggested, **more)


@action(("sessions_app.view_event", ACKNOWLEDGE))
def change(request: HttpRequest, verb: str = "", up_to: int = 0) -> HttpResponse:
    """Acknowledge or reopen the selected events, or all that match up to the id that the page has shown."""
    verb = verb or request.POST.get("action", "")
    try:
        rows, ids = EventList.of(request).selected(Selection(request.POST))
    except UnreadableSelection as error:
        return HttpResponseBadRequest(str(error))
    if verb not in ("acknowledge", "reopen"):
        return HttpResponseBadRequest(UNREADABLE)
    if ids is None:
        rows = Event.objects.filter(pk__in=rows.filter(pk__lte=up_to).values("pk"))
    at, by = timezone.now(), request.user.get_username()
    if verb == "reopen":
        count = acknowledgement.reopen(rows, at=at)
        return _said(request, f"{_number(count)} open again." if count else "None of them was acknowledged.")
    count = acknowledgement.acknowledge(rows, by=by, at=at)
    undo = reverse("events-undo", args=[at.isoformat()]) if count else ""
    return _said(request, f"{_number(count)} acknowledged." if count else "None of them is open.", undo)


@action(("sessions_app.view_event", ACKNOWLEDGE))
def undo(request: HttpRequest, at: str) -> HttpResponse:
    """Reopen what this person acknowledged at this time. Twice is once."""
    try:
        rows = acknowledgement.acknowledged_together(request.user.get_username(), times.parse(at))
    except ValueError:
        return HttpResponseBadRequest("This is no time.")
    count = acknowledgement.reopen(rows, at=timezone.now())
    return _said(request, f"{_number(count)} open again." if count else "They were changed since.")


def _number(count: int) -> str:
    return "1 event is" if count == 1 else f"{count:,} events are"


def _said(request: HttpRequest, text: str, undo: str = "") -> HttpResponse:
    session = request.POST.get("session", "")
    back = f"{reverse('session', args=[session])}?tab=events" if session.isdecimal() and len(session) < 19 else ""
    return answer(request, text, back=back or EventList.of(request).address, undo=undo)
