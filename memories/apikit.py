"""What the routes of the API share: the bearer token, the filters of an address, pages, and how a refusal reads.

A surface's helper, as `adminkit` is for the admin: knows requests and django-ninja, and no model of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django_filters import FilterSet
from ninja import Schema
from ninja.security import HttpBearer
from pydantic import ConfigDict, Field, field_validator

from memories.access import Access, access_of, note_use

SIZE = 50
BETWEEN = "~"


class Refused(Exception):
    """What the API answers with `status`; `code` is stable, the text is for a person, `fix` says what to do."""

    def __init__(self, status: int, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.fix = status, code, fix


class Given(Schema):
    """What a caller sends. A field that nobody knows is refused: misspelt, it would be ignored in silence."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="after")
    @classmethod
    def without_nul(cls, value: Any) -> Any:
        """PostgreSQL stores no NUL character, and nobody means one."""
        texts = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise ValueError("a NUL character is not allowed")
        return value


Id = Annotated[int, Field(ge=1, le=2**63 - 1)]


class Fault(Schema):
    code: str = Field(examples=["memory_not_found"])
    message: str


class Problem(Schema):
    """Every refusal and every fault."""

    error: Fault
    fix: str


FAULTS = frozenset({400, 401, 403, 404, 409, 422})


class Bearer(HttpBearer):
    """`Authorization: Bearer SECRET`, with one of the scopes. Nothing else opens a route: no cookie does."""

    def __init__(self, *scopes: str) -> None:
        super().__init__()
        self.scopes = scopes

    def __call__(self, request: HttpRequest) -> Access:
        kind, _, secret = request.headers.get(self.header, "").partition(" ")
        if kind.lower() != self.openapi_scheme or not secret.strip():
            raise Refused(
                401,
                "no_token",
                "The API answers to a bearer token; none was sent.",
                "Send the header Authorization: Bearer SECRET. manage.py token add makes one.",
            )
        return self.authenticate(request, secret.strip())

    def authenticate(self, request: HttpRequest, token: str) -> Access:
        found = access_of(token)
        if found is None:
            raise Refused(401, "unknown_token", "The token is not known, or it was revoked.", "Ask for another one.")
        request.auth = found  # type: ignore[attr-defined]  # noted as used even where the scope is missing
        if not any(found.may(scope) for scope in self.scopes):
            found.require(self.scopes[0])
        return found


def access_in(request: HttpRequest) -> Access:
    """Who asks; only in a route, where the token was looked at."""
    access = request.auth  # type: ignore[attr-defined]
    if not isinstance(access, Access):
        raise TypeError("a route of the API without a token")
    return access


def note_when_sent(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response; when it is on its way, the token's use is written down."""
    access = getattr(request, "auth", None)
    if isinstance(access, Access):
        response._resource_closers.append(partial(note_use, access))  # type: ignore[attr-defined]
    return response


def needs(
    scope: str, answer: Any, *, filters: type[FilterSet] | None = None, also: dict[str, str] | None = None
) -> dict[str, Any]:
    """What a route declares: its scope, its answer, and in the document the filters that its address takes."""
    extra: dict[str, Any] = {"x-scope": str(scope)}
    if filters is not None or also:
        extra["parameters"] = [
            *(_parameter(name, str(field.label or name)) for name, field in _filters(filters).items()),
            *(_parameter(name, text) for name, text in (also or {}).items()),
        ]
    answers = answer if isinstance(answer, dict) else {200: answer}
    return {"auth": Bearer(scope), "response": {**answers, FAULTS: Problem}, "openapi_extra": extra}


def _filters(filters: type[FilterSet] | None) -> dict[str, Any]:
    return dict(filters.base_filters) if filters is not None else {}


def _parameter(name: str, text: str) -> dict[str, Any]:
    return {"in": "query", "name": name, "required": False, "description": text, "schema": {"type": "string"}}


def check_names(request: HttpRequest, known: Collection[str]) -> None:
    """Raises Refused for a parameter of the address that this route does not know."""
    for name in request.GET:
        if name not in known:
            raise Refused(
                422, "unknown_parameter", f"{name!r} is no parameter here.", f"Allowed are: {', '.join(sorted(known))}."
            )


def narrowed(filters: FilterSet) -> QuerySet[Any]:
    """The rows that match. Raises Refused, naming the filter, for a value it does not take."""
    if not filters.is_valid():
        name, errors = next(iter(filters.errors.items()))
        given = filters.data.get(name, "")
        raise Refused(
            422, "invalid_filter", f"{name} is {given!r}: {errors[0]}", "The API's document lists the filters."
        )
    rows: QuerySet[Any] = filters.qs
    return rows


def page_of(rows: QuerySet[Any], column: str, after: str) -> tuple[list[Any], str]:
    """Up to SIZE of `rows` by a time, latest first, from a place on; and the place of the page after, or "".

    Raises Refused for what is no place.
    """
    rows = rows.order_by(f"-{column}", "-pk")
    if after:
        moment, _, pk = after.rpartition(BETWEEN)
        try:
            value = datetime.fromisoformat(moment)
            if value.tzinfo is None or not pk.isdecimal() or len(pk) > 18:
                raise ValueError(after)
        except ValueError:
            raise Refused(422, "invalid_place", f"after is {after!r}.", "Send what `next` said, as it was.") from None
        rows = rows.filter(**{f"{column}__lte": value})  # what the index jumps to
        rows = rows.filter(Q(**{f"{column}__lt": value}) | Q(pk__lt=int(pk)))
    found = list(rows[: SIZE + 1])
    shown = found[:SIZE]
    if len(found) <= SIZE:
        return shown, ""
    return shown, f"{getattr(shown[-1], column).isoformat()}{BETWEEN}{shown[-1].pk}"
