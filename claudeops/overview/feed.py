"""What happened, newest first: events, what became of memories, sessions that began and ended, in one order.

What time alone takes (decay, expiry) is no news. Reads only, from one index for each source; knows no request.

    key     names an entry: a letter for its source and the row's number, like e12
    place   where in the order an entry stands: its time, its source and its number; no two have the same
"""
# ruff: noqa: S608 - names of our own tables, put together once.

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet

from memories.models import MemoryChange, moment_of
from sessions_app.models import Event, Session

SIZE = 30
BETWEEN = "~"
KEY = re.compile(r"([esmd])([1-9][0-9]{0,17})\Z")


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of one kind. Of what happened at the same moment the higher `rank` is the newer: a session's end comes
    after what it said, and that after its begin."""

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
    """Where an entry stands; the greater place is the newer entry."""

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
    """One line of the feed: where it stands, and the row it tells of (a Session, Event or MemoryChange)."""

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
        """begun, ended, event or memory."""
        return {"s": "begun", "d": "ended", "e": "event", "m": "memory"}[self.place.letter]

    @property
    def observation(self) -> str:
        """What the memory said after the change; of a deleted one what it said before."""
        change: MemoryChange = self.row
        known = change.memory.observation if change.memory else ""
        return str(change.after.get("observation") or known or change.before.get("observation") or "")


def read_place(text: str) -> Place:
    """Raises ValueError for what is no place."""
    time, between, key = text.rpartition(BETWEEN)
    found = KEY.match(key)
    if not between or not found:
        raise ValueError(text)
    at = datetime.fromisoformat(time)
    if at.tzinfo is None:
        raise ValueError(text)
    letter, pk = found.groups()
    return Place(at, SOURCES[letter].rank, int(pk), letter)


# The newest entries of each source. The condition of the memories' changes is the one of their index, word for word.
SAID = "AND NOT (kind = 'decayed') AND NOT (kind = 'expired')"
NEWEST = " UNION ALL ".join(
    f"SELECT * FROM (SELECT '{source.letter}', id, {source.at} FROM {source.model._meta.db_table} "
    f"WHERE {source.at} IS NOT NULL {SAID if source is CHANGE else ''} "
    f"ORDER BY {source.at} DESC, id DESC LIMIT {SIZE}) {source.letter}"
    for source in SOURCES.values()
)


def newest() -> list[Place]:
    """The newest SIZE places, in one statement: what the front page asks for every few seconds."""
    with connection.cursor() as cursor:
        cursor.execute(NEWEST)
        found = [Place(moment_of(at), SOURCES[letter].rank, pk, letter) for letter, pk, at in cursor.fetchall()]
    return sorted(found, reverse=True)[:SIZE]


def places(*, before: Place | None = None, most: int = SIZE) -> list[Place]:
    """The newest `most` places, or those just older than `before`: one look into an index for each source."""
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
    """The entries at these places, in their order; one query a source. What was deleted meanwhile is left out."""
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


def token(shown: Iterable[Place]) -> str:
    """What a browser shows, in order."""
    return ".".join(place.key for place in shown)


@dataclass(frozen=True, slots=True)
class News:
    """What a feed lacks: entries to be put in, in order, each with the key it stands behind (None: the first); keys
    to go."""

    new: list[tuple[Entry, str | None]]
    gone: list[str]


def news(seen: str, now: Sequence[Place]) -> News:
    """The difference between what a browser shows (its token) and the places there are now.

    Told by the entries themselves, not by a time: of several writers at the same moment the one that is late is
    found all the same, and what has the same time as the last one is neither lost nor shown twice.
    """
    known = {key for key in seen.split(".") if KEY.match(key)}
    fresh = {entry.key: entry for entry in entries(place for place in now if place.key not in known)}
    new: list[tuple[Entry, str | None]] = []
    behind: str | None = None
    for place in now:
        if place.key in fresh:
            new.append((fresh[place.key], behind))
        if place.key in fresh or place.key in known:
            behind = place.key
    there = {place.key for place in now}
    return News(new, [key for key in seen.split(".") if key in known and key not in there])
