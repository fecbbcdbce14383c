"""`POST /hooks/{event}`: the door of the CLI's hooks, behind a bearer token. It knows no cookies."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from memories.errors import AccessDenied
from sessions_app.errors import (
    HookFailed,
    HookTooBig,
    InvalidHook,
    SessionsError,
    TooManyHooks,
    UnknownCaller,
    UnknownHook,
)
from sessions_app.hooks import door
from sessions_app.runner.start_command import BY_AGENT

LARGEST = 2 * 1024 * 1024
"""Bytes of a body that is read."""

STATUSES = {
    UnknownCaller: 401,
    AccessDenied: 403,
    UnknownHook: 404,
    HookTooBig: 413,
    InvalidHook: 400,
    TooManyHooks: 429,
    HookFailed: 500,
}


@csrf_exempt  # no browser sends a bearer token by itself
@login_not_required
def hooks(request: HttpRequest, event: str) -> JsonResponse:
    """Answer a hook with JSON for the CLI, or with an error, which the CLI reports before it goes on."""
    if request.method != "POST":
        return JsonResponse(
            _error("method_not_allowed", "A hook is sent by POST.", ""), status=405, headers={"Allow": "POST"}
        )
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    try:
        reply = door.answer(
            event,
            secret.strip() if kind.lower() == "bearer" else "",
            lambda: _body(request),
            by_agent=BY_AGENT in request.headers,
        )
    except (SessionsError, AccessDenied) as error:
        return _refused(error)
    response = JsonResponse(reply.document) if reply.error is None else _refused(reply.error)
    response._resource_closers.append(reply.note)  # type: ignore[attr-defined]  # called when the response is sent
    return response


def _body(request: HttpRequest) -> bytes:
    """Return the body. Raises HookTooBig before it is read."""
    try:
        if int(request.headers.get("Content-Length") or 0) <= LARGEST:
            return request.body
    except (ValueError, RequestDataTooBig):
        pass
    raise HookTooBig(f"At most {LARGEST:,} bytes of a hook are read.")


def _refused(error: SessionsError | AccessDenied) -> JsonResponse:
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    headers = {"WWW-Authenticate": 'Bearer realm="claudeops"'} if status == 401 else {}
    return JsonResponse(_error(error.code, str(error), error.fix), status=status, headers=headers)


def _error(code: str, message: str, fix: str) -> dict[str, object]:
    return {"error": {"code": code, "message": message}, **({"fix": fix} if fix else {})}
