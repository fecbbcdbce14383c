"""How long the ageing of all memories takes: when nothing is due, when little is, when everything is."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection

from memories.lifecycle.lock import writing
from memories.lifecycle.sweep import BATCH, Swept, sweep
from memories.models import Change, MemoryChange
from memories.taxonomy import OPS
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, growth, ms

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
RUNS = 5


def confirmed(per_run: float) -> Callable[[int], dict[str, Any]]:
    """When each was confirmed last, so that of the sweeps at NOW + 1 h, + 2 h … each finds another such share due.

    Of the others half are fresh, half old: from those a sweep of yesterday took what there was to take.
    """
    assert OPS.decay is not None
    first_loss = OPS.decay.grace + OPS.decay.every
    share = round(1 / per_run)

    def differing(number: int) -> dict[str, Any]:
        run = number % share
        if run >= RUNS and number % 2:
            return {"updated_at": NOW - HOUR, "confidence": 1.0}
        if run >= RUNS:
            return {"updated_at": NOW - DAY - first_loss, "decayed_until": NOW - DAY, "confidence": 0.9}
        return {"updated_at": NOW + (run + 1) * HOUR - timedelta(minutes=5) - first_loss, "confidence": 1.0}

    return differing


class Others:
    """Another process's writing, as a thread: takes the lock of the memories again and again, and waits for it."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._over = Event()
        self._thread = Thread(target=self._write)

    def _write(self) -> None:
        try:
            while not self._over.wait(0.02):
                begin = time.perf_counter()
                with writing():
                    self.longest = max(self.longest, time.perf_counter() - begin)
        finally:
            connection.close()

    def __enter__(self) -> Others:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()


def test_the_sweep(report: Report, sizes: list[int], smoke: bool) -> None:
    assert OPS.decay is not None
    rows = []
    before: dict[str, float] = {}
    for size in sizes:
        facts.forget()
        facts.store(size, confirmed(0.01))
        facts.settle()
        nothing = Series()
        for _ in range(20):
            assert nothing.time(sweep, NOW) == Swept()
        little = Series()
        for run in range(RUNS):
            at = NOW + (run + 1) * HOUR
            assert little.time(sweep, at) == Swept(decayed=size // 100)

        facts.forget()
        facts.store(size, lambda number: {"updated_at": NOW, "confidence": 1.0})
        facts.settle()
        everything = Series()
        for run in range(RUNS):
            at = NOW + OPS.decay.grace + (run + 1) * OPS.decay.every
            assert everything.time(sweep, at) == Swept(decayed=size)
        with Others() as others:
            assert sweep(NOW + OPS.decay.grace + (RUNS + 1) * OPS.decay.every) == Swept(decayed=size)
        assert MemoryChange.objects.filter(kind=Change.DECAYED).count() == (RUNS + 1) * size

        for name, due, series, wait in (
            ("nothing due", 0, nothing, ""),
            ("1 % due", size // 100, little, ""),
            ("all due", size, everything, ms(others.longest)),
        ):
            grown = growth(series.median, before.get(name))
            rows.append((name, f"{size:,}", f"{due:,}", ms(series.median), ms(series.p95), grown, wait))
            before[name] = series.median
    rows.sort(key=lambda row: ("nothing due", "1 % due", "all due").index(row[0]))
    columns = ("sweep", "memories", "due", "median ms", "p95 ms", "growth", "others wait ms")
    notes = (
        f"Each due memory gets a row of history. Medians of {RUNS} sweeps (20 when nothing is due), all committed.",
        f"At most {BATCH:,} change in one transaction; the last column: the longest another writer waited.",
    )
    report("DECAY SWEEP (aim: 60 s when all of 100,000 are due)", columns, rows, *notes)
