"""Let only signed-in staff see pages, and show a person on the overview at once what that person has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from claudeops.features.overview import changes


class StaffOnlyMiddleware(LoginRequiredMiddleware):
    """Refuse non-staff on every view that is not marked `login_not_required`.

    A signed-out browser is redirected to the sign-in page; htmx gets 403, so that no table shows the sign-in page.
    """

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        if not getattr(view_func, "login_required", True):
            return None
        if not request.user.is_authenticated:
            if request.headers.get("HX-Request") == "true":
                return HttpResponse("Signed out. Reload the page to sign in.", status=403, content_type="text/plain")
            return super().process_view(request, view_func, view_args, view_kwargs)
        if not request.user.is_staff:
            raise PermissionDenied("This account is not marked as staff.")
        return None


class FreshOverviewMiddleware:
    """Drop this process's snapshot of the overview after a signed-in person has sent a form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method == "POST" and settings.SESSION_COOKIE_NAME in request.COOKIES:
            changes.forget()
        return response
