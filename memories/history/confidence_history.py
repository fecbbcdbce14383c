"""Compute a memory's confidence over time: its past from the change rows, and the forecast. Reads only."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.utils import timezone

from memories.history.fate import fate
from memories.history.forecast import Forecast, Point, forecast, steps_taken
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
    for change in rows.order_by("-pk").only("memory_id", "kind", "at", "before", "evidence")[:most]:
        if change.memory_id is not None:
            found[change.memory_id].append(change)
    now = timezone.now()
    return {memory.pk: _past(memory, found[memory.pk], False, now)[0] for memory in memories}


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
    found: dict[str, Any] = {}
    for name, value in before.items() if isinstance(before, dict) else ():
        if name == "confidence" and isinstance(value, int | float):
            found[name] = float(value)
        elif name == "updated_at" and isinstance(value, str):
            found[name] = datetime.fromisoformat(value)
        elif name == "decayed_until" and (value is None or isinstance(value, str)):
            found[name] = datetime.fromisoformat(value) if value else None
    return found
