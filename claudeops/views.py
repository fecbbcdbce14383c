"""The front page, the feed and signing in. Thin; what they show comes from `overview`, `condition` and `feed`."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from claudeops.overview import changes, feed, health
from claudeops.overview import figures as overview_of

PIECES = ("figures", "running", "queued", "failed", "next", "health")
"""The parts of the front page that change, each with a fragment and an element of its own. The feed is another: its
entries come and go one by one."""

SEES = ("sessions_app.view_session", "sessions_app.view_event", "memories.view_memory")
BETWEEN = "-"
LONGEST_SEEN = 2000
PAGE = 100


class SignIn(LoginView):
    """The one sign-in page. Who is signed in is sent on; nobody is sent round in a circle."""

    redirect_authenticated_user = True

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        """Where to go afterwards, as the address says; the sign-in page itself is no place to go."""
        url = str(super().get_redirect_url())
        return "" if url.partition("?")[0] == self.request.path else url


@dataclass(frozen=True, slots=True)
class _Shown:
    """The front page as it is at a moment: `seen` is what a browser that shows it tells back."""

    pieces: dict[str, SafeString]
    places: list[feed.Place]
    seen: str

    def context(self) -> dict[str, Any]:
        return {"pieces": self.pieces, "entries": feed.entries(self.places), "seen": self.seen}


def _shown(request: HttpRequest, mark: str, at: datetime) -> _Shown:
    context = {"overview": overview_of.read(at=at), "condition": health.read(at)}
    pieces = {name: render_to_string(f"overview/_{name}.html", context, request) for name in PIECES}
    places = feed.newest()
    marks = (f"{zlib.crc32(text.encode()):08x}" for text in pieces.values())
    return _Shown(pieces, places, BETWEEN.join([mark, *marks, feed.token(places)]))


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def overview(request: HttpRequest) -> HttpResponse:
    """`/`: the whole page."""
    now = timezone.now()
    return render(request, "overview/overview.html", _shown(request, changes.mark(now), now).context())


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def overview_fragment(request: HttpRequest) -> HttpResponse:
    """What the page asks for every few seconds: 204 when the browser (`seen`) shows it all, else what changed.

    Without an answer to swap in, nothing on the page moves: no flicker, and a selection or the focus stays.
    """
    now = timezone.now()
    mark = changes.mark(now)
    known = request.GET.get("seen", "")[:LONGEST_SEEN].split(BETWEEN)
    if known[0] == mark:
        return HttpResponse(status=204)
    shown = _shown(request, mark, now)
    if len(known) != len(PIECES) + 2 or not known[-1] or not shown.places:
        # From or to an empty feed there is no place to keep.
        response = render(request, "overview/_overview.html", shown.context())
        response["HX-Retarget"], response["HX-Reswap"] = "#overview", "outerHTML"
        return response
    marks = zip(PIECES, shown.seen.split(BETWEEN)[1:-1], known[1:-1], strict=True)
    changed = {name: shown.pieces[name] for name, new, old in marks if new != old}
    context = {"seen": shown.seen, "changed": changed, "news": feed.news(known[-1], shown.places)}
    return render(request, "overview/_news.html", context)


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def feed_page(request: HttpRequest) -> HttpResponse:
    """`/feed`: all of it, a page at a time; `before` is the place of the entry that ended the page before."""
    try:
        before = feed.read_place(request.GET["before"]) if "before" in request.GET else None
    except ValueError:
        return HttpResponse("The place in the feed cannot be read.", status=400, content_type="text/plain")
    found = feed.places(before=before, most=PAGE + 1)
    further = found[PAGE - 1] if len(found) > PAGE else None
    context = {"entries": feed.entries(found[:PAGE]), "further": further, "on_top": before is None}
    return render(request, "overview/feed.html", context)
