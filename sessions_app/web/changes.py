"""The change tokens of the pages of sessions, events and cooldowns.

A session has no column that says when it changed, so the columns shown are hashed. Of an event
a person may change whether it is acknowledged. Cooldowns are derived from three append-only tables and from the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import connection
from django.db.models import QuerySet

from claudeops.lib.change_token import Changes, ChangeToken, changes_of, hash_of
from memories.models import highest
from sessions_app.models import CooldownAction, CooldownClearance, Event, ServiceCheck, Session

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


def key_of(row: Session | Event) -> str:
    return str(row.pk)


def mark_of(session: Session) -> str:
    return hash_of([getattr(session, name) for name in SHOWN])


def list_state(rows: QuerySet[Session], size: int) -> str:
    """Hash the columns that `size` rows of the list show, in one query. Call it before reading the rows."""
    return hash_of(list(rows.values_list(*SHOWN))[:size])


def list_token(state: str, sessions: Iterable[Session]) -> str:
    return str(ChangeToken(state, rows={key_of(session): mark_of(session) for session in sessions}))


def list_changes(seen: ChangeToken, sessions: list[Session], kept: Iterable[Session] = ()) -> Changes[Session]:
    return changes_of(seen.rows, sessions, key_of, mark_of, kept=kept)


def page_state(session: int) -> str | None:
    """Hash what the page of one session shows besides its log; None when there is no such session."""
    columns = Session.objects.filter(pk=session).values_list(*OPEN_PAGE).first()
    if columns is None:
        return None
    below = Session.objects.filter(parent=session).order_by().values_list("pk", "status")
    return hash_of((columns, sorted(below)))


def events_state() -> str:
    """Return the highest id, and a hash of when one was last acknowledged or reopened: two looks into indexes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT MAX(id) FROM events), (SELECT MAX(touched_at) FROM events WHERE touched_at IS NOT NULL)"
        )
        last, touched = cursor.fetchone()
    return f"{last or 0}.{hash_of(touched)}"


def event_mark(event: Event) -> str:
    return hash_of(event.acknowledged_at) if event.acknowledged_at else ""


def events_token(state: str, events: Iterable[Event]) -> str:
    return str(ChangeToken(state, rows={key_of(event): event_mark(event) for event in events}))


def events_changes(seen: ChangeToken, events: list[Event], kept: Iterable[Event] = ()) -> Changes[Event]:
    return changes_of(seen.rows, events, key_of, event_mark, kept=kept)


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
