"""`/sessions`: the list with its filters and pages, what is new in it, and asking for a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from sessions_app import queue, tokens
from sessions_app.errors import SessionsError
from sessions_app.filters import SessionFilterSet
from sessions_app.forms import LONGEST_SEEN, PlaceForm, RunForm
from sessions_app.models import Session, Trigger

SIZE = 50
CAP = 10_000
"""Up to here the list is counted; beyond, it says "10,000+"."""

COLUMNS = (*tokens.SHOWN, "id", "queued_at", "stats", "agent", "agent__slug", "stop_requested_at")


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of the list, newest first, and whether there are older and newer ones."""

    rows: list[Session]
    older: bool
    newer: bool
    on_top: bool

    @property
    def polls(self) -> bool:
        """The first page may get new rows at any time; any other changes while one of its rows does."""
        return self.on_top or any(session.is_open for session in self.rows)


def in_words(error: SessionsError) -> str:
    return f"{error} {error.fix}".strip()


def page_of(rows: QuerySet[Session], *, before: int | None = None, after: int | None = None) -> Page:
    """SIZE of `rows`: those older than session `before`, those just newer than `after`, or the newest."""
    rows = rows.select_related("agent").only(*COLUMNS)
    known = Session.objects.filter(pk__in=[pk for pk in (before, after) if pk])
    mark = known.values_list("queued_at", flat=True).first() if before or after else None
    if mark is None:
        found = list(rows.order_by("-queued_at", "-id")[: SIZE + 1])
        return Page(found[:SIZE], older=len(found) > SIZE, newer=False, on_top=True)
    if before:
        found = list(
            rows.filter(queued_at__lte=mark)
            .exclude(queued_at=mark, pk__gte=before)
            .order_by("-queued_at", "-id")[: SIZE + 1]
        )
        return Page(found[:SIZE], older=len(found) > SIZE, newer=True, on_top=False)
    newer = rows.filter(queued_at__gte=mark).exclude(queued_at=mark, pk__lte=after or 0).order_by("queued_at", "id")
    found = list(newer[: SIZE + 1])
    if len(found) <= SIZE:  # nothing is above them: this is the first page
        return page_of(rows)
    return Page(found[:SIZE][::-1], older=True, newer=True, on_top=False)


def _query(request: HttpRequest) -> str:
    """The filters of the address, without the place in the list."""
    given = request.GET.copy()
    for name in ("before", "after", "seen"):
        given.pop(name, None)
    for name in [name for name in given if not any(given.getlist(name))]:
        del given[name]
    return given.urlencode()


def _found(request: HttpRequest) -> tuple[SessionFilterSet, Page]:
    """The filters and the page of the list that an address asks for."""
    form = PlaceForm(request.GET)
    place = form.cleaned_data if form.is_valid() else {}
    filters = SessionFilterSet(request.GET, queryset=Session.objects.all())
    rows = filters.qs if filters.is_valid() else Session.objects.none()
    return filters, page_of(rows, before=place.get("before"), after=place.get("after"))


def _context(request: HttpRequest, filters: SessionFilterSet, page: Page) -> dict[str, Any]:
    rows = filters.qs if filters.is_valid() else Session.objects.none()
    count = rows.order_by()[: CAP + 1].count() if page.older or page.newer else len(page.rows)
    place = {name: request.GET[name] for name in ("before", "after") if page.newer and name in request.GET}
    return {
        "filters": filters,
        "page": page,
        "polls": page.polls and filters.is_valid(),
        "count": f"{CAP:,}+" if count > CAP else f"{count:,}",
        "one": count == 1,
        "query": _query(request),
        "place": urlencode(place),
        "seen": tokens.token(page.rows),
    }


def _list(request: HttpRequest, form: RunForm, *, status: int = 200) -> HttpResponse:
    context = {**_context(request, *_found(request)), "form": form}
    return render(request, "sessions/list.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def sessions(request: HttpRequest) -> HttpResponse:
    """`/sessions`: the list; a POST asks for a session that runs now."""
    if request.method == "POST":
        return _run(request)
    return _list(request, RunForm(initial={"agent": request.GET.get("agent", "")}))


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
    return HttpResponseRedirect(reverse("sessions"))


def say_asked(request: HttpRequest, made: Session) -> None:
    """Tell who asked what becomes of the session: it starts, or it waits, and why."""
    link = format_html('<a href="{}">Session {}</a>', reverse("session", args=[made.pk]), made.pk)
    if made.hold_reason:
        messages.warning(request, format_html("{} is held. {}", link, made.hold_reason))
    else:
        messages.success(request, format_html("{} is queued; it starts as soon as a worker is free.", link))


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def rows(request: HttpRequest) -> HttpResponse:
    """What the list asks for every few seconds: 204 when the browser (`seen`) has it all, else what changed."""
    filters, page = _found(request)
    if not filters.is_valid():
        return HttpResponse("The filter cannot be read.", status=400, content_type="text/plain")
    seen = request.GET.get("seen", "")[:LONGEST_SEEN]
    if tokens.token(page.rows) == seen:
        return HttpResponse(status=204)
    context = _context(request, filters, page)
    if not seen or not page.rows:  # from or to an empty list: there is no place to keep
        response = render(request, "sessions/_list.html", context)
        response["HX-Retarget"], response["HX-Reswap"] = "#sessions", "outerHTML"
        return response
    return render(request, "sessions/_rows.html", {**context, "news": tokens.news(seen, page.rows)})
