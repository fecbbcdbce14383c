"""Compute small bars of the last values of a figure, one bar for each night. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

MOST, STEP, WIDTH, HEIGHT = 14, 7, 6, 18
"""Nights, from one bar to the next, and the size of the highest bar, in pixels."""
LEAST = 2
"""Height of the lowest bar, in pixels."""


@dataclass(frozen=True, slots=True)
class Bar:
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class Nights:
    """The bars, the oldest first, within `width` and `height`; `said` states their numbers. Zero has no bar."""

    bars: tuple[Bar, ...]
    said: str
    usual: int
    width: int = MOST * STEP
    height: int = HEIGHT
    bar_width: int = WIDTH


def nights(values: Sequence[int]) -> Nights:
    """Draw the last MOST of `values`, the oldest first; `usual` is the median of those before the last one."""
    shown = [max(0, value) for value in values[-MOST:]]
    top = max([*shown, 1])
    start = MOST - len(shown)
    bars = []
    for n, value in enumerate(shown):
        if value:
            height = max(LEAST, round(HEIGHT * value / top))
            bars.append(Bar((start + n) * STEP, HEIGHT - height, height))
    usual = median_low(shown[:-1]) if len(shown) > 1 else (shown[0] if shown else 0)
    last = shown[-1] if shown else 0
    count = f"{len(shown)} night{'' if len(shown) == 1 else 's'}"
    return Nights(tuple(bars), f"{count}: last {last:,}, usually {usual:,}, at most {max([*shown, 0]):,}", usual)
