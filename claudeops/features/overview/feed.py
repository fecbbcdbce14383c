"""The feed: events, changes of memories, sessions and workers, newest first; equal ones close together are one entry.

The `key` of an entry is a letter for its source and the id of its newest row, like e12. Its `place` is its unique sort
key: time, source and id. Decay is left out, but for how many memories it made inactive in an hour.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model, Q, QuerySet

from claudeops.lib import times
from claudeops.lib.change_token import Changes, changes_of
from memories.counts import FADED
from memories.models import Change, MemoryChange, MemoryChangeCount
from sessions_app.models import Ending, Event, Level, Session, WorkerRun

SIZE = 20
BETWEEN = "~"
KEY = re.compile(r"([esmdfwx])([1-9][0-9]{0,17})\Z")
READ = 60
"""Rows of a source that are read first; while they make too few entries, more are read, up to its `most`."""
ABOVE = 200
"""Rows just above a page that are looked at: what belongs to their entries is not shown again."""


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of one kind. At the same time a higher `rank` is newer: a session starts, reports its events, then ends.

    Rows with equal `equal` columns, each at most `gap` after the one before it, are one entry; without `equal` each
    row is one. `most` rows are read at most. `name` is the chip under which they are shown.
    """

    letter: str
    rank: int
    name: str
    model: type[Model]
    at: str
    equal: tuple[str, ...] = ()
    gap: timedelta = timedelta(0)
    most: int = 300
    only: Mapping[str, Any] = field(default_factory=dict)

    def rows(self) -> QuerySet[Any]:
        if self.model is MemoryChange:
            return MemoryChange.objects.said()
        return self.model._default_manager.filter(**(self.only or {f"{self.at}__isnull": False}))


SESSIONS, EVENTS, MEMORIES, WORKERS = "sessions", "events", "memories", "workers"
NAMES = (SESSIONS, EVENTS, MEMORIES, WORKERS)
BEGUN = "s"
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)

ENDED_EQUAL = ("agent_id", "status", "status_reason", "summary")
RUNS_EQUAL = ("host", "queues")
SOURCES = {
    source.letter: source
    for source in (
        Source("f", 0, MEMORIES, MemoryChangeCount, "hour", only={"name": FADED, "number__gt": 0}),
        Source("w", 1, WORKERS, WorkerRun, "started_at", (*RUNS_EQUAL, "after"), 10 * MINUTE),
        Source(BEGUN, 2, SESSIONS, Session, "started_at"),
        Source("e", 3, EVENTS, Event, "created_at", ("level", "service", "message"), 6 * HOUR),
        Source("m", 4, MEMORIES, MemoryChange, "at", ("kind", "actor", "session_id"), MINUTE, most=2000),
        Source("d", 5, SESSIONS, Session, "ended_at", ENDED_EQUAL, 2 * HOUR),
        Source("x", 6, WORKERS, WorkerRun, "ended_at", (*RUNS_EQUAL, "ending"), 10 * MINUTE),
    )
}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The position of a row; a greater place is newer."""

    at: datetime
    rank: int
    pk: int
    letter: str

    @property
    def key(self) -> str:
        return f"{self.letter}{self.pk}"

    @property
    def source(self) -> Source:
        return SOURCES[self.letter]

    def __str__(self) -> str:
        return f"{self.at.isoformat()}{BETWEEN}{self.key}"


@dataclass(slots=True)
class Group:
    """`count` equal rows, from `place` back to `last`; with `is_cut` there may be more, which were not read."""

    place: Place
    last: Place
    count: int = 1
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the feed, and the place after which the next one starts; None at the end."""

    groups: list[Group]
    further: Place | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the feed: a group, and its newest row."""

    group: Group
    row: Any

    @property
    def place(self) -> Place:
        return self.group.place

    @property
    def key(self) -> str:
        return self.place.key

    @property
    def mark(self) -> str:
        """What may change of an entry with this key."""
        number = self.row.number if self.kind == "faded" else self.group.count
        return "" if number == 1 and not self.group.is_cut else f"{number}{'c' if self.group.is_cut else ''}"

    @property
    def at(self) -> datetime:
        return self.place.at

    @property
    def count(self) -> int:
        return self.group.count

    @property
    def shown(self) -> str:
        """The number of rows for people."""
        return f"{self.group.count:,}" + ("+" if self.group.is_cut else "")

    @property
    def others(self) -> str:
        """The number of further rows for people; empty for none."""
        if self.group.count == 1:
            return ""
        return f"{self.group.count - 1:,}" + ("+" if self.group.is_cut else "")

    @property
    def kind(self) -> str:
        kinds = {"s": "begun", "d": "ended", "e": "event", "m": "memory", "f": "faded", "w": "worker", "x": "worker"}
        return kinds[self.place.letter]

    @property
    def is_end(self) -> bool:
        """Whether an entry of a worker is its end."""
        return self.place.letter == "x"

    @property
    def is_import(self) -> bool:
        evidence = self.row.evidence
        return isinstance(evidence, dict) and evidence.get("channel") == "import" and not self.row.session_id

    @property
    def observation(self) -> str:
        """The memory's text after the change; of a deleted memory, the text before."""
        change: MemoryChange = self.row
        current = change.memory.observation if change.memory else ""
        return str(change.after.get("observation") or current or change.before.get("observation") or "")

    @property
    def icon(self) -> str:
        """The name of its icon in `_icons.html`."""
        if self.kind == "event":
            return {Level.INFO.value: "info", Level.WARNING.value: "warning"}.get(self.row.level, "critical")
        if self.kind == "memory":
            return "save" if self.is_import else ICONS.get(self.row.kind, "info")
        if self.kind == "worker":
            ending = self.row.ending if self.is_end else self.row.after
            return {Ending.LOST.value: "failed" if self.is_end else "warning"}.get(
                ending, "stopped" if self.is_end else "play"
            )
        return "inactive" if self.kind == "faded" else str(self.row.icon)


