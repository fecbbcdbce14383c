"""Compute a memory's confidence over time: its past from the change rows, and the forecast. Reads only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from memories.history.fate import fate
from memories.history.forecast import Forecast, Point, forecast, steps_taken
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
    rows = MemoryChange.objects.filter(memory=memory).order_by("-pk").only("kind", "at", "before", "after")
    changes = list(rows[: MOST + 1])
    cut = len(changes) > MOST
    points, marks = _past(memory, changes[:MOST], cut)
    ahead = forecast(memory, at)
    return ConfidenceHistory(
        past=_forwards(points, at),
        marks=tuple(replace(one, at=min(one.at, at)) for one in marks),
        ahead=ahead,
        now=at,
        expires_at=memory.expires_at if memory.active else None,
        cut=cut,
        words=fate(memory, ahead, at, None if memory.active else _inactive_since(changes)),
    )


def confidence_since(
    memories: Collection[Memory], start: datetime, *, most: int = MOST_OF_PAGE
) -> dict[int, tuple[Point, ...]]:
    """Return by id the confidence of `memories` from `start` on (aware UTC), as of now. One query for all of them.

    Of more than `most` changes the latest are read; what is before them is taken for unchanged.
    """
    found: dict[int, list[MemoryChange]] = defaultdict(list)
    rows = MemoryChange.objects.filter(memory__in=[memory.pk for memory in memories], at__gte=start)
    for change in rows.order_by("-pk").only("memory_id", "kind", "at", "before")[:most]:
        if change.memory_id is not None:
            found[change.memory_id].append(change)
    past = {memory.pk: _past(memory, found[memory.pk], False)[0] for memory in memories}
    now = timezone.now()
    return {pk: _forwards(points, now) for pk, points in past.items()}


def _past(memory: Memory, latest_first: list[MemoryChange], cut: bool) -> tuple[list[Point], list[Mark]]:
    decay = TAXONOMIES[memory.taxonomy].decay
    state: dict[str, Any] = {name: getattr(memory, name) for name in ("confidence", "updated_at", "decayed_until")}
    points: list[Point] = []
    marks: list[Mark] = []
    began = None if cut else memory.created_at
    for change in latest_first:
        after = float(state["confidence"])
        marks.append(Mark(change.pk, change.at, after, change.kind, change.get_kind_display()))
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


def _inactive_since(latest_first: list[MemoryChange]) -> datetime | None:
    ended = (change.at for change in latest_first if (change.after or {}).get("active") is False)
    return next(ended, None)


def _read(before: Any) -> dict[str, Any]:
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
    """Make times ascend: a change from an old log counts from when it was read."""
    found: list[Point] = []
    latest = points[0].at
    for point in points:
        latest = min(max(latest, point.at), at)
        found.append(Point(latest, point.confidence))
    return tuple(found)
