"""The course of a memory's confidence: what it was, as its history tells it, and what time will make of it.

Reads change rows backwards from what the memory is now; changes nothing. Where it is drawn is `picture`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memories.lifecycle.age import age_of
from memories.lifecycle.forecast import End, Forecast, Point, forecast, steps_taken
from memories.models import Change, Inactive, Memory, MemoryChange, Verdict
from memories.taxonomy import TAXONOMIES

MOST = 150
"""Changes that are drawn, the latest ones; a memory confirmed every hour has more in a fortnight."""

TIMES_OWN = (Change.DECAYED, Change.EXPIRED)


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that befell the memory: when, how sure it was then, and what it was."""

    at: datetime
    confidence: float
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Course:
    """`past` holds the confidence from each time on, up to `now`; `cut` says that the history begins earlier."""

    past: tuple[Point, ...]
    marks: tuple[Mark, ...]
    ahead: Forecast
    now: datetime
    expires_at: datetime | None
    cut: bool
    words: str


def course_of(memory: Memory, *, at: datetime) -> Course:
    """The course of `memory` as of `at` (aware, UTC). One query, however long its history is."""
    rows = MemoryChange.objects.filter(memory=memory).order_by("-pk").only("kind", "at", "before", "after")
    changes = list(rows[: MOST + 1])
    cut = len(changes) > MOST
    points, marks = _past(memory, changes[:MOST], cut)
    ahead = forecast(age_of(memory), at)
    return Course(
        past=_forwards(points, at),
        marks=tuple(Mark(min(one.at, at), one.confidence, one.kind, one.label) for one in marks),
        ahead=ahead,
        now=at,
        expires_at=memory.expires_at if memory.active else None,
        cut=cut,
        words=in_words(memory, ahead, at),
    )


def _past(memory: Memory, latest_first: list[MemoryChange], cut: bool) -> tuple[list[Point], list[Mark]]:
    """Points and marks, the earliest first."""
    decay = TAXONOMIES[memory.taxonomy].decay
    state: dict[str, Any] = {name: getattr(memory, name) for name in ("confidence", "updated_at", "decayed_until")}
    points: list[Point] = []
    marks: list[Mark] = []
    began = None if cut else memory.created_at
    for change in latest_first:
        after = float(state["confidence"])
        if change.kind not in TIMES_OWN:
            marks.append(Mark(change.at, after, change.kind, change.get_kind_display()))
        began = change.at if change.kind == Change.CREATED or cut else began
        if change.kind == Change.CREATED:
            break
        until = state["decayed_until"]
        state |= _read(change.before)
        if change.kind == Change.DECAYED and decay is not None and until is not None:
            taken = steps_taken(state["confidence"], state["updated_at"], state["decayed_until"], until, decay)
            points += [Point(point.at, point.confidence) for point in reversed(taken)]
        elif state["confidence"] != after:
            points.append(Point(change.at, after))
    points.append(Point(began or memory.created_at, float(state["confidence"])))
    return points[::-1], marks[::-1]


def _read(before: Any) -> dict[str, Any]:
    """The columns of a change row that the course is made of."""
    found: dict[str, Any] = {}
    for name, value in before.items() if isinstance(before, dict) else ():
        if name == "confidence" and isinstance(value, int | float):
            found[name] = float(value)
        elif name == "updated_at" and isinstance(value, str):
            found[name] = datetime.fromisoformat(value)
        elif name == "decayed_until" and (value is None or isinstance(value, str)):
            found[name] = datetime.fromisoformat(value) if value else None
    return found


def _forwards(points: list[Point], at: datetime) -> tuple[Point, ...]:
    """In the order in which they came in: what an old log said counts from when it was read, not before."""
    found: list[Point] = []
    latest = points[0].at
    for point in points:
        latest = min(max(latest, point.at), at)
        found.append(Point(latest, point.confidence))
    return tuple(found)


def in_words(memory: Memory, ahead: Forecast, at: datetime) -> str:
    """What the picture shows of what is to come, in one sentence."""
    shown = f"{memory.confidence:.2f}"
    if not memory.active:
        why = Inactive(memory.inactive_reason).label if memory.inactive_reason in Inactive.values else ""
        return f"Inactive at {shown}{f': {why}' if why else ''}. Time changes nothing more."
    if ahead.inactive_at is None:
        if memory.verdict == Verdict.HOLD:
            return f"Stays at {shown}: what waits for review does not age."
        if memory.persistent:
            return f"Stays at {shown}: it is persistent and never decays."
        return f"Stays at {shown}: {memory.taxonomy} memories of this category do not age."
    day = f"{ahead.inactive_at.astimezone(UTC):%Y-%m-%d}"
    if ahead.inactive_at <= at:
        return f"Is overdue: the next sweep makes it inactive, as of {day}."
    if ahead.end == End.DECAYED:
        return f"Falls below {ahead.limit:g} on {day} unless confirmed."
    if ahead.end == End.CATEGORY:
        return f"Expires on {day} unless confirmed: that is how long a {memory.category} lasts."
    return f"Expires on {day}, confirmed or not."
