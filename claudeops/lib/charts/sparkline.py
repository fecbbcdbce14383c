"""Compute a sparkline: a value over time as a small stepped line with a dot at its end. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

WIDTH, HEIGHT, EDGE = 56, 18, 2
"""Size in pixels, and the room around the line for its width and its dot."""


@dataclass(frozen=True, slots=True)
class Sparkline:
    """`path` is the data of an SVG path within `width` and `height`; the dot stands at (`dot_x`, `dot_y`).

    `said` states its numbers.
    """

    path: str
    dot_x: float
    dot_y: float
    said: str
    width: int = WIDTH
    height: int = HEIGHT


def sparkline(points: Sequence[tuple[datetime, float]], start: datetime, end: datetime, *, said: str) -> Sparkline:
    """Draw values from 0 to 1, each holding from its time until the next, between `start` and `end`.

    Times ascend. The first value also holds before its time; values beyond 0..1 are clamped. Raises ValueError without
    a point.
    """
    if not points:
        raise ValueError("A line needs a point.")
    span = max((end - start).total_seconds(), 1.0)
    inner = WIDTH - 2 * EDGE

    def x(at: datetime) -> float:
        return round(EDGE + inner * min(1.0, max(0.0, (at - start).total_seconds() / span)), 1)

    def y(value: float) -> float:
        return round(EDGE + (HEIGHT - 2 * EDGE) * (1 - min(1.0, max(0.0, value))), 1)

    before = [value for at, value in points if at <= start] or [points[0][1]]
    steps = [f"M{EDGE} {y(before[-1]):g}"]
    for at, value in points:
        if at > start:
            steps.append(f"H{x(at):g}V{y(value):g}")
    steps.append(f"H{EDGE + inner}")
    return Sparkline("".join(steps), float(EDGE + inner), y(points[-1][1]), said)
