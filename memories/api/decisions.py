"""`/api/decisions`: the decision records of projects, by the filters of their page."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from claudeops.lib.api_errors import check_names, narrowed
from memories.bearer import access_in, needs
from memories.library.decisions.filters import DecisionFilterSet, visible_decisions
from memories.library.decisions.index import with_successors
from memories.models import Scope

router = Router(tags=["decisions"])
MOST = 200


class DecisionOut(Schema):
    """A decision record. A title that the gate holds is empty."""

    project: str
    key: str = Field(description="Its number, or the name of a file without one.")
    title: str
    status: str = Field(
        description="proposed, accepted, shipped, superseded, deprecated, rejected; empty for another word."
    )
    date: date | None
    file: str = Field(description="Below the repository.")
    deciders: list[str]
    tags: list[str]
    supersedes: list[str]
    superseded_by: list[str]
    paths: list[str] = Field(description="Paths and globs that it governs.")
    holds_instead: str | None = Field(description="The key of the one that holds in place of one that does not.")


class DecisionsOut(Schema):
    decisions: list[DecisionOut]


@router.get(
    "/decisions",
    **needs(Scope.READ, DecisionsOut, filters=DecisionFilterSet),
    summary="Decision records by project and number, at most 200; `path` finds what governs a file",
)
def decisions(request: HttpRequest) -> dict[str, Any]:
    check_names(request, list(DecisionFilterSet.base_filters))
    filters = DecisionFilterSet(request.GET, queryset=visible_decisions(access_in(request)))
    rows = narrowed(filters).select_related("project").defer("text")
    return {"decisions": with_successors(list(rows.order_by("project__slug", "number", "name")[:MOST]))}
