"""`/api/search`: memories, sessions, events, journal, decisions and skills at once, each kind apart."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from claudeops.lib.api_errors import Refused, check_names
from memories.bearer import access_in, needs
from memories.models import Scope
from sessions_app.queries.search import KINDS, search

router = Router(tags=["search"])


class FoundOut(Schema):
    """One row. A text that would not be told to an agent is left out."""

    title: str
    url: str = Field(description="Its permanent address on this server.")
    beside: str
    at: datetime | None


class KindOut(Schema):
    name: str
    count: int = Field(description="100 for as many or more.")
    hits: list[FoundOut]
    url: str


class SearchOut(Schema):
    kinds: list[KindOut]


@router.get(
    "/search",
    **needs(Scope.READ, SearchOut),
    summary="Search memories, sessions, events, journal, decisions and skills",
)
def find(
    request: HttpRequest,
    q: str = Query(..., min_length=1, max_length=200, description="Memories by recall, all else by every word."),
    kind: str = Query("", description=f"Only one of {', '.join(KINDS)}."),
    limit: int = Query(5, ge=1, le=20, description="Hits of a kind."),
) -> dict[str, Any]:
    check_names(request, ["q", "kind", "limit"])
    if kind and kind not in KINDS:
        raise Refused(422, "invalid_filter", f"kind is {kind!r}; allowed are {', '.join(KINDS)}.", field="kind")
    found = search(access_in(request), q, kinds=[kind] if kind else (), limit=limit, told=True)
    return {"kinds": [asdict(one) for one in found]}
