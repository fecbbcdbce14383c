"""Compute a calendar of days: a column for each week, a cell for each day, of one shape for each outcome. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from claudeops.lib.charts.bars import Kind

STEP_X, STEP_Y = 18, 14
"""From one cell to the next, in units of the drawing, which scales as a whole."""
WIDTH, HEIGHT = 14, 11
"""The size of a cell."""
LEFT, TOP = 28, 12
"""The room of the weekdays and of the months."""
SHADES = 4
WEEK = 7
ROOM_OF_MONTH = 2
"""Columns from one label of a month to the next, at least."""


@dataclass(frozen=True, slots=True)
class Day:
    """One day: the address of its list, its words ("Mon 23 Nov"), and its numbers by the names of the kinds."""

    date: date
    words: str
    url: str
    numbers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Cell:
    """The cell of a day. `kind` is its worst one, None for a day without any; `shade` is 1 (few) to SHADES (most)."""

    part: Day
    kind: Kind | None
    shade: int
    x: int
    y: int
    path: str
    """The outline of the shape; empty without a kind."""
    total: int
    said: str
    values: tuple[int, ...]
    """The numbers in the order of the kinds."""

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + WIDTH / 2, self.y + HEIGHT / 2


@dataclass(frozen=True, slots=True)
class Label:
    """A text of the drawing; `y` is its base line."""

    x: int
    y: int
    text: str


@dataclass(frozen=True, slots=True)
class Calendar:
    """The cells, oldest first, in a drawing of `width` by `height` units; `said` states the sums."""

    cells: tuple[Cell, ...]
    kinds: tuple[Kind, ...]
    labels: tuple[Label, ...]
    width: int
    height: int
    total: int
    said: str

    step_x: int = STEP_X
    step_y: int = STEP_Y

    @property
    def filled(self) -> tuple[Cell, ...]:
        """The rows of the table, latest first: days with anything."""
        return tuple(cell for cell in reversed(self.cells) if cell.total)


def calendar(name: str, days: Sequence[Day], kinds: Sequence[Kind]) -> Calendar:
    """Draw `days`, oldest first, each once. `kinds` are in their order from the worst to the best.

    `name` begins the sentence that states the sums.
    """
    most = max((sum(day.numbers.get(kind.name, 0) for kind in kinds) for day in days), default=0)
    first = days[0].date - timedelta(days=days[0].date.weekday()) if days else date.min
    cells = tuple(_cell(day, kinds, most, first) for day in days)
    sums = [(kind, sum(day.numbers.get(kind.name, 0) for day in days)) for kind in kinds]
    parts = [f"{number:,} {kind.word}" for kind, number in reversed(sums) if number]
    weeks = (days[-1].date - first).days // WEEK + 1 if days else 0
    return Calendar(
        cells=cells,
        kinds=tuple(kinds),
        labels=(*_weekdays(), *_months(cells)) if days else (),
        width=LEFT + weeks * STEP_X,
        height=TOP + WEEK * STEP_Y,
        total=sum(number for _, number in sums),
        said=f"{name}: {', '.join(parts) or 'none'}.",
    )


def _cell(day: Day, kinds: Sequence[Kind], most: int, first: date) -> Cell:
    values = tuple(day.numbers.get(kind.name, 0) for kind in kinds)
    total = sum(values)
    worst = next((kind for kind, number in zip(kinds, values, strict=True) if number), None)
    week, weekday = divmod((day.date - first).days, WEEK)
    x, y = LEFT + week * STEP_X, TOP + weekday * STEP_Y
    parts = [f"{number:,} {kind.word}" for kind, number in zip(kinds, values, strict=True) if number]
    return Cell(
        part=day,
        kind=worst,
        shade=-(-SHADES * total // most) if total else 1,
        x=x,
        y=y,
        path=_path(worst, x, y) if worst else "",
        total=total,
        said=f"{day.words}: {', '.join(parts) or 'none'}",
        values=values,
    )


def _path(kind: Kind, x: int, y: int) -> str:
    if kind.shape == "pointed":
        return f"M{x} {y + HEIGHT}v-6l{WIDTH // 2} -5 {WIDTH // 2} 5v6z"
    if kind.shape == "open":  # smaller, as its outline is drawn around it
        return f"M{x + 1} {y + 1}h{WIDTH - 2}v{HEIGHT - 2}h{2 - WIDTH}z"
    return f"M{x} {y}h{WIDTH}v{HEIGHT}h{-WIDTH}z"


def _weekdays() -> list[Label]:
    return [Label(0, TOP + n * STEP_Y + 9, text) for n, text in ((0, "Mon"), (2, "Wed"), (4, "Fri"))]


def _months(cells: Sequence[Cell]) -> list[Label]:
    """Name each month above the first column that begins in it, where there is room."""
    labels: list[Label] = []
    month = 0
    for cell in cells:
        if cell.part.date.month == month or (cell.y != TOP and labels):
            continue
        month = cell.part.date.month
        if labels and cell.x - labels[-1].x < ROOM_OF_MONTH * STEP_X:
            labels.pop()
        labels.append(Label(cell.x, TOP - 4, f"{cell.part.date:%b}"))
    return labels
