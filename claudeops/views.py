"""The overview, the feed and the sign-in page."""

from __future__ import annotations

import logging
import sys
from typing import Any

from django.contrib.auth.views import LoginView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views import defaults
from django.views.decorators.http import require_POST

from claudeops import api, sign_in
from claudeops.context import DEMO_NOTE_HIDDEN
from claudeops.features import first_day
from claudeops.features.overview import changes, charts, feed
from claudeops.lib import outage
from claudeops.lib.answers import page
from claudeops.lib.change_token import ChangeToken, changed_parts, parts_of, read_token
from claudeops.lib.periods import RANGES, Range, range_of

PIECES = ("needs", "charts", "agents", "failed", "silence", "health", "running")
"""The parts of the page, each with its own fragment and element. Entries of the feed are sent one by one."""

SEES = ("sessions_app.view_session", "sessions_app.view_event", "memories.view_memory")
PAGE = 100
IN_JSON = ("/api/", "/mcp", "/hooks/")

log = logging.getLogger(__name__)


class SignIn(LoginView):
    """The one sign-in page. It redirects signed-in users, and never to itself."""

    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with sign_in.turn() as mine:
            return super().post(request, *args, **kwargs) if mine else sign_in.refuse(request, sign_in.BUSY)

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        url = str(super().get_redirect_url())
        return "" if url.partition("?")[0] == self.request.path else url


@require_POST
def hide_demo_note(request: HttpRequest) -> HttpResponse:
    """Hide the note on the demo for this browser session."""
    return _hidden(request, DEMO_NOTE_HIDDEN)


@require_POST
def hide_first_day(request: HttpRequest) -> HttpResponse:
    """Hide the first steps of an empty installation for this browser session."""
    return _hidden(request, first_day.HIDDEN)


def _hidden(request: HttpRequest, key: str) -> HttpResponse:
    request.session[key] = True
    if request.headers.get("HX-Request"):
        return HttpResponse("")
    back = request.POST.get("next", "")
    allowed = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(back if allowed else reverse("overview"))


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer for an error that nothing else caught: in the sentence of the outage behind it, else 500."""
    cause = outage.behind(sys.exc_info()[1])
    if cause is None:
        return defaults.server_error(request)
    log.error("%s %s failed: %s", request.method, request.path, cause.message)
    response: HttpResponse = api.unavailable(cause)
    if not request.path.startswith(IN_JSON):  # without the context of pages, which asks the database
        response.content = render_to_string("outage.html", {"outage": cause})
        response["Content-Type"] = "text/html; charset=utf-8"
    response._has_been_logged = True  # type: ignore[attr-defined]  # Django would log a traceback for every poll
    return response


def _pieces(request: HttpRequest, shown: changes.Snapshot) -> dict[str, str]:
    context = {
        "overview": shown.figures,
        "agents": shown.agents,
        "health": shown.health,
        "silence": shown.silence,
    }
    numbers = charts.numbers(_range(request), shown.state, shown.figures.cost_today)
    drawn = {"charts": charts.html(numbers, shown.figures.memories["active"])}
    return {name: drawn.get(name) or render_to_string(f"overview/_{name}.html", context, request) for name in PIECES}


def _range(request: HttpRequest) -> Range:
    return range_of(request.GET.get("range"))


def _token(shown: changes.Snapshot, pieces: dict[str, str]) -> ChangeToken:
    return ChangeToken(shown.state, parts_of(pieces), {entry.key: entry.mark for entry in shown.entries})


def _feed_name(request: HttpRequest) -> str:
    """Return the kind of entries that the feed shows, of feed.NAMES; empty for all."""
    name = request.GET.get("feed", "")
    return name if name in feed.NAMES else ""


def _context(request: HttpRequest, shown: changes.Snapshot, pieces: dict[str, str]) -> dict[str, Any]:
    return {
        "health": shown.health,
        "pieces": pieces,
        "entries": shown.entries,
        "seen": _token(shown, pieces),
        "feed_name": _feed_name(request),
        "feed_names": feed.NAMES,
        "range": _range(request),
        "ranges": RANGES.values(),
    }


@page(SEES)
def overview(request: HttpRequest) -> HttpResponse:
    shown = changes.snapshot(_feed_name(request))
    context = _context(request, shown, _pieces(request, shown)) | {"first_day": first_day.first_day(request)}
    return render(request, "overview/overview.html", context)


@page(SEES)
def overview_charts(request: HttpRequest) -> JsonResponse:
    """Answer the numbers of the page's charts as JSON; `range` is 24h, 7d, 30d or 90d."""
    if request.GET.get("range", "24h") not in RANGES:
        return JsonResponse({"error": f"range is one of {', '.join(RANGES)}"}, status=400)
    shown = changes.snapshot()
    return JsonResponse(charts.as_json(charts.numbers(_range(request), shown.state, shown.figures.cost_today)))


@page(SEES)
def overview_fragment(request: HttpRequest) -> HttpResponse:
    """Answer the page's poll: 204 when the browser (`seen`) shows everything, so that nothing moves, else changes."""
    token = read_token(request.GET.get("seen", ""))
    if token.state == changes.state(_feed_name(request)):
        return HttpResponse(status=204)
    shown = changes.snapshot(_feed_name(request))
    pieces = _pieces(request, shown)
    context = _context(request, shown, pieces)
    if len(token.parts) != len(PIECES) or not token.rows or not shown.entries:
        # An empty feed has no row to insert beside.
        response = render(request, "overview/_overview.html", context)
        response["HX-Retarget"], response["HX-Reswap"] = "#overview", "outerHTML"
        return response
    context |= {"changed": changed_parts(token.parts, pieces), "news": feed.changes(token.rows, shown.entries)}
    return render(request, "overview/_news.html", context)


@page(SEES)
def feed_page(request: HttpRequest) -> HttpResponse:
    """Show one page of the feed, or the rows of one entry (`group`, `last`); `before` is where the page before ends."""
    try:
        before, head, last = (
            feed.read_place(request.GET[name]) if name in request.GET else None for name in ("before", "group", "last")
        )
    except ValueError:
        return HttpResponse("The place in the feed cannot be read.", status=400, content_type="text/plain")
    name = _feed_name(request)
    try:
        listing = (
            feed.members(head, last or head, before=before, most=PAGE)
            if head
            else feed.page(before=before, most=PAGE, name=name)
        )
    except LookupError:
        raise Http404("The entry is gone.") from None
    context = {
        "entries": feed.entries(listing.groups),
        "further": listing.further,
        "on_top": before is None,
        "is_group": head is not None,
        "feed_name": name,
        "feed_names": feed.NAMES,
    }
    return render(request, "overview/feed.html", context)
