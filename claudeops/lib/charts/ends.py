"""Compute lanes of what ends when: a line for each owner, a mark for each day on which something of it ends. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HEIGHT, MIDDLE = 16, 8
"""The height of a lane in pixels, and where its line is."""
WIDTH, LOWEST, HIGHEST = 6, 4.0, 14.0
"""The width of a mark, and the heights of the mark of one and of that of the fullest day."""
BAD, WARN = 3, 8
"""Days from today before which a mark is urgent, and soon."""
WEEK = 7


@dataclass(frozen=True, slots=True)
class Owner:
    """What a lane is of: its name, the address of the list of what ends, and how many end by day, today being 0."""

    name: str
    url: str
    days: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of one day: `x` in percent of the lane, `y` and `height` in pixels; `outcome` is a class `o-…`."""

    x: float
    y: float
    height: float
    outcome: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One line; `said` states its numbers, `weeks` has them by week for the table."""

    owner: Owner
    marks: tuple[Mark, ...]
    total: int
    weeks: tuple[int, ...]
    said: str


@dataclass(frozen=True, slots=True)
class Ends:
    """All lanes, in the order of the owners; `weeks` are the sums by week."""

    lanes: tuple[Lane, ...]
    total: int
    weeks: tuple[int, ...]
    said: str
    width: int = WIDTH
    height: int = HEIGHT
    middle: int = MIDDLE


def ends(owners: Sequence[Owner], weeks: int, *, noun: tuple[str, str] = ("memory", "memories")) -> Ends:
    """Draw what ends within so many weeks. Days beyond them are left out; `noun` is one of what ends, and many."""
    days = weeks * WEEK
    fullest = max((n for owner in owners for day, n in owner.days.items() if 0 <= day < days), default=1)
    lanes = tuple(_lane(owner, weeks, fullest, noun) for owner in owners)
    total = sum(lane.total for lane in lanes)
    sums = tuple(sum(column) for column in zip(*(lane.weeks for lane in lanes), strict=True)) or (0,) * weeks
    return Ends(lanes, total, sums, f"{_counted(total, noun)} within {weeks} weeks.")


def _lane(owner: Owner, weeks: int, fullest: int, noun: tuple[str, str]) -> Lane:
    days = {day: number for day, number in sorted(owner.days.items()) if 0 <= day < weeks * WEEK and number > 0}
    by_week = tuple(sum(n for day, n in days.items() if day // WEEK == week) for week in range(weeks))
    total = sum(by_week)
    first = f", the first {_in_days(next(iter(days)))}" if days else ""
    summary = f"{owner.name}: {_counted(total, noun)} within {weeks} weeks{first}"
    marks = tuple(_mark(day, number, weeks * WEEK, fullest) for day, number in days.items())
    return Lane(owner, marks, total, by_week, summary)


def _mark(day: int, number: int, days: int, fullest: int) -> Mark:
    share = (number - 1) / (fullest - 1) if fullest > 1 else 0.0
    height = round(LOWEST + (HIGHEST - LOWEST) * share, 1)
    outcome = "failed" if day < BAD else "stopped" if day < WARN else "skipped"
    return Mark(round(100 * day / days, 2), round(MIDDLE - height / 2, 2), height, outcome)


def _counted(number: int, noun: tuple[str, str]) -> str:
    one, many = noun
    return f"{number:,} {one} ends" if number == 1 else f"{number:,} {many} end"


def _in_days(day: int) -> str:
    return {0: "today", 1: "tomorrow"}.get(day, f"in {day} days")
