"""The change tokens of the pages of sessions and cooldowns.

A session has no column that says when it changed, so the columns shown are hashed. Cooldowns are derived from three
append-only tables and from the time.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from claudeops.lib.change_token import hash_of
from memories.models import highest
from sessions_app.models import CooldownAction, CooldownClearance, ServiceCheck, Session

SHOWN = (
    *("id", "status", "status_reason", "hold_reason", "summary", "cost_usd", "num_turns", "duration_ms", "dry_run"),
    *("stop_requested_by", "started_at", "ended_at", "tier", "trigger", "agent_id", "ingest_offset"),
)
"""The columns that a row of the list shows. The ingest offset stands for a running session's counters."""

OPEN_PAGE = (
    *("status", "status_reason", "hold_reason", "ingest_offset", "cost_usd"),
    *("started_at", "ended_at", "stop_requested_by", "attempts", "coalesced"),
)
"""The columns of a session that change with whatever its ingest or its end writes."""


def mark_of(session: Session) -> str:
    return hash_of([getattr(session, name) for name in SHOWN])


def list_state(rows: QuerySet[Session], size: int) -> str:
    """Hash the columns that `size` rows of the list show, in one query. Call it before reading the rows."""
    return hash_of(list(rows.values_list(*SHOWN))[:size])


def page_state(session: int) -> str | None:
    """Hash what the page of one session shows besides its log; None when there is no such session."""
    columns = Session.objects.filter(pk=session).values_list(*OPEN_PAGE).first()
    if columns is None:
        return None
    below = Session.objects.filter(parent=session).order_by().values_list("pk", "status")
    return hash_of((columns, sorted(below)))


def cooldowns_state() -> str:
    """Return the highest ids of what cooldowns are derived from; otherwise only time changes them."""
    return ".".join(str(pk) for pk in highest(CooldownAction, CooldownClearance, ServiceCheck))


def cooldowns_token(state: str, until: datetime | None) -> str:
    """Build the page's token; `until` is when the next action leaves its window."""
    return f"{state}-{int(until.timestamp()) + 1 if until else ''}"


def cooldowns_unchanged(seen: str, at: datetime) -> bool:
    state, _, until = seen.partition("-")
    if until and not (until.isdecimal() and len(until) < 12 and at.timestamp() < int(until)):
        return False
    return state == cooldowns_state()
