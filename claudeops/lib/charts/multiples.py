"""Compute a row of small bars without an axis, to stand beside a number and others of its kind. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 96, 18


@dataclass(frozen=True, slots=True)
class Multiple:
    """`path` is one line up for each value above 0, from the base line; `total` is the sum of the values.

    `places` are where the part of each value begins, `step` is how wide a part is.
    """

    path: str
    stroke: float
    total: int
    places: tuple[float, ...]
    step: float
    width: int = WIDTH
    height: int = HEIGHT


def multiple(values: Sequence[int]) -> Multiple:
    """Draw values, oldest first; the highest has the full height, each other one at least a ninth of it."""
    step = WIDTH / max(len(values), 1)
    top = max(values, default=0)
    path = "".join(
        f"M{round((n + 0.5) * step, 2):g} {HEIGHT}v{-max(2.0, round(HEIGHT * value / top, 2)):g}"
        for n, value in enumerate(values)
        if value > 0
    )
    places = tuple(round(n * step, 2) for n in range(len(values)))
    return Multiple(path, round(min(3.0, step * 0.7), 2), sum(values), places, round(step, 2))