ICONS = {
    Change.CREATED.value: "proposal",
    **dict.fromkeys((Change.REINFORCED.value, Change.APPROVED.value, Change.BACKED.value), "ok"),
    **dict.fromkeys((Change.REACTIVATED.value, Change.RESTORED.value), "ok"),
    Change.CONTRADICTED.value: "disagree",
    **dict.fromkeys((Change.DEACTIVATED.value, Change.SUPERSEDED.value, Change.MERGED.value), "inactive"),
    Change.DELETED.value: "x",
}
"""The icons of changes; others have that of information."""


def read_place(text: str) -> Place:
    """Parse a place. Raises ValueError."""
    time, between, key = text.rpartition(BETWEEN)
    match = KEY.match(key)
    if not between or not match:
        raise ValueError(text)
    letter, pk = match.groups()
    return Place(times.parse(time), SOURCES[letter].rank, int(pk), letter)


# -- groups ------------------------------------------------------------------------------------------------------------


def page(*, before: Place | None = None, most: int = SIZE, name: str = "") -> Page:
    """Return the newest `most` entries, or those just older than `before`, of one of NAMES or of all.

    One or two queries a source; further ones only while many rows are one entry.
    """
    all_groups: list[Group] = []
    horizon: Place | None = None
    for source in SOURCES.values():
        if name in ("", source.name):
            groups, end = _groups(source, before, most + 1)
            all_groups += groups
            horizon = max(filter(None, (horizon, end)), default=None)
    all_groups.sort(key=lambda group: group.place, reverse=True)
    if horizon is not None:  # of one source nothing older was read
        all_groups = [group for group in all_groups if group.place >= horizon]
    if len(all_groups) > most:
        return Page(all_groups[:most], all_groups[most - 1].place)
    return Page(all_groups, horizon)


def _groups(source: Source, before: Place | None, most: int) -> tuple[list[Group], Place | None]:
    """Return the newest entries of a source, and the place of its last row that was read when rows remain."""
    open_groups: dict[tuple[Any, ...], Group | None] = {}
    reached: dict[tuple[Any, ...], datetime] = {}
    if before is not None and source.equal:
        for place, key in _above(source, before):
            open_groups[key], reached[key] = None, place.at
    groups: list[Group] = []
    rows, limit = _rows(source, before), source.most
    number = at_once = 0
    moment: datetime | None = None
    while row := next(rows, None):
        place, key = row
        number += 1
        at_once = at_once + 1 if place.at == moment else 1
        moment = place.at
        group = open_groups.get(key)
        if source.equal and key in reached and reached[key] - place.at <= source.gap:
            if group is not None:
                group.count, group.last = group.count + 1, place
        else:
            group = Group(place, place)
            groups.append(group)
        open_groups[key], reached[key] = group, place.at
        if number == limit and at_once >= READ and limit == source.most:  # one action on very many: go on behind it
            if group is not None:
                group.is_cut = True
            rows, limit = _rows(source, Place(place.at, source.rank, 0, source.letter)), limit + READ
        elif number == limit or (len(groups) >= most and number % READ == 0):
            for each in groups:
                each.is_cut |= bool(source.equal) and each.last.at - place.at <= source.gap
            return groups, place
    return groups, None


def _rows(source: Source, before: Place | None) -> Iterator[tuple[Place, tuple[Any, ...]]]:
    """Yield the rows older than `before`, newest first, with their equal columns; read in growing parts."""
    if source.letter == BEGUN:
        yield from _running(source, before)
        return
    size = READ
    while True:
        part = _ordered(source, _older(source, before))[:size]
        pairs = [(Place(at, source.rank, pk, source.letter), tuple(key) or (pk,)) for at, pk, *key in part]
        yield from pairs
        if len(pairs) < size:
            return
        before, size = pairs[-1][0], 4 * size


def _running(source: Source, before: Place | None) -> Iterator[tuple[Place, tuple[Any, ...]]]:
    """Yield the sessions that run. Sorted here: for their order SQLite would go through all sessions."""
    rows = Session.objects.running().order_by().values_list("started_at", "pk")[: source.most]
    places = [Place(at, source.rank, pk, source.letter) for at, pk in rows if at is not None]
    for place in sorted(places, reverse=True):
        if before is None or place < before:
            yield place, (place.pk,)


