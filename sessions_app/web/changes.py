"""What a page shows already, as a short text: told back by the browser, so that only news is sent.

An event never changes once it is written; what is new is known by the highest number there is. A session has no
column that says when it changed, and needs none: the rows of one page are read by an index, and what is shown of them
is hashed. The token therefore covers everything the page shows and nothing else; it cannot miss a change, as a maximum
over a column could (a log imported for last year, a row deleted in the admin).
Rows in, texts out; reads one number.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memories.models import highest
from sessions_app.models import CooldownAction, CooldownClearance, Event, ServiceCheck, Session

SHOWN = (
    *("id", "status", "status_reason", "hold_reason", "summary", "cost_usd", "num_turns", "duration_ms", "dry_run"),
    *("stop_requested_by", "started_at", "ended_at", "tier", "trigger", "agent_id", "ingest_offset"),
)
"""The columns of a row that the list shows, the session's number first. How far its log was read stands for what is
counted on the way (a running session's tool calls)."""

Row = tuple[Any, ...]
"""The values of SHOWN, in that order."""

BETWEEN, WITHIN, STATED = "-", ".", "s"


def row_of(session: Session) -> Row:
    """What the list shows of a session."""
    return tuple(getattr(session, name) for name in SHOWN)


def mark(row: Row) -> str:
    """Eight characters that change with the row."""
    return f"{zlib.crc32(repr(row).encode()):08x}"


def token(rows: Iterable[Row]) -> str:
    """The rows of a page in order, each with its mark."""
    return BETWEEN.join(f"{row[0]}{WITHIN}{mark(row)}" for row in rows)


NEWEST = (
    f"SELECT {', '.join(SHOWN)} FROM {Session._meta.db_table} "  # noqa: S608  (our own names)
    "ORDER BY queued_at DESC, id DESC LIMIT %s"
)


def with_state(state: str, shown: str) -> str:
    """The token `shown` of the newest of all sessions with their state in front; an empty list has none."""
    return f"{STATED}{state}{BETWEEN}{shown}" if shown else ""


def state_of(text: str) -> str | None:
    """The state in front of a token; None without one."""
    return text.partition(BETWEEN)[0].removeprefix(STATED) if text.startswith(STATED) else None


def newest_state(most: int) -> str:
    """What the list shows of the newest sessions, in eight characters that every open list asks for.

    Past the ORM, which makes dates and decimals of what is only compared. Read before the rows themselves.
    """
    with connection.cursor() as cursor:
        cursor.execute(NEWEST, [most])
        return f"{zlib.crc32(repr(cursor.fetchall()).encode()):08x}"


def read(text: str) -> dict[int, str]:
    """The marks of a token by the number of the session; what is none is left out."""
    found: dict[int, str] = {}
    for part in text.split(BETWEEN):
        number, _, value = part.partition(WITHIN)
        if number.isdecimal() and len(number) < 20:
            found[int(number)] = value
    return found


@dataclass(frozen=True, slots=True)
class News:
    """What has to be done to a page that shows `seen` so that it shows other rows.

    `new` are rows to be put in, in order, each with the number of the row it stands behind (None: the first).
    """

    changed: list[Session]
    new: list[tuple[Session, int | None]]
    gone: list[int]


def news(seen: str, sessions: Sequence[Session]) -> News:
    """The difference between what a browser shows and the rows that are there now, in the same order."""
    known = read(seen)
    marks = {session.pk: mark(row_of(session)) for session in sessions}
    changed = [session for session in sessions if known.get(session.pk, marks[session.pk]) != marks[session.pk]]
    new: list[tuple[Session, int | None]] = []
    before: int | None = None
    for session in sessions:
        if session.pk not in known:
            new.append((session, before))
        before = session.pk
    return News(changed, new, [pk for pk in known if pk not in marks])


STATE = (
    *("status", "status_reason", "hold_reason", "ingest_offset", "cost_usd"),
    *("started_at", "ended_at", "stop_requested_by", "attempts", "coalesced"),
)
"""The columns of a session that change with whatever its ingest or its end writes."""


def state(session: int) -> str | None:
    """What the page of one session shows, but for its log, in eight characters; None where there is no such session.

    Read from its few columns that tell, and from the status of the sessions it escalated to.
    """
    columns = Session.objects.filter(pk=session).values_list(*STATE).first()
    if columns is None:
        return None
    below = Session.objects.filter(parent=session).order_by().values_list("pk", "status")
    return f"{zlib.crc32(repr((columns, sorted(below))).encode()):08x}"


def newest_event() -> int:
    """The highest number of an event, 0 without one: while it stands still there is nothing new."""
    return highest(Event)[0]


def event_token(newest: int, events: Iterable[Event]) -> str:
    """The highest number there was when the page was read, then the rows it shows."""
    return WITHIN.join(str(pk) for pk in (newest, *(event.pk for event in events)))


@dataclass(frozen=True, slots=True)
class EventNews:
    """What a page of events lacks: rows to be put in, in order, each with the row it stands behind; rows to go."""

    new: list[tuple[Event, int | None]]
    gone: list[int]


def event_news(seen: str, events: Sequence[Event]) -> EventNews:
    """The difference between the rows a browser shows and those of its page now.

    Told by the rows themselves, not by their numbers: of two writers at once the lower number may arrive last.
    """
    known = [int(part) for part in seen.split(WITHIN)[1:] if part.isdecimal() and len(part) < 20]
    new: list[tuple[Event, int | None]] = []
    before: int | None = None
    for event in events:
        if event.pk not in known:
            new.append((event, before))
        before = event.pk
    there = {event.pk for event in events}
    return EventNews(new, [pk for pk in known if pk not in there])


def cooldowns_written() -> str:
    """The highest numbers of what cooldowns are derived from: while they stand still only time changes anything."""
    return WITHIN.join(str(number) for number in highest(CooldownAction, CooldownClearance, ServiceCheck))


def cooldowns_token(written: str, until: datetime | None) -> str:
    """What was written when the page was read, and how long it stays as it is: until an action leaves its window."""
    return f"{written}{BETWEEN}{int(until.timestamp()) + 1 if until else ''}"


def cooldowns_unchanged(seen: str, at: datetime) -> bool:
    """Whether a page with this token shows what is so at `at` (UTC)."""
    written, _, until = seen.partition(BETWEEN)
    if until and not (until.isdecimal() and len(until) < 12 and at.timestamp() < int(until)):
        return False
    return written == cooldowns_written()
