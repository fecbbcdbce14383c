"""Routes of recall with a trace: `POST /api/recall` and `GET /api/memories/search`."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from claudeops.lib.api_errors import check_names
from memories.api import shapes
from memories.bearer import access_in, needs
from memories.models import Scope
from memories.recall.service import Question, as_data, ask

router = Router(tags=["recall"])


@router.post("/recall", **needs(Scope.READ, shapes.RecallOut, body=True), summary="Recall")
def recall(request: HttpRequest, given: shapes.RecallIn) -> dict[str, Any]:
    """Limited to what the token may see. Query and hits are recorded."""
    return _answer(request, given.query, given)


@router.get("/memories/search", **needs(Scope.READ, shapes.RecallOut), summary="Recall by GET")
def search(request: HttpRequest, given: Query[shapes.SearchIn]) -> dict[str, Any]:
    """The same as POST /api/recall; tags may be given several times."""
    check_names(request, shapes.SearchIn.model_fields)
    return _answer(request, given.q, given)


def _answer(request: HttpRequest, query: str, params: shapes.Asked) -> dict[str, Any]:
    values = {name: getattr(params, name) for name in shapes.Asked.model_fields}
    values |= {"tags": tuple(params.tags), "include": tuple(params.include)}
    return as_data(ask(access_in(request), Question(query, **values), "api"))
