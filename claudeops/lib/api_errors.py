"""Errors and pages of a JSON API: refusals with code, message and fix, checked parameters, pages by a place in time.

Knows django-ninja and requests, and no model.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django_filters import FilterSet
from ninja import Schema
from pydantic import ConfigDict, Field, field_validator

SIZE = 50
BETWEEN = "~"


class Refused(Exception):
    """An error response with `status`; `code` is stable, the text is for a person, `fix` says what to do."""

    def __init__(self, status: int, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.fix = status, code, fix


class Given(Schema):
    """A request body. Unknown fields are refused: a misspelt one would be ignored silently."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="after")
    @classmethod
    def without_nul(cls, value: Any) -> Any:
        """PostgreSQL cannot store a NUL character."""
        texts = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise ValueError("a NUL character is not allowed")
        return value


Id = Annotated[int, Field(ge=1, le=2**63 - 1)]


class Fault(Schema):
    code: str = Field(examples=["memory_not_found"])
    message: str


class Problem(Schema):
    """The body of every error."""

    error: Fault
    fix: str


FAULTS = frozenset({400, 401, 403, 404, 409, 422})


def check_names(request: HttpRequest, known: Collection[str]) -> None:
    """Raises Refused for an unknown query parameter."""
    for name in request.GET:
        if name not in known:
            raise Refused(
                422,
                "unknown_parameter",
                f"{name!r} is not a parameter of this route.",
                f"Allowed are: {', '.join(sorted(known))}.",
            )


def narrowed(filters: FilterSet) -> QuerySet[Any]:
    """The rows that match. Raises Refused, which names the filter, for a value that is not allowed."""
    if not filters.is_valid():
        name, errors = next(iter(filters.errors.items()))
        given = filters.data.get(name, "")
        raise Refused(422, "invalid_filter", f"{name} is {given!r}: {errors[0]}", "See the filters at /api/docs.")
    rows: QuerySet[Any] = filters.qs
    return rows


def page_of(rows: QuerySet[Any], column: str, after: str) -> tuple[list[Any], str]:
    """Up to SIZE of `rows` by a time column, latest first, after a cursor; and the next page's cursor, or "".

    Raises Refused for an invalid cursor.
    """
    rows = rows.order_by(f"-{column}", "-pk")
    if after:
        moment, _, pk = after.rpartition(BETWEEN)
        try:
            value = datetime.fromisoformat(moment)
            if value.tzinfo is None or not pk.isdecimal() or len(pk) > 18:
                raise ValueError(after)
        except ValueError:
            raise Refused(422, "invalid_place", f"after is {after!r}.", "Send the value of `next` unchanged.") from None
        rows = rows.filter(**{f"{column}__lte": value})  # lets the index skip to the cursor
        rows = rows.filter(Q(**{f"{column}__lt": value}) | Q(pk__lt=int(pk)))
    found = list(rows[: SIZE + 1])
    shown = found[:SIZE]
    if len(found) <= SIZE:
        return shown, ""
    return shown, f"{getattr(shown[-1], column).isoformat()}{BETWEEN}{shown[-1].pk}"
