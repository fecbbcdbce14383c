"""Find the sessions that went wrong for the same reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from memories.models import Memory
from sessions_app.models import CooldownAction, Event, ServiceCheck, Session
from sessions_app.queries.filters import GROUPS, WENT_WRONG

DAYS = 30
READ = 200
"""Sessions whose reason begins alike that are compared."""
SHOWN = 5
LONGEST = 300
"""Characters of a reason that are compared."""

ESCALATION = re.compile(
    r" ?(?:It asked for escalation, (?:but|which was not started)|Escalated to session \d+:).*", re.DOTALL
)
VARIES = re.compile(r"\b[0-9a-f]{8}(?:-?[0-9a-f]{4,12}){0,4}\b|\d+(?:[.,:]\d+)*", re.IGNORECASE)
"""What differs between equal failures: numbers, times, identifiers."""


@dataclass(frozen=True, slots=True)
class Equal:
    """The latest other sessions with an equal reason, queued within DAYS days; `count` is for people ("200+")."""

    rows: list[Session]
    count: str


def without_escalation(reason: str) -> str:
    """Return the reason without what became of a request for escalation, which is appended to it."""
    return ESCALATION.sub("", reason)


def normalised(reason: str) -> str:
    """Return the reason as it is compared: without numbers and identifiers, one line, at most LONGEST characters."""
    return " ".join(VARIES.sub("#", without_escalation(reason)).split())[:LONGEST]


def beginning(reason: str) -> str:
    """Return the part before the first number or identifier, which equal reasons have literally in common."""
    text = without_escalation(reason)
    match = VARIES.search(text)
    return text[: match.start() if match else LONGEST][:LONGEST]


def equal_to(session: Session) -> Equal:
    """Return what failed as `session` did, of any agent, within DAYS days of it; nothing for other statuses.

    Reads the status and the time through their index, and compares READ reasons at most.
    """
    if session.status not in GROUPS[WENT_WRONG] or not session.status_reason:
        return Equal([], "0")
    since = session.queued_at - timedelta(days=DAYS)
    rows = Session.objects.filter(
        status=session.status,
        queued_at__gte=since,
        queued_at__lte=session.queued_at + timedelta(days=DAYS),
        status_reason__startswith=beginning(session.status_reason),
    ).exclude(pk=session.pk)
    read = list(
        rows.order_by("-queued_at", "-id")
        .select_related("agent")
        .only("status", "status_reason", "queued_at", "started_at", "trigger", "requested_by", "agent__slug")[:READ]
    )
    reason = normalised(session.status_reason)
    sessions = [row for row in read if normalised(row.status_reason) == reason]
    return Equal(sessions[:SHOWN], f"{len(sessions)}+" if len(read) == READ else str(len(sessions)))


ROWS = 1_000
"""Latest rows of each kind that are read; a service with more of them is looked at for a shorter time."""
MOST = 1_000
"""Latest sessions that are returned."""


@dataclass(frozen=True, slots=True)
class ServiceSessions:
    """The ids of the sessions that were about a service, since when (aware UTC). `cut`: there may be earlier ones."""

    sessions: frozenset[int]
    since: datetime
    cut: bool


def sessions_about(service: str, *, since: datetime) -> ServiceSessions:
    """Return the sessions that were about `service` since a time.

    A session was about a service when it reported an event of it, checked its health, restarted or redeployed it, or
    created a memory of it. That it was told memories of the service says nothing: the prompt of every session names
    many services. Five queries, each of the latest ROWS of a part of an index.
    """
    pairs: set[tuple[int, datetime]] = set()
    start, cut = since, False
    for rows in _latest(service, since):
        pairs.update((session, at) for session, at in rows if session is not None)
        if len(rows) == ROWS:  # there may be more before the last of them
            start, cut = max(start, rows[-1][1]), True
    ids = {session for session, at in pairs if at >= start}
    if len(ids) > MOST:
        ids, cut = set(sorted(ids)[-MOST:]), True
        start = min(at for session, at in pairs if session in ids and at >= start)
    return ServiceSessions(frozenset(ids), start, cut)


def _latest(service: str, since: datetime) -> Iterator[list[tuple[int | None, datetime]]]:
    """Yield (session, time) of the rows of each kind, the latest first."""
    kinds = ((Event, "created_at"), (ServiceCheck, "checked_at"), (CooldownAction, "created_at"))
    for model, time in kinds:
        rows = model.objects.filter(**{"service": service, f"{time}__gte": since})
        yield list(rows.order_by(f"-{time}").values_list("session_id", time)[:ROWS])
    for active in (True, False):  # the index is by service and active, then by id
        memories = Memory.objects.filter(service=service, active__in=[active]).order_by("-pk")
        yield list(memories.values_list("session_id", "created_at")[:ROWS])
