"""Compute the line of what a day has cost so far, against its limit, and what it is expected to cost in all. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

HOURS = 24
WIDTH, HEIGHT = 240.0, 92.0
"""The plot, which stretches to its box: 10 units an hour."""
ROOM = 8.0
"""What is left free above the highest value."""
HIGHEST = 3
"""A limit of more times the highest amount is not drawn."""
FEWEST = 3
"""Days before today from which a median is taken; with fewer, the rate of today counts."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the whole day is expected to come to; `basis` says how that was computed."""

    amount: float
    basis: str


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Paths in a plot of `width` by `height` units; `limit` is empty without one, `forecast` at the end of the day.

    `rows` are (hour, amount so far) at the end of each hour in which something was added."""

    line: str
    area: str
    forecast: str
    limit: str
    base: str
    grid: str
    so_far: float
    expected: Expected
    rows: tuple[tuple[int, float], ...]
    over: bool
    """Whether the expectation lies above the limit."""
    width: float = WIDTH
    height: float = HEIGHT


def expectation(so_far: float, elapsed: float, days: Sequence[Sequence[float]]) -> Expected:
    """Expect a day's total: `so_far`, and the median of what the remaining hours cost on earlier days.

    `elapsed` are the hours since the day's start (0..24); `days` the amounts by hour of earlier days. Of the hour that
    runs, its remaining share counts. With fewer than FEWEST days: the rate of today (of an hour, at least) goes on.
    """
    hour = min(int(elapsed), HOURS - 1)
    if len(days) >= FEWEST:
        share = min(1.0, hour + 1 - elapsed)
        rest = median(sum(day[hour + 1 :]) + share * day[hour] for day in days)
        return Expected(so_far + max(0.0, rest), f"median of the same hours of {len(days)} days")
    return Expected(so_far + so_far / max(elapsed, 1.0) * max(0.0, HOURS - elapsed), "rate of today")


def cumulative(by_hour: Sequence[float], so_far: float, elapsed: float, limit: float, expected: Expected) -> Cumulative:
    """Draw the day: `by_hour` the amounts of its hours (of the one that runs, what is known), `so_far` the total now.

    `so_far` may be more than the sum: what runs has cost something already. `limit` 0: there is none; one that is far
    above all else is not drawn.
    """
    elapsed = min(max(elapsed, 0.0), float(HOURS))
    highest = max(so_far, expected.amount)
    drawn = limit if limit <= HIGHEST * highest else 0
    top = max(highest, drawn) or 1.0
    rows, total, points = [], 0.0, [(0.0, 0.0)]
    for hour in range(min(int(elapsed), HOURS - 1)):
        total += by_hour[hour]
        points.append((hour + 1.0, total))
        if by_hour[hour]:
            rows.append((hour + 1, total))
    points.append((elapsed, max(so_far, total)))
    placed = [(_x(hour), _y(amount, top)) for hour, amount in points]
    line = "M" + "L".join(f"{x:g} {y:g}" for x, y in placed)
    end_x, end_y = placed[-1]
    forecast = f"M{end_x:g} {end_y:g}L{WIDTH:g} {_y(expected.amount, top):g}" if elapsed < HOURS else ""
    return Cumulative(
        line=line,
        area=f"{line}V{HEIGHT:g}H0z",
        forecast=forecast,
        limit=f"M0 {_y(drawn, top):g}h{WIDTH:g}" if drawn else "",
        base=f"M0 {HEIGHT:g}h{WIDTH:g}",
        grid=f"M0 {(HEIGHT + ROOM) / 2:g}h{WIDTH:g}",
        so_far=so_far,
        expected=expected,
        rows=tuple(rows),
        over=bool(limit) and expected.amount > limit,
    )


def _x(hour: float) -> float:
    return round(hour * WIDTH / HOURS, 2)


def _y(amount: float, top: float) -> float:
    return round(HEIGHT - (HEIGHT - ROOM) * amount / top, 2)
