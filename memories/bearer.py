"""Bearer tokens on the routes of the API: authentication, required scopes, and the record of a token's use."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django_filters import BooleanFilter, Filter, FilterSet
from ninja.security import HttpBearer

from claudeops.lib.api_errors import FAULTS, TRUTHS, WITH_A_BODY, Problem, Refused
from memories.access import Access, access_of, note_use
from memories.models import Scope


class Bearer(HttpBearer):
    """`Authorization: Bearer SECRET`, with one of the scopes. Nothing else, such as a cookie, opens a route."""

    def __init__(self, *scopes: str) -> None:
        super().__init__()
        self.scopes = scopes

    def __call__(self, request: HttpRequest) -> Access:
        kind, _, secret = request.headers.get(self.header, "").partition(" ")
        if kind.lower() != self.openapi_scheme or not secret.strip():
            raise Refused(
                401,
                "no_token",
                "The API needs a bearer token; none was sent.",
                "Send the header Authorization: Bearer SECRET. Create one: manage.py token add NAME.",
            )
        return self.authenticate(request, secret.strip())

    def authenticate(self, request: HttpRequest, token: str) -> Access:
        access = access_of(token)
        if access is None:
            raise Refused(
                401,
                "unknown_token",
                "The token is unknown, revoked or expired.",
                "Create another one: manage.py token add NAME.",
            )
        request.auth = access  # type: ignore[attr-defined]  # records its use even without the scope
        if not any(access.may(scope) for scope in self.scopes):
            access.require(self.scopes[0])
        return access


def access_in(request: HttpRequest) -> Access:
    """Return the caller's access; only inside a route, after authentication."""
    access = request.auth  # type: ignore[attr-defined]
    if not isinstance(access, Access):
        raise TypeError("an API route without authentication")
    return access


def note_when_sent(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Record the token's use when the response is closed."""
    access = getattr(request, "auth", None)
    if isinstance(access, Access):
        response._resource_closers.append(partial(note_use, access))  # type: ignore[attr-defined]
    return response


def needs(
    scope: str,
    answer: Any,
    *,
    filters: type[FilterSet] | None = None,
    also: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    body: bool = False,
) -> dict[str, Any]:
    """Return the keyword arguments of a route: authentication, responses, and its parameters for OpenAPI.

    A route that needs another scope than `read` changes something, so it states what only such a route answers; `body`
    says that a reading one has a body too.
    """
    extra: dict[str, Any] = {"x-scope": str(scope)}
    if filters is not None or also or headers:
        extra["parameters"] = [
            *(_parameter(name, str(one.label or name), _allowed(one)) for name, one in _filters(filters).items()),
            *(_parameter(name, text) for name, text in (also or {}).items()),
            *(_parameter(name, text) | {"in": "header"} for name, text in (headers or {}).items()),
        ]
    answers = answer if isinstance(answer, dict) else {200: answer}
    faults = FAULTS if scope == Scope.READ and not body else FAULTS | WITH_A_BODY
    return {"auth": Bearer(scope), "response": {**answers, faults: Problem}, "openapi_extra": extra}


def _filters(filters: type[FilterSet] | None) -> dict[str, Any]:
    return dict(filters.base_filters) if filters is not None else {}


def _allowed(one: Filter) -> dict[str, Any]:
    """Return the choices of a filter for the document; those of rows in the database are not stated."""
    if isinstance(one, BooleanFilter):
        return {"enum": list(TRUTHS)}
    choices = one.extra.get("choices")
    return {"enum": [*(str(value) for value, _label in choices), ""]} if isinstance(choices, list | tuple) else {}


def _parameter(name: str, text: str, allowed: dict[str, Any] | None = None) -> dict[str, Any]:
    schema = {"type": "string"} | (allowed or {})
    return {"in": "query", "name": name, "required": False, "description": text, "schema": schema}
