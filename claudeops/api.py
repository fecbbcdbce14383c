"""Serve the API under `/api/`. Every route needs a bearer token; every error is JSON."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from claudeops import __version__
from claudeops.lib import outage
from claudeops.lib.api_errors import Refused
from claudeops.lib.domain_error import DomainError
from claudeops.lib.outage import Outage
from memories.api.decisions import router as decisions_router
from memories.api.journal import router as journal_router
from memories.api.memories import router as memories_router
from memories.api.projects import router as projects_router
from memories.api.proposals import router as proposals_router
from memories.api.recall import router as recall_router
from memories.api.serializers import as_data
from memories.api.transcripts import router as transcripts_router
from memories.bearer import note_when_sent
from memories.errors import Conflict
from memories.models import Memory
from sessions_app.api.alerts import router as alerts_router
from sessions_app.api.routes import router as sessions_router
from sessions_app.api.search import router as search_router

log = logging.getLogger(__name__)

DOCUMENT = "See /api/docs."
WRAPPERS = ("given", "generic")
"""Parts of pydantic's places that are no field: a route's argument, and the form of an alert that no monitor has."""

api = NinjaAPI(
    title="claudeops",
    version=__version__,
    description="What agents know and do. Bearer tokens; every error is {error: {code, message, fields?}, fix?}.",
    urls_namespace="api",
    openapi_url=None,  # claudeops/apidocs.py serves the document and its page
    docs_url=None,
)
# /memories/search before /memories/{id}
for router in (
    recall_router,
    memories_router,
    projects_router,
    transcripts_router,
    proposals_router,
    journal_router,
    decisions_router,
    search_router,
    sessions_router,
    alerts_router,
):
    api.add_router("", router)


def problem(
    status: int,
    code: str,
    message: str,
    fix: str = "",
    *,
    fields: Mapping[str, str] | None = None,
    current: Mapping[str, Any] | None = None,
) -> JsonResponse:
    """Return the response of an error, in the form of `Problem`; what is empty is left out."""
    more = {name: dict(value) for name, value in (("fields", fields), ("current", current)) if value}
    error = {"code": code, "message": message, **more}
    answer = JsonResponse({"error": error, "fix": fix} if fix else {"error": error}, status=status)
    if status == 401:
        answer["WWW-Authenticate"] = 'Bearer realm="claudeops"'
    return answer


def unavailable(found: Outage) -> JsonResponse:
    answer = problem(found.status, found.code, found.message, found.fix)
    if found.retry_after:
        answer["Retry-After"] = str(found.retry_after)
    return answer


def status_of(code: str) -> int:
    if code.endswith("_not_found"):
        return 404
    return {"forbidden": 403, "conflict": 409}.get(code, 422)


@api.exception_handler(Refused)
def refused(request: HttpRequest, error: Refused) -> HttpResponse:
    return problem(error.status, error.code, str(error), error.fix, fields=error.fields)


@api.exception_handler(DomainError)
def refused_below(request: HttpRequest, error: DomainError) -> HttpResponse:
    return problem(status_of(error.code), error.code, str(error), error.fix, fields=error.fields)


@api.exception_handler(Conflict)
def changed_meanwhile(request: HttpRequest, error: Conflict) -> HttpResponse:
    current = as_data(error.current) if isinstance(error.current, Memory) else error.current
    return problem(409, error.code, str(error), error.fix, current=current)


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    fields = {_place(one): one.get("msg", "it cannot be read") for one in reversed(error.errors)}
    place = _place(error.errors[0]) if error.errors else ""
    message = f"{place or 'the request'}: {fields.get(place, 'it cannot be read')}."
    named = {name: reason for name, reason in reversed(fields.items()) if name}
    return problem(422, "invalid_request", message, DOCUMENT, fields=named)


def _place(error: dict[str, Any]) -> str:
    """Return the name of the field that pydantic refuses, such as `ids.3`; "" for the whole body."""
    return ".".join(str(part) for part in error.get("loc", ())[1:] if part not in WRAPPERS)


@api.exception_handler(HttpError)
def unreadable(request: HttpRequest, error: HttpError) -> HttpResponse:
    if error.status_code == 400:
        if request.content_type and not request.content_type.endswith("json"):
            message = f"The body is {request.content_type[:80]}, and not JSON."
            return problem(415, "unsupported_media_type", message, f"Send JSON as application/json. {DOCUMENT}")
        return problem(400, "unreadable_body", "The body is not valid JSON.", f"Send JSON. {DOCUMENT}")
    return problem(error.status_code, "refused", str(error), DOCUMENT)


@api.exception_handler(Http404)
def not_there(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem(404, "not_found", "There is nothing here.", DOCUMENT)


@api.exception_handler(RequestDataTooBig)
def too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return problem(413, "too_big", "The body is too big.", "Send less at once.")


@api.exception_handler(Exception)
def fault(request: HttpRequest, error: Exception) -> HttpResponse:
    """Log the details of a bug and keep them from the caller."""
    if cause := outage.behind(error):
        log.error("%s %s failed: %s", request.method, request.path, cause.message)
        return unavailable(cause)
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem(500, "internal_error", "Something went wrong inside claudeops.", "The server's log has the details.")


def anything_else(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Answer 404 in JSON for every other path under /api/."""
    return problem(404, "not_found", f"There is nothing at {request.path}.", DOCUMENT)


def in_json(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap an API view: no sign-in, no CSRF check, 405 as JSON, the token's use recorded after the response."""

    @functools.wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if response.status_code == 405:
            allowed = response.headers["Allow"]
            response = problem(
                405, "method_not_allowed", f"{request.method} is not allowed here.", f"Allowed: {allowed}."
            )
            response["Allow"] = allowed
        note_when_sent(request, response)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    answer.login_required = False  # type: ignore[attr-defined]
    answer.csrf_exempt = True  # type: ignore[attr-defined]  # no browser sends a bearer token by itself
    return answer


def routes() -> list[URLPattern]:
    patterns = [pattern for pattern in api.urls[0] if isinstance(pattern, URLPattern)]
    for pattern in patterns:
        pattern.callback = in_json(anything_else if pattern.name == "api-root" else pattern.callback)
    return patterns
