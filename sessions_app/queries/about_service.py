"""Find the sessions that were about a service, by what is stored of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from memories.models import Memory
from sessions_app.models import CooldownAction, Event, ServiceCheck

ROWS = 1_000
"""Latest rows of each kind that are read; a service with more of them is looked at for a shorter time."""
MOST = 1_000
"""Latest sessions that are returned."""


@dataclass(frozen=True, slots=True)
class About:
    """The ids of the sessions that were about a service, since when (aware UTC). `cut`: there may be earlier ones."""

    sessions: frozenset[int]
    since: datetime
    cut: bool


def about(service: str, *, since: datetime) -> About:
    """Return the sessions that were about `service` since a time.

    A session was about a service when it reported an event of it, checked its health, restarted or redeployed it, or
    created a memory of it. That it was told memories of the service says nothing: the prompt of every session names
    many services. Five queries, each of the latest ROWS of a part of an index.
    """
    found: set[tuple[int, datetime]] = set()
    start, cut = since, False
    for rows in _latest(service, since):
        found.update((session, at) for session, at in rows if session is not None)
        if len(rows) == ROWS:  # there may be more before the last of them
            start, cut = max(start, rows[-1][1]), True
    ids = {session for session, at in found if at >= start}
    if len(ids) > MOST:
        ids, cut = set(sorted(ids)[-MOST:]), True
        start = min(at for session, at in found if session in ids and at >= start)
    return About(frozenset(ids), start, cut)


def _latest(service: str, since: datetime) -> Iterator[list[tuple[int | None, datetime]]]:
    """Yield (session, time) of the rows of each kind, the latest first."""
    kinds = ((Event, "created_at"), (ServiceCheck, "checked_at"), (CooldownAction, "created_at"))
    for model, time in kinds:
        rows = model.objects.filter(**{"service": service, f"{time}__gte": since})
        yield list(rows.order_by(f"-{time}").values_list("session_id", time)[:ROWS])
    for active in (True, False):  # the index is by service and active, then by id
        memories = Memory.objects.filter(service=service, active__in=[active]).order_by("-pk")
        yield list(memories.values_list("session_id", "created_at")[:ROWS])