def _ordered(source: Source, rows: QuerySet[Any], down: str = "-") -> QuerySet[Any]:
    return rows.order_by(f"{down}{source.at}", f"{down}pk").values_list(source.at, "pk", *source.equal)


def _older(source: Source, before: Place | None) -> QuerySet[Any]:
    rows = source.rows()
    if before is not None:
        rows = rows.filter(**{f"{source.at}__{'lte' if source.rank <= before.rank else 'lt'}": before.at})
        if source.rank == before.rank:
            rows = rows.exclude(**{source.at: before.at}, pk__gte=before.pk)
    return rows


def _above(source: Source, before: Place) -> Iterable[tuple[Place, tuple[Any, ...]]]:
    """Return rows from `before` upwards within the gap, the newest first, so that the nearest of each key is last."""
    rows = source.rows()
    if before.at < times.LATEST:  # beyond it, the end of the gap may be no time any more
        rows = rows.filter(**{f"{source.at}__lte": before.at + source.gap})
    rows = rows.filter(**{f"{source.at}__{'gte' if source.rank >= before.rank else 'gt'}": before.at})
    if source.rank == before.rank:
        rows = rows.exclude(**{source.at: before.at}, pk__lt=before.pk)
    nearest = _ordered(source, rows, "")[:ABOVE]
    pairs = [(Place(at, source.rank, pk, source.letter), tuple(key)) for at, pk, *key in nearest]
    return reversed(pairs)


def members(head: Place, last: Place, *, before: Place | None = None, most: int) -> Page:
    """Return the rows of the group from `head` back to `last` one by one, those older than `before`.

    Raises LookupError when the newest row is gone.
    """
    if head.letter == "f":
        return _faded(head, before, most)
    source = head.source
    newest = source.rows().filter(pk=head.pk).values(*source.equal).first()
    if newest is None or not source.equal or last.letter != head.letter:
        raise LookupError(str(head))
    rows = _older(source, before) if before else source.rows()
    rows = rows.filter(**newest, **{f"{source.at}__lte": head.at, f"{source.at}__gte": last.at})
    places = [Place(row[0], source.rank, row[1], source.letter) for row in _ordered(source, rows)[: most + 1]]
    return Page([Group(place, place) for place in places[:most]], places[most - 1] if len(places) > most else None)


def _faded(hour: Place, before: Place | None, most: int) -> Page:
    """Return the changes by which memories became inactive in an hour, those older than `before`."""
    if not hour.source.rows().filter(pk=hour.pk).exists():
        raise LookupError(str(hour))
    of_hour = MemoryChange.objects.filter(at__gte=hour.at, at__lt=hour.at + HOUR)
    rows = of_hour.filter(kind=Change.DECAYED, after__active=False)
    source = SOURCES["m"]
    if before is not None:
        rows = rows.filter(Q(at__lt=before.at) | Q(at=before.at, pk__lt=before.pk))
    places = [Place(at, source.rank, pk, "m") for at, pk, *_ in _ordered(source, rows)[: most + 1]]
    return Page([Group(place, place) for place in places[:most]], places[most - 1] if len(places) > most else None)


# -- entries -----------------------------------------------------------------------------------------------------------


def entries(groups: Iterable[Group]) -> list[Entry]:
    """Load the newest row of each group, in their order, with one query a source. Deleted rows are left out."""
    groups = list(groups)
    rows: dict[str, Any] = {}
    for letter in SOURCES:
        ids = [group.place.pk for group in groups if group.place.letter == letter]
        rows |= {f"{letter}{row.pk}": row for row in _loaded(letter, ids)} if ids else {}
    return [Entry(group, rows[group.place.key]) for group in groups if group.place.key in rows]


def _loaded(letter: str, ids: Collection[int]) -> Iterable[Any]:
    if letter == "m":
        shown = ("kind", "before", "after", "reason", "actor", "evidence", "memory__observation", "memory__service")
        return MemoryChange.objects.filter(pk__in=ids).select_related("memory").only(*shown, "memory__category")
    if letter == "e":
        events = Event.objects.filter(pk__in=ids).select_related("session__agent")
        return events.only("level", "service", "message", "session__id", "session__agent__slug")
    if letter == "f":
        return MemoryChangeCount.objects.filter(pk__in=ids)
    if letter in "wx":
        return WorkerRun.objects.filter(pk__in=ids)
    sessions = Session.objects.filter(pk__in=ids).select_related("agent")
    shown = ("status", "status_reason", "summary", "tier", "trigger", "dry_run", "agent__slug", "duration_ms")
    return sessions.only(*shown, "started_at")


def newest(name: str = "") -> list[Entry]:
    """Return the newest entries of one of NAMES, or of all."""
    return entries(page(name=name).groups)


def changes(known: Mapping[str, str], entries: Sequence[Entry]) -> Changes[Entry]:
    return changes_of(known, entries, lambda entry: entry.key, lambda entry: entry.mark)
