"""Compute a memory's confidence over time, past and forecast, and the coordinates of its chart. Reads only.

Days are those of a given zone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from django.utils import timezone

from memories.history.forecast import End, Forecast, Point, forecast, outcome, steps_taken
from memories.lifecycle.rules import clamp
from memories.models import Change, Memory, MemoryChange
from memories.taxonomy import TAXONOMIES

MOST = 150
"""Latest changes that are drawn; a memory confirmed every hour exceeds this in a week."""

MOST_OF_PAGE = 2_000
"""Latest changes that are read for the small lines of a page of memories."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A change: its id, its time, and the confidence (0..1) after it."""

    pk: int
    at: datetime
    confidence: float
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class ConfidenceHistory:
    """`past` holds the confidence from each time on, up to `now`; `cut`: earlier changes are left out.

    `words` is one sentence: what becomes of the memory unless somebody confirms it.
    """

    past: tuple[Point, ...]
    marks: tuple[Mark, ...]
    ahead: Forecast
    now: datetime
    expires_at: datetime | None
    cut: bool
    words: str


def confidence_history_of(memory: Memory, *, at: datetime) -> ConfidenceHistory:
    """Compute the confidence history of `memory` as of `at` (aware UTC). One query."""
    rows = MemoryChange.objects.filter(memory=memory).order_by("-pk").only("kind", "at", "before", "after", "evidence")
    changes = list(rows[: MOST + 1])
    cut = len(changes) > MOST
    points, marks = _past(memory, changes[:MOST], cut, at)
    ahead = forecast(memory, at)
    return ConfidenceHistory(
        past=points,
        marks=marks,
        ahead=ahead,
        now=at,
        expires_at=memory.expires_at if memory.active else None,
        cut=cut,
        words=outcome(memory, ahead, at, None if memory.active else _inactive_since(changes)),
    )


def confidence_since(
    memories: Collection[Memory], start: datetime, *, most: int = MOST_OF_PAGE
) -> dict[int, tuple[Point, ...]]:
    """Return by id the confidence of `memories` from `start` on (aware UTC), as of now. One query for all of them.

    Of more than `most` changes the latest are read; what is before them is taken for unchanged.
    """
    by_id: dict[int, list[MemoryChange]] = defaultdict(list)
    rows = MemoryChange.objects.filter(memory__in=[memory.pk for memory in memories], at__gte=start)
    for change in rows.order_by("-pk").only("memory_id", "kind", "at", "before", "evidence")[:most]:
        if change.memory_id is not None:
            by_id[change.memory_id].append(change)
    now = timezone.now()
    return {memory.pk: _past(memory, by_id[memory.pk], False, now)[0] for memory in memories}


class _Step(NamedTuple):
    """By how much the confidence rose (or fell) at a time, by the change `pk`."""

    at: datetime
    pk: int
    by: float


def _past(
    memory: Memory, latest_first: list[MemoryChange], cut: bool, now: datetime
) -> tuple[tuple[Point, ...], tuple[Mark, ...]]:
    """Return the confidence since the beginning, and the changes with the confidence after each, by their times.

    Old logs may be read late: then a change that was stored last happened first. What each change moved is applied in
    the order of the times, which ends at the present confidence too.
    """
    steps, first = _steps(memory, latest_first)
    began = next((change.at for change in latest_first if change.kind == Change.CREATED), memory.created_at)
    if cut:
        began = latest_first[-1].at
    points = [Point(min([began, now, *(step.at for step in steps)]), first)]
    exact = [first]
    for step in steps:
        exact.append(exact[-1] + step.by)
        points.append(Point(min(step.at, now), clamp(exact[-1])))
    places = [(step.at, step.pk) for step in steps]
    marks = [
        Mark(
            change.pk,
            min(change.at, now),
            clamp(exact[bisect_right(places, (change.at, change.pk))]),
            change.kind,
            change.label,
        )
        for change in sorted(latest_first, key=lambda change: (change.at, change.pk))
    ]
    return tuple(points), tuple(marks)


