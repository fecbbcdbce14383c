"""Accept PUT and DELETE from plain HTML forms (`_method`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, QueryDict

FIELD = "_method"
ALLOWED = ("PUT", "DELETE")
FORM = "application/x-www-form-urlencoded"


class MethodMiddleware:
    """Treat a POST with a field `_method` of PUT or DELETE as that method; its fields stay in `request.POST`.

    Fields of a real PUT or DELETE (htmx) are put into `request.POST` too. Another `_method` is refused: a misspelt
    DELETE must not become a creation. Runs after the CSRF check, which reads a POST's token from the form.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: Any, view_kwargs: Any
    ) -> HttpResponse | None:
        if getattr(view_func, "csrf_exempt", False):
            return None  # no browser's form: whoever asks with a token names the method, and the view reads the body
        if request.method == "POST":
            method = request.POST.get(FIELD)
            if method is None:
                return None
            if method not in ALLOWED:
                return HttpResponseBadRequest(f"{FIELD} must be PUT or DELETE.", content_type="text/plain")
            request.method = method
        elif request.method in ALLOWED and request.content_type == FORM:
            try:
                fields = QueryDict(request.body, encoding=request.encoding or "utf-8")
            except TooManyFieldsSent:
                return HttpResponseBadRequest("The form has too many fields.", content_type="text/plain")
            request.POST = fields
        return None
