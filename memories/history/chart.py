"""Compute the SVG coordinates of the confidence chart. Pure; x in percent of time, y in percent down from 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memories.history.confidence_history import ConfidenceHistory, Mark
from memories.history.forecast import Point

WIDTH = 1000
"""Width of the plot in SVG units."""

SHORTEST = timedelta(days=14)
PAST = 0.5
"""Least share of the width that the history has when it holds several changes. A forecast of months must not press the
changes of a young memory into one place."""
MARGIN = 0.04
NEAR = 22.0
"""Percent of the width that a label needs; near an edge its anchor moves inwards."""


@dataclass(frozen=True, slots=True)
class Place:
    """A labelled point: `x` and `y` in percent, `anchor` is the SVG text-anchor (start, middle, end)."""

    x: float
    y: float
    anchor: str
    label: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """`line` (history) and `ahead` (forecast) are the points of polylines, WIDTH units wide and 100 high."""

    line: str
    ahead: str
    today: Place
    marks: tuple[Place, ...]
    limit: Place | None
    ends: Place | None
    expires: Place | None
    first: str
    last: str


def chart_of(course: ConfidenceHistory) -> Chart:
    begin = course.past[0].at
    found = [course.now, *(point.at for point in course.ahead.points)]
    found += [time for time in (course.ahead.inactive_at, course.expires_at) if time is not None and time > course.now]
    last = max(found)
    span = max(last - begin, SHORTEST)
    end = begin + span * (1 + MARGIN)
    natural = (course.now - begin) / (end - begin)
    scale = _Scale(
        begin, course.now, end, max(natural, PAST) if len(course.marks) > 1 and course.now > begin else natural
    )
    to_the_minute = course.now - begin < timedelta(days=2)
    ahead = list(course.ahead.points)
    falls_to = course.past[-1].confidence
    stops = course.ahead.inactive_at if course.ahead.inactive_at and course.ahead.inactive_at > course.now else end
    to_come = [Point(course.now, falls_to), *ahead]
    ends = course.ahead.inactive_at
    return Chart(
        line=scale.stair(course.past, course.now),
        ahead=scale.stair(to_come, stops),
        today=scale.place(course.now, falls_to, "today"),
        marks=tuple(scale.mark(mark) for mark in course.marks),
        limit=None
        if course.ahead.limit is None
        else Place(0, _down(course.ahead.limit), "end", f"{course.ahead.limit:g}"),
        ends=scale.place(ends, ahead[-1].confidence, _day(ends)) if ends and ends > course.now else None,
        expires=scale.place(course.expires_at, 0, "expires") if course.expires_at else None,
        first=_minute(begin) if to_the_minute else _day(begin),
        last=_day(end),
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
        found: list[tuple[float, float]] = []
        for point in points:
            if found:
                found.append((self.x(point.at), found[-1][1]))
            found.append((self.x(point.at), _down(point.confidence)))
        found.append((max(found[-1][0], self.x(until)), found[-1][1]))
        corners = [place for number, place in enumerate(found) if not number or place != found[number - 1]]
        return " ".join(f"{x * WIDTH / 100:g},{y:g}" for x, y in corners)

    def place(self, at: datetime, confidence: float, label: str) -> Place:
        x = self.x(at)
        anchor = "start" if x < NEAR / 2 else "end" if x > 100 - NEAR / 2 else "middle"
        return Place(x, _down(confidence), anchor, label)

    def mark(self, mark: Mark) -> Place:
        label = f"{mark.label} {_minute(mark.at)}: {mark.confidence:.2f}"
        return Place(self.x(mark.at), _down(mark.confidence), "middle", label, mark.kind)


def _down(confidence: float) -> float:
    return round(100 * (1 - confidence), 2)


def _day(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