def _steps(memory: Memory, latest_first: list[MemoryChange]) -> tuple[list[_Step], float]:
    """Return what moved the confidence, by time, and the confidence before all of it."""
    decay = TAXONOMIES[memory.taxonomy].decay
    state: dict[str, Any] = {name: getattr(memory, name) for name in ("confidence", "updated_at", "decayed_until")}
    steps: list[_Step] = []
    for change in latest_first:
        if change.kind == Change.CREATED:
            break
        after, until = float(state["confidence"]), state["decayed_until"]
        state |= _read(change.before)
        before = float(state["confidence"])
        if change.kind == Change.DECAYED and decay is not None and until is not None:
            for point in steps_taken(before, state["updated_at"], state["decayed_until"], until, decay):
                steps.append(_Step(point.at, change.pk, point.confidence - before))
                before = point.confidence
        elif before != after:
            steps.append(_Step(change.at, change.pk, after - before))
    return sorted(steps), float(state["confidence"])


def _inactive_since(latest_first: list[MemoryChange]) -> datetime | None:
    ended = (change.at for change in latest_first if (change.after or {}).get("active") is False)
    return next(ended, None)


def _read(before: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, value in before.items() if isinstance(before, dict) else ():
        if name == "confidence" and isinstance(value, int | float):
            columns[name] = float(value)
        elif name == "updated_at" and isinstance(value, str):
            columns[name] = datetime.fromisoformat(value)
        elif name == "decayed_until" and (value is None or isinstance(value, str)):
            columns[name] = datetime.fromisoformat(value) if value else None
    return columns


WIDTH = 1000
"""Width of the plot in SVG units."""

SHORTEST = timedelta(days=14)
PAST = 0.5
"""Least share of the width that the history has when it holds several changes. A forecast of months must not press the
changes of a young memory into one place."""
MARGIN = 0.04
LETTER, SPACE = 2.1, 2.0
"""Percent of the width that a letter of a label needs, and a gap: 12 pixels high in a plot of 300 pixels, a phone's."""
APART = 2.2
"""Percent between two marks on the axis of events, where there is room for all."""
MOST_TICKS = 6

SHAPES: dict[str, str] = {
    Change.CREATED: "created",
    Change.REINFORCED: "confirmed",
    Change.APPROVED: "confirmed",
    Change.BACKED: "confirmed",
    Change.CONTRADICTED: "contradicted",
    Change.SUPERSEDED: "contradicted",
    Change.DECAYED: "time",
    Change.EXPIRED: "ended",
    Change.DEACTIVATED: "ended",
    Change.DELETED: "ended",
}
"""The shape of a mark by kind of change; every other kind is an edit."""
EDITED = "edited"
LEGEND = ("created", "confirmed", "contradicted", EDITED, "time", "ended")


@dataclass(frozen=True, slots=True)
class Place:
    """A labelled point: `x` and `y` in percent, y down from 1; `anchor` is the SVG text-anchor."""

    x: float
    y: float
    anchor: str
    label: str

    @property
    def rest(self) -> float:
        """Percent of the height below it."""
        return round(100 - self.y, 2)

    @property
    def span(self) -> tuple[float, float]:
        """The percents of the width that its label takes."""
        room = LETTER * len(self.label)
        begin = self.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor] * room
        return begin, begin + room


@dataclass(frozen=True, slots=True)
class Event:
    """A mark on the axis of events: the change `pk` at `x` percent. `shape` is one of LEGEND."""

    pk: int
    x: float
    shape: str
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """`line` (history) and `ahead` (forecast) are the points of polylines, WIDTH units wide and 100 high.

    `fades` is where the forecast meets the threshold, `expires` where the memory ends whatever its confidence. `bent`:
    the time before today and the time after it have different scales. `legend` holds the shapes that occur.
    """

    line: str
    ahead: str
    today: Place
    events: tuple[Event, ...]
    ticks: tuple[Place, ...]
    limit: Place | None
    fades: Place | None
    expires: Place | None
    legend: tuple[str, ...]
    bent: bool


