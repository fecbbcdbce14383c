"""How long a nightly maintenance run takes, by step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memories.curate.maintenance import duplicates, maintain_now
from memories.recall import keyword_index
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 3, tzinfo=UTC)
COMPARED = 1_000
"""Memories that the duplicates sweep compares here; a night compares up to `duplicates.LOOKED_AT`."""


def test_a_maintenance_run(report: Report, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "LOOKED_AT", COMPARED)
    rows = []
    for size in sizes:
        facts.forget()
        facts.store(size, lambda number: {"updated_at": NOW - timedelta(days=44 if number % 100 == 0 else 1)})
        facts.settle()
        while keyword_index.catch_up():
            pass
        run = maintain_now(by="system", at=NOW)
        for step in run.steps.order_by("position"):
            rows.append((step.name, f"{size:,}", f"{step.counts.get('did', 0):,}", f"{step.duration_ms:,}"))
    columns = ("step", "memories", "changed", "ms")
    note = f"One run each, in which 1 % lose confidence by time and {COMPARED:,} memories are compared for duplicates."
    report("NIGHTLY MAINTENANCE", columns, rows, note)
