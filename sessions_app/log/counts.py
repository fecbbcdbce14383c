"""Count a session's log entries by kind."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count

from sessions_app.models import LogEntry, LogKind, Session

MOST_COUNTED = 20_000
"""Entries that are counted by kind at most: reading those of a longer log takes too long for a page."""


@dataclass(frozen=True, slots=True)
class Counts:
    """`texts` and `results` are None for a log that is too long to be counted."""

    all: int
    texts: int | None
    calls: int
    results: int | None
    errors: int


def counts_of(session: Session) -> Counts:
    rows = LogEntry.objects.filter(session=session)
    errors = rows.filter(is_error=True).count()
    last = rows.order_by("-seq").values_list("seq", flat=True).first() or 0
    if last > MOST_COUNTED:
        return Counts(last, None, session.tool_calls, None, errors)
    kinds = dict(rows.order_by().values_list("kind").annotate(Count("seq")))
    calls, results = kinds.get(LogKind.TOOL_USE, 0), kinds.get(LogKind.TOOL_RESULT, 0)
    return Counts(sum(kinds.values()), kinds.get(LogKind.TEXT, 0), calls, results, errors)