def chart_of(course: ConfidenceHistory, zone: tzinfo = UTC) -> Chart:
    begin, now = course.past[0].at, course.now
    over = course.ahead.inactive_at if course.ahead.inactive_at and course.ahead.inactive_at > now else None
    own_end = course.expires_at if course.expires_at and course.expires_at > now else None
    last = max([now, *(point.at for point in course.ahead.points), *(time for time in (over, own_end) if time)])
    end = begin + max(last - begin, SHORTEST) * (1 + MARGIN)
    natural = (now - begin) / (end - begin)
    past = max(natural, PAST) if len(course.marks) > 1 and now > begin else natural
    scale = _Scale(begin, now, end, past)
    falls_to, ahead = course.past[-1].confidence, course.ahead.points
    limit, decays = course.ahead.limit, course.ahead.end == End.DECAYED
    expires = own_end if decays or not over else over
    fades = scale.place(over, limit, f"fades {_day(over, now, zone)}") if over and decays and limit else None
    events = tuple(_events(course.marks, scale, zone))
    return Chart(
        line=scale.stair(course.past, now),
        ahead=scale.stair([Point(now, falls_to), *ahead], over or end),
        today=scale.place(now, falls_to, f"today {falls_to:.2f}"),
        events=events,
        ticks=tuple(_ticks(scale, zone)),
        limit=None if limit is None else _limit(limit, fades),
        fades=fades,
        expires=scale.place(expires, 1, f"expires {_day(expires, now, zone)}") if expires else None,
        legend=tuple(shape for shape in LEGEND if any(event.shape == shape for event in events)),
        bent=past != natural,
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Time in two parts, each at a scale of its own: until `now` (`past`, a share of the width), and after it."""

    begin: datetime
    now: datetime
    end: datetime
    past: float

    def x(self, at: datetime) -> float:
        if at <= self.now and self.now > self.begin:
            share = self.past * ((at - self.begin) / (self.now - self.begin))
        else:
            share = self.past + (1 - self.past) * ((at - self.now) / (self.end - self.now))
        return round(100 * min(1.0, max(0.0, share)), 2)

    def stair(self, points: Sequence[Point], until: datetime) -> str:
        steps: list[tuple[float, float]] = []
        for point in points:
            if steps:
                steps.append((self.x(point.at), steps[-1][1]))
            steps.append((self.x(point.at), _down(point.confidence)))
        steps.append((max(steps[-1][0], self.x(until)), steps[-1][1]))
        corners = [place for number, place in enumerate(steps) if not number or place != steps[number - 1]]
        return " ".join(f"{x * WIDTH / 100:g},{y:g}" for x, y in corners)

    def place(self, at: datetime, confidence: float, label: str) -> Place:
        x = self.x(at)
        half = LETTER * len(label) / 2
        anchor = "start" if x < half else "end" if x > 100 - half else "middle"
        return Place(x, _down(confidence), anchor, label)


def _limit(limit: float, fades: Place | None) -> Place:
    """Label the threshold below its line, at the side that `fades` leaves free."""
    place = Place(0, _down(limit), "start", "inactive")
    if fades is None or fades.span[0] > place.span[1] + SPACE:
        return place
    return replace(place, x=100, anchor="end")


def _events(marks: Sequence[Mark], scale: _Scale, zone: tzinfo) -> Iterator[Event]:
    """Place the marks by their time, none after today: APART, or as far as there is room."""
    ordered = sorted(marks, key=lambda mark: (mark.at, mark.pk))
    end = scale.x(scale.now) or 100.0
    apart = min(APART, end / max(1, len(marks) - 1))
    places: list[float] = []
    for number, mark in enumerate(ordered):
        room_left = end - apart * (len(marks) - 1 - number)
        wanted = max(scale.x(mark.at), places[-1] + apart if places else 0)
        places.append(max(0.0, min(wanted, room_left)))
    for mark, x in zip(ordered, places, strict=True):
        label = f"{_minute(mark.at, scale.now, zone)}: {mark.label}, {mark.confidence:.2f}"
        yield Event(mark.pk, round(x, 2), SHAPES.get(mark.kind, EDITED), label)


def _ticks(scale: _Scale, zone: tzinfo) -> Iterator[Place]:
    """Label the axis of time: its beginning, then each hour, day, month or year that has room."""
    edge = 0.0
    for at, label in [(scale.begin, _first(scale, zone)), *_boundaries(scale, zone)]:
        x = scale.x(at)
        place = Place(x, 100, "start" if x == 0 else "middle", label)
        begin, end = place.span
        if (x and begin < edge + SPACE) or end > 100:
            continue
        edge = end
        yield place


def _first(scale: _Scale, zone: tzinfo) -> str:
    young = scale.now - scale.begin < timedelta(days=2)
    return (_minute if young else _day)(scale.begin, scale.now, zone)


def _boundaries(scale: _Scale, zone: tzinfo) -> list[tuple[datetime, str]]:
    """Return round times with their labels, at most MOST_TICKS a part of the scale, in their order."""
    past = _round_times(scale.begin, scale.now, max(1, round(MOST_TICKS * scale.past)), zone)
    return past + _round_times(scale.now, scale.end, max(1, round(MOST_TICKS * (1 - scale.past))), zone)


def _round_times(begin: datetime, end: datetime, most: int, zone: tzinfo) -> list[tuple[datetime, str]]:
    for unit, steps in (("hour", (1, 3, 6, 12)), ("day", (1, 2, 7, 14)), ("month", (1, 2, 3, 6)), ("year", (1, 2, 5))):
        length = {"hour": 1 / 24, "day": 1, "month": 30.4, "year": 365.2}[unit]
        for step in steps:
            if (end - begin) / timedelta(days=length * step) <= most:
                return list(_every(begin, end, unit, step, zone))
    return []


def _every(begin: datetime, end: datetime, unit: str, step: int, zone: tzinfo) -> Iterator[tuple[datetime, str]]:
    local = begin.astimezone(zone)
    at = local.replace(minute=0, second=0, microsecond=0)
    if unit == "hour":
        at = at.replace(hour=at.hour - at.hour % step)
    elif unit == "day":
        at = at.replace(hour=0)
    else:
        at = at.replace(hour=0, day=1, month=1 if unit == "year" else at.month - (at.month - 1) % step)
    while at < end:
        if at > begin:
            label = f"{at:%H:%M}" if unit == "hour" else f"{at.day} {at:%b}" if unit == "day" else f"{at:%b}"
            yield at, f"{at.year}" if unit == "year" or (unit == "month" and at.month == 1) else label
        at = _later(at, unit, step)


def _later(at: datetime, unit: str, step: int) -> datetime:
    if unit == "hour":
        return at + timedelta(hours=step)
    if unit == "day":
        return at + timedelta(days=step)
    months = at.month - 1 + (step if unit == "month" else 12 * step)
    return at.replace(year=at.year + months // 12, month=months % 12 + 1)


def _down(confidence: float) -> float:
    return round(100 * (1 - confidence), 2)


def _day(at: datetime, now: datetime, zone: tzinfo) -> str:
    local = at.astimezone(zone)
    return f"{local.day} {local:%b}" + ("" if local.year == now.astimezone(zone).year else f" {local.year}")


def _minute(at: datetime, now: datetime, zone: tzinfo) -> str:
    return f"{_day(at, now, zone)}, {at.astimezone(zone):%H:%M}"
