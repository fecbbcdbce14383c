"""Compute stacked bars over time: one bar for each part of a range, one block for each kind in it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

STEP, GAP = 16.0, 4.0
"""From one bar to the next, and what is left free between two, in units of the plot, which stretches to its box."""
CUT = 1.0
"""What is left free between two blocks of a bar."""
HIGHEST = 3
"""A limit of more times the highest bar is not drawn."""
ROOM = 2.0
"""What is left free above the highest bar."""
POINT = 4.0
"""How far the shoulders of a pointed block lie below its tip, at most half of its height."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a block stands for: its outcome (a class `o-…`), and its word. `shape`: plain, hatched, pointed or open."""

    name: str
    outcome: str
    word: str
    shape: str = "plain"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the range: `label` for the axis, `words` ("Mon 09:00 to 10:00"), its list, and numbers by kind."""

    label: str
    words: str
    url: str
    numbers: Mapping[str, float]
    span: str = ""
    """The period as text, for a script."""


@dataclass(frozen=True, slots=True)
class Bar:
    """`room` is the path around all of the room that belongs to the bar; `said` states its numbers."""

    room: str
    part: Part
    total: float
    said: str
    values: tuple[str, ...]
    """The numbers for people, in the order of the kinds."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label of the axis, at `x` percent of the width; `anchor` says which end of the text stands there."""

    x: float
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Bars:
    """The plot is `width` by `height` units; the base line is at its bottom, `top` is the number at its upper edge."""

    bars: tuple[Bar, ...]
    blocks: tuple[tuple[Kind, str], ...]
    """For each kind that there was, the path of its blocks in all bars."""
    kinds: tuple[Kind, ...]
    totals: tuple[tuple[Kind, str], ...]
    """The sums of all bars for people, of the kinds that there were."""
    labels: tuple[Label, ...]
    width: float
    height: float
    top: str
    limit: str
    """The path of the line of a limit; empty without one."""
    base: str
    grid: str
    said: str
    total: float

    @property
    def filled(self) -> tuple[Bar, ...]:
        """The bars of the table: those of parts in which there was something."""
        return tuple(bar for bar in self.bars if bar.total)


def whole(number: float) -> str:
    return f"{number:,.0f}"


def bars(
    name: str,
    parts: Sequence[Part],
    kinds: Sequence[Kind],
    *,
    height: float = 92.0,
    labels: int = 5,
    end: str = "now",
    limit: float = 0,
    written: Callable[[float], str] = whole,
) -> Bars:
    """Draw `parts`, oldest first. `kinds` are in their order from the base line up: what matters stands at the base.

    `name` begins the sentence that states the numbers; `end` is the label of the right edge; `written` writes a number
    for people. `limit`: a number that is drawn as a line, unless the bars would be too low beside it; 0: there is none.
    """
    highest = max((sum(part.numbers.get(kind.name, 0) for kind in kinds) for part in parts), default=0)
    limit = limit if limit <= HIGHEST * highest else 0
    top = max(highest, limit)
    width = max(len(parts), 1) * STEP
    scale = (height - ROOM) / (top or 1)
    sums = [(kind, sum(part.numbers.get(kind.name, 0) for part in parts)) for kind in kinds]
    totals = tuple((kind, written(number)) for kind, number in sums if number)
    summary = ", ".join(f"{number} {kind.word}" for kind, number in reversed(totals)) or "none"
    return Bars(
        bars=tuple(_bar(n, part, kinds, height, written) for n, part in enumerate(parts)),
        blocks=tuple((kind, path) for kind, path in _paths(parts, kinds, height, scale).items() if path),
        kinds=tuple(kinds),
        totals=totals,
        labels=tuple(_labels([part.label for part in parts], labels, end)),
        width=width,
        height=height,
        top=written(top) if top else "",
        limit=f"M0 {height - limit * scale:g}h{width:g}" if limit else "",
        base=f"M0 {height:g}h{width:g}",
        grid=f"M0 {ROOM:g}h{width:g}M0 {(height + ROOM) / 2:g}h{width:g}",
        said=f"{name}: {summary}.",
        total=sum(number for _, number in sums),
    )


def _bar(n: int, part: Part, kinds: Sequence[Kind], height: float, to_text: Callable[[float], str]) -> Bar:
    numbers = [(kind, part.numbers.get(kind.name, 0)) for kind in kinds]
    summary = ", ".join(f"{to_text(number)} {kind.word}" for kind, number in numbers if number)
    return Bar(
        room=f"M{n * STEP:g} 0h{STEP:g}v{height:g}h{-STEP:g}z",
        part=part,
        total=sum(number for _, number in numbers),
        said=f"{part.words}: {summary or 'none'}",
        values=tuple(to_text(number) for _, number in numbers),
    )


def _paths(parts: Sequence[Part], kinds: Sequence[Kind], height: float, scale: float) -> dict[Kind, str]:
    paths = dict.fromkeys(kinds, "")
    for n, part in enumerate(parts):
        low = height
        for kind in kinds:
            size = part.numbers.get(kind.name, 0) * scale
            if size > 0:
                paths[kind] += _block(kind, n * STEP + GAP / 2, low - size, max(size - CUT, size / 2))
                low -= size
    return paths


def _block(kind: Kind, x: float, y: float, height: float) -> str:
    """The outline of one block; `y` is its upper edge."""
    width, shoulder = STEP - GAP, min(POINT, height / 2)
    if kind.shape != "pointed":
        return f"M{x:g} {y:.2f}h{width:g}v{height:.2f}h{-width:g}z"
    return (
        f"M{x:g} {y + shoulder:.2f}l{width / 2:g} {-shoulder:.2f} {width / 2:g} {shoulder:.2f}"
        f"v{height - shoulder:.2f}h{-width:g}z"
    )


def _labels(texts: Sequence[str], most: int, end: str) -> list[Label]:
    """Place at most `most` labels: each at the left edge of its bar, the last one (`end`) at the right edge."""
    every = max(1, -(-len(texts) // max(1, most - 1)))
    shown = [n for n in range(0, len(texts), every) if n == 0 or n <= len(texts) - every / 2]
    labels = [Label(round(100 * n / len(texts), 2), texts[n], "middle" if n else "start") for n in shown]
    return [*labels, Label(100, end, "end")] if texts else []
