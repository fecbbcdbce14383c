"""The front page and signing in. Thin; the numbers come from `claudeops.overview`."""

from __future__ import annotations

import hashlib

from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from claudeops import overview as overview_of


class SignIn(LoginView):
    """The one sign-in page. Who is signed in is sent on; nobody is sent round in a circle."""

    redirect_authenticated_user = True

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        """Where to go afterwards, as the address says; the sign-in page itself is no place to go."""
        url = str(super().get_redirect_url())
        return "" if url.partition("?")[0] == self.request.path else url


def _fragment(request: HttpRequest) -> tuple[SafeString, str]:
    """The fragment's content and what names it: the same content has the same name."""
    content = render_to_string("_overview_body.html", {"overview": overview_of.read()}, request)
    return content, hashlib.sha256(content.encode()).hexdigest()[:16]


@require_safe
@never_cache
def overview(request: HttpRequest) -> HttpResponse:
    """`/`: the whole page, with the fragment in it."""
    content, seen = _fragment(request)
    return render(request, "overview.html", {"content": content, "seen": seen})


@require_safe
@never_cache
def overview_fragment(request: HttpRequest) -> HttpResponse:
    """What the page asks for every few seconds: the fragment, or 204 when the browser (`seen`) has it already.

    Without an answer to swap in, nothing on the page moves: no flicker, and a selection or the focus stays.
    """
    content, seen = _fragment(request)
    if request.GET.get("seen") == seen:
        return HttpResponse(status=204)
    return render(request, "_overview.html", {"content": content, "seen": seen})
