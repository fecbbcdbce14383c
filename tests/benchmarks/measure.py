"""Measuring and showing: series of times, the memory of this process, tables. Knows nothing of what is measured."""

from __future__ import annotations

import math
import os
import platform
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

import django
import psutil

from tests.benchmarks.evaluation.machine import database, processor

MEGABYTE = 1_000_000
Given = TypeVar("Given")


@dataclass(slots=True)
class Series:
    """Times of the same thing done several times, in seconds."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def p95(self) -> float:
        """By nearest rank: of 20 runs the second slowest, of fewer the slowest."""
        return sorted(self.seconds)[math.ceil(0.95 * len(self.seconds)) - 1]

    def time(self, call: Callable[..., Given], *values: Any, **named: Any) -> Given:
        """Call once, note how long it took, hand on what it gave."""
        begin = time.perf_counter()
        given = call(*values, **named)
        self.seconds.append(time.perf_counter() - begin)
        return given


@dataclass(slots=True)
class Peak:
    """Bytes at most, above what there was at the beginning; filled when the block ends."""

    bytes: int = 0


def resident() -> int:
    """Bytes of this process in the machine's memory, with what it maps from files."""
    return int(psutil.Process().memory_info().rss)


def own() -> int:
    """Bytes of `resident` that it does not map from files (Linux). SQLite maps the first 100 MB of the database."""
    memory = psutil.Process().memory_info()
    return int(memory.rss - memory.shared)


@contextmanager
def peak_of_process(measured: Callable[[], int] = resident) -> Iterator[Peak]:
    """What the operating system gave the process at most, looked at every 5 ms."""
    peak, over = Peak(), threading.Event()
    before = measured()

    def watch() -> None:
        while not over.wait(0.005):
            peak.bytes = max(peak.bytes, measured() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()
        peak.bytes = max(peak.bytes, measured() - before)


@contextmanager
def peak_of_python() -> Iterator[Peak]:
    """What Python allocated at most. Slows everything down several times: not for timed runs."""
    peak = Peak()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        yield peak
        peak.bytes = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def ms(seconds: float) -> str:
    """Milliseconds with three figures: 0.85, 12.4, 1,240."""
    value = seconds * 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def mb(size: float) -> str:
    return f"{size / MEGABYTE:.1f}"


def growth(now: float, before: float | None) -> str:
    """How many times as long as at the size before."""
    return "" if not before else f"×{now / before:.1f}"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *notes: str) -> str:
    """Text with aligned columns, the first to the left, the others to the right."""
    widths = [max(len(row[place]) for row in (columns, *rows)) for place in range(len(columns))]

    def shown(row: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(w) if n == 0 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        return "  " + "   ".join([first, *others]).rstrip()

    rule = "  " + "─" * (sum(widths) + 3 * (len(widths) - 1))
    return "\n".join(["", title, shown(columns), rule, *map(shown, rows), *(f"  {note}" for note in notes)])


def head() -> str:
    """What the figures were taken on, in one line."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"claudeops benchmarks · {database()} · Python {platform.python_version()} · Django {django.__version__} · "
        f"{usable} cores, {processor()} · load {load}"
    )
