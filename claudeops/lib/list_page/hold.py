"""New rows of a list are held back while a person uses it (list.js asks with `hold`), and are said as "3 new"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest

from claudeops.lib.change_token import Changes, ChangeToken, Row, hold_new


def known_ids(seen: ChangeToken) -> list[int]:
    """Return the ids of the rows that the browser shows."""
    return [int(key) for key in seen.rows if key.isdecimal() and len(key) < 19]


def holds(request: HttpRequest, changes: Changes[Any]) -> bool:
    return "hold" in request.GET and bool(changes.new)


def pushed_off(rows: QuerySet[Any], changes: Changes[Any]) -> list[Any]:
    """Return those of the rows that have left the page which still match: while new ones are held, they stay."""
    return list(rows.filter(pk__in=[int(key) for key in changes.gone if key.isdecimal()]))


def held(
    request: HttpRequest,
    seen: ChangeToken,
    state: str,
    changes: Changes[Row],
    key_of: Callable[[Row], str],
    mark_of: Callable[[Row], str] = lambda row: "",
) -> dict[str, Any]:
    """Return the variables of an answer without the new rows: `news`, `seen`, and those of `list/_held.html`.

    The button asks with a token without a state, which is never up to date.
    """
    news, token = hold_new(seen, state, changes, key_of, mark_of)
    asked = {name: value for name, value in request.GET.items() if name not in ("hold", "seen")}
    again = ChangeToken(rows=token.rows)
    return {
        "news": news,
        "seen": str(token),
        "held": len(changes.new),
        "held_query": urlencode({**asked, "seen": str(again)}),
    }
