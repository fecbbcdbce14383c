"""`/mcp`: MCP over streamable HTTP, behind a bearer token that sets the model's scopes and project."""

from __future__ import annotations

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from claudeops.lib.api_errors import Refused
from memories.bearer import Bearer, note_when_sent
from memories.errors import AccessDenied
from memories.models import Scope

PASSED = ("content-type", "accept")
PASSED_PREFIX = "mcp-"


@csrf_exempt  # no browser sends a bearer token by itself
@login_not_required
def mcp(request: HttpRequest) -> HttpResponse:
    """Answer one JSON-RPC message by POST. There is no stream (GET) and no session to end (DELETE)."""
    if request.method != "POST":
        refused = _refused(405, "method_not_allowed", "Send JSON-RPC messages by POST.")
        refused["Allow"] = "POST"
        return refused
    try:
        access = Bearer(Scope.READ, Scope.WRITE)(request)
    except Refused as error:
        refused = _refused(error.status, error.code, f"{error} {error.fix}")
        refused["WWW-Authenticate"] = 'Bearer realm="claudeops"'
        return refused
    except AccessDenied as error:
        return note_when_sent(request, _refused(403, error.code, f"{error} {error.fix}"))
    from sessions_app.mcp.http import answer  # here, because it takes a second, and most processes serve no MCP

    headers = [(name.lower(), value) for name, value in request.headers.items()]
    passed = [(name, value) for name, value in headers if name in PASSED or name.startswith(PASSED_PREFIX)]
    status, response_headers, body = async_to_sync(answer)(access, passed, request.body)
    response = HttpResponse(body, status=status, content_type="text/plain")
    for name, value in response_headers:
        if name.lower() != "content-length":
            response[name] = value
    response["Cache-Control"] = "no-store"
    return note_when_sent(request, response)


def _refused(status: int, code: str, message: str) -> JsonResponse:
    return JsonResponse({"error": {"code": code, "message": message}, "fix": "See docs/api.md on MCP."}, status=status)
