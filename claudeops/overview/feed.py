"""The feed: events, memory changes, starts and ends of sessions, newest first. Decay and expiry are left out.

The `key` of an entry is a letter for its source and the id of its row, like e12. Its `place` is its unique sort key:
time, source and id.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import Model, QuerySet

from claudeops.lib import times
from claudeops.lib.change_token import Changes, changes_of
from memories.models import MemoryChange
from sessions_app.models import Event, Session

SIZE = 30
BETWEEN = "~"
KEY = re.compile(r"([esmd])([1-9][0-9]{0,17})\Z")


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of one kind. At the same time a higher `rank` is newer: a session starts, reports its events, then ends."""

    letter: str
    rank: int
    model: type[Model]
    at: str

    def rows(self) -> QuerySet[Any]:
        if self.model is MemoryChange:
            return MemoryChange.objects.said()
        return self.model._default_manager.filter(**{f"{self.at}__isnull": False})


BEGUN = Source("s", 0, Session, "started_at")
EVENT = Source("e", 1, Event, "created_at")
CHANGE = Source("m", 2, MemoryChange, "at")
ENDED = Source("d", 3, Session, "ended_at")
SOURCES = {source.letter: source for source in (BEGUN, EVENT, CHANGE, ENDED)}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The position of an entry; a greater place is newer."""

    at: datetime
    rank: int
    pk: int
    letter: str

    @property
    def key(self) -> str:
        return f"{self.letter}{self.pk}"

    def __str__(self) -> str:
        return f"{self.at.isoformat()}{BETWEEN}{self.key}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the feed. `row` is a Session, Event or MemoryChange."""

    place: Place
    row: Any

    @property
    def key(self) -> str:
        return self.place.key

    @property
    def at(self) -> datetime:
        return self.place.at

    @property
    def kind(self) -> str:
        return {"s": "begun", "d": "ended", "e": "event", "m": "memory"}[self.place.letter]

    @property
    def observation(self) -> str:
        """The memory's text after the change; of a deleted memory, the text before."""
        change: MemoryChange = self.row
        known = change.memory.observation if change.memory else ""
        return str(change.after.get("observation") or known or change.before.get("observation") or "")


def read_place(text: str) -> Place:
    """Parse a place. Raises ValueError."""
    time, between, key = text.rpartition(BETWEEN)
    found = KEY.match(key)
    if not between or not found:
        raise ValueError(text)
    letter, pk = found.groups()
    return Place(times.parse(time), SOURCES[letter].rank, int(pk), letter)


def places(*, before: Place | None = None, most: int = SIZE) -> list[Place]:
    """Return the newest `most` places, or those just older than `before`, with one query a source."""
    found = [_newest(source, before, most) for source in SOURCES.values()]
    return list(islice(heapq.merge(*found, reverse=True), most))


def _newest(source: Source, before: Place | None, most: int) -> list[Place]:
    rows = source.rows()
    if before is not None:
        rows = rows.filter(**{f"{source.at}__{'lte' if source.rank <= before.rank else 'lt'}": before.at})
        if source.rank == before.rank:
            rows = rows.exclude(**{source.at: before.at}, pk__gte=before.pk)
    found = rows.order_by(f"-{source.at}", "-pk").values_list(source.at, "pk")[:most]
    return [Place(at, source.rank, pk, source.letter) for at, pk in found]


def entries(wanted: Iterable[Place]) -> list[Entry]:
    """Load the entries at these places, in their order, with one query a source. Deleted rows are left out."""
    wanted = list(wanted)
    rows: dict[str, Any] = {}
    for source in SOURCES.values():
        ids = [place.pk for place in wanted if place.letter == source.letter]
        rows |= {f"{source.letter}{row.pk}": row for row in _rows(source, ids)} if ids else {}
    return [Entry(place, rows[place.key]) for place in wanted if place.key in rows]


def _rows(source: Source, ids: Sequence[int]) -> Iterable[Any]:
    if source is CHANGE:
        shown = ("kind", "before", "after", "reason", "actor", "memory__observation", "memory__service")
        return MemoryChange.objects.filter(pk__in=ids).select_related("memory").only(*shown, "memory__category")
    if source is EVENT:
        events = Event.objects.filter(pk__in=ids).select_related("session__agent")
        return events.only("level", "service", "message", "session__id", "session__agent__slug")
    sessions = Session.objects.filter(pk__in=ids).select_related("agent")
    return sessions.only("status", "status_reason", "summary", "tier", "trigger", "dry_run", "agent__slug")


def changes(known: Mapping[str, str], entries: Sequence[Entry]) -> Changes[Entry]:
    return changes_of(known, entries, lambda entry: entry.key)
