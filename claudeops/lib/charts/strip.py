"""Compute the strip of an agent's last runs: one tick for each run, of one shape for each outcome. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

MOST = 20
"""Runs in one strip; the strip of fewer runs is as wide, and they stand at its right end."""
STEP, WIDTH, HEIGHT = 7, 6, 20
"""From one tick to the next, and the size of a tick, in pixels."""

OUTCOMES = {
    "ok": "completed",
    "failed": "failed",
    "escalated": "escalated",
    "stopped": "stopped",
    "skipped": "skipped",
    "running": "running",
}
"""The word for each outcome, in the order in which they are counted. `_icons.html` has the shape `t-…` of each."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its outcome (a key of OUTCOMES), its name for people, its page, and when it was (aware, or None)."""

    outcome: str
    name: str
    url: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """The tick of a run: its left edge is at `x`."""

    x: int
    run: Run


@dataclass(frozen=True, slots=True)
class Strip:
    """The ticks, the oldest first; `said` states their numbers: "20 runs: 17 completed, 2 failed, 1 escalated"."""

    ticks: tuple[Tick, ...]
    width: int
    said: str

    step: int = STEP
    tick_width: int = WIDTH
    height: int = HEIGHT


def strip(runs: Sequence[Run], *, most: int = MOST) -> Strip:
    """Draw the last `most` of `runs` (oldest first). Raises KeyError for an outcome that has no shape."""
    shown = runs[-most:]
    start = (most - len(shown)) * STEP
    ticks = tuple(Tick(start + n * STEP, run) for n, run in enumerate(shown))
    return Strip(ticks, most * STEP - (STEP - WIDTH), _said([run.outcome for run in shown]))


def _said(outcomes: Sequence[str]) -> str:
    if not outcomes:
        return "No runs yet"
    counts = Counter(OUTCOMES[outcome] for outcome in outcomes)
    parts = [f"{counts[word]} {word}" for word in OUTCOMES.values() if counts[word]]
    return f"{len(outcomes)} run{'' if len(outcomes) == 1 else 's'}: {', '.join(parts)}"
