"""Show times in the zone of the signed-in person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from claudeops.lib.preferences import models
from claudeops.lib.preferences.chosen import preference_of

COOKIE = "zone"
"""The browser's own zone, written by app.js; counts where the account has chosen none."""


def zone_of(request: HttpRequest) -> ZoneInfo | None:
    """Return the chosen zone, else the browser's; None (UTC) when neither names a zone."""
    return models.zone(preference_of(request.user).time_zone) or models.zone(request.COOKIES.get(COOKIE, ""))


class PersonMiddleware:
    """Activate the person's zone for each page that needs a signed-in account; all else (the API, probes) stays in UTC.

    Stands behind the check for staff.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with timezone.override(None):  # a thread serves one person after another
            return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: Any, view_kwargs: Any
    ) -> None:
        if getattr(view_func, "login_required", True) and (zone := zone_of(request)) is not None:
            timezone.activate(zone)
