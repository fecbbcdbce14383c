"""What the timeline on a session's page shows, by the address of the page; while it runs, its last calls."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import QueryDict

from sessions_app.log.entries import counts_of
from sessions_app.log.timeline import latest_calls, timeline_of
from sessions_app.models import Session
from sessions_app.web.forms import TimelineForm


def context(session: Session, query: QueryDict, now: datetime) -> dict[str, Any]:
    """Return the timeline, or with `timeline=errors` its errors, or with `start` the turns from that line on.

    The last calls are those of an open session. A query that cannot be read shows the whole timeline.
    `now` (UTC) is where the bars of what still runs end.
    """
    form = TimelineForm(query)
    given = form.cleaned_data if form.is_valid() else {}
    only_errors, start = given.get("timeline") == "errors", given.get("start") or 1
    counts = counts_of(session)
    timeline = timeline_of(session, counts, only_errors=only_errors, start=start, now=now)
    return {
        "timeline": timeline,
        "log_counts": counts,
        "latest_calls": latest_calls(session, now=now),
        "only_errors": only_errors,
        "start": start,
    }
