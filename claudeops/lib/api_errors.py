"""Errors and pages of a JSON API: refusals with code, message and fix, checked parameters, keyset pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django_filters import BooleanFilter, FilterSet
from ninja import Schema
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, ConfigDict, Field, field_validator

from claudeops.lib import times

SIZE = 50
BETWEEN = "~"
TRUTHS = ("true", "false", "")


class Refused(Exception):
    """An error response. `code` is stable, `message` is for people, `fix` says what to do.

    `fields` says by the name of a field or parameter what is wrong with it; `field` names the one that is.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        fix: str = "",
        *,
        field: str = "",
        fields: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.fix = status, code, fix
        self.fields = dict(fields or ({field: message} if field else {}))


class Given(Schema):
    """A request body. Unknown fields are refused: a misspelt one would be ignored."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="after")
    @classmethod
    def without_nul(cls, value: Any) -> Any:
        """Refuse NUL characters, which PostgreSQL cannot store."""
        texts = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise ValueError("a NUL character is not allowed")
        return value


def _no_text(value: Any) -> Any:
    """Refuse texts and truth values as numbers, which pydantic would convert: the document says number."""
    if isinstance(value, str | bool):
        raise ValueError("a number is needed")
    return value


def _iso(value: Any) -> Any:
    """Refuse numbers as times, which pydantic would read as seconds since 1970."""
    if not isinstance(value, str) or "-" not in value[1:]:
        raise ValueError("a time like 2026-12-31T00:00:00Z is needed")
    return value


def _utc(value: datetime) -> datetime:
    """Tell an aware time in UTC. Refuses one that would lie outside of the years 1 to 9999 there."""
    return times.in_utc(value) if value.tzinfo else value


Whole = Annotated[int, BeforeValidator(_no_text)]
Number = Annotated[float, BeforeValidator(_no_text)]
Moment = Annotated[datetime, BeforeValidator(_iso), AfterValidator(_utc)]
AwareMoment = Annotated[AwareDatetime, BeforeValidator(_iso), AfterValidator(_utc)]
Id = Annotated[Whole, Field(ge=1, le=2**63 - 1)]


class Fault(Schema):
    code: str = Field(examples=["memory_not_found"])
    message: str
    fields: dict[str, str] = Field({}, description="What is wrong, by the name of the field or parameter.")
    current: dict[str, Any] = Field({}, description="409: what is stored now.")


class Problem(Schema):
    """The body of every error. `fields`, `current` and `fix` are left out where there is nothing to say."""

    error: Fault
    fix: str = Field("", description="What to do.")


FAULTS = frozenset({401, 403, 404, 422, 500, 503, 507})
"""What any route may answer: 404 for what the caller may not see, 503 for a database
that is locked, away or damaged (`Retry-After` says when to try again), 507 for a full disk."""

WITH_A_BODY = frozenset({400, 409, 413})
"""What a route may also answer that changes something."""


def check_names(request: HttpRequest, known: Collection[str]) -> None:
    """Raise Refused for an unknown query parameter."""
    for name in request.GET:
        if name not in known:
            raise Refused(
                422,
                "unknown_parameter",
                f"{name!r} is not a parameter of this route.",
                f"Allowed are: {', '.join(sorted(known))}.",
                field=name,
            )


def narrowed(filters: FilterSet) -> QuerySet[Any]:
    """Return the matching rows. Raises Refused, which names the filter, for an invalid value."""
    if not filters.is_valid():
        name, errors = next(iter(filters.errors.items()))
        value = filters.data.get(name, "")
        message = f"{name} is {value!r}: {errors[0]}"
        raise Refused(422, "invalid_filter", message, "See the filters at /api/docs.", field=name)
    for name, one in filters.filters.items():  # Django's form takes any other word for "any"
        if isinstance(one, BooleanFilter) and filters.data.get(name, "") not in TRUTHS:
            message = f"{name} is {filters.data[name]!r}; allowed is true or false."
            raise Refused(422, "invalid_filter", message, "See the filters at /api/docs.", field=name)
    rows: QuerySet[Any] = filters.qs
    return rows


def page_of(rows: QuerySet[Any], column: str, after: str) -> tuple[list[Any], str]:
    """Return up to SIZE rows, latest first by a time column, and the next cursor or "". Raises Refused."""
    rows = rows.order_by(f"-{column}", "-pk")
    if after:
        moment, _, pk = after.rpartition(BETWEEN)
        try:
            value = times.parse(moment)
            if not pk.isdecimal() or len(pk) > 18:
                raise ValueError(after)
        except ValueError:
            message = f"after is {after!r}."
            raise Refused(422, "invalid_place", message, "Send the value of `next` unchanged.", field="after") from None
        rows = rows.filter(**{f"{column}__lte": value})  # lets the index skip to the cursor
        rows = rows.filter(Q(**{f"{column}__lt": value}) | Q(pk__lt=int(pk)))
    batch = list(rows[: SIZE + 1])
    shown = batch[:SIZE]
    if len(batch) <= SIZE:
        return shown, ""
    return shown, f"{getattr(shown[-1], column).isoformat()}{BETWEEN}{shown[-1].pk}"
