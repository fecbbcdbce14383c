"""How long the pages of telemetry take with many records, and the text for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone

from claudeops.features.metrics import render
from memories.models import TelemetryRecord
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms

pytestmark = pytest.mark.django_db(transaction=True)
EACH = 10
"""Records of a memory of BENCH_SIZES: 1 M at 100,000."""
STAGES = ("prepare", "call", "parse", "classify", "gate", "match", "store", "inject", "capture", "triage")
DAYS = 30
ADDRESSES = (
    "/diagnostics",
    "/diagnostics?component=gate",
    "/diagnostics?level=error",
    "/diagnostics?action=memory.store.failed",
    "/diagnostics/decisions",
)


def test_the_pages_of_telemetry_with_many_records(
    report: Report, sizes: list[int], smoke: bool, admin_client: Client
) -> None:
    number = sizes[-1] * EACH
    rows = _records(number)
    while found := list(islice(rows, 10_000)):
        TelemetryRecord.objects.bulk_create(found)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    lines: list[tuple[str, ...]] = []
    admin_client.get("/diagnostics")  # imports and templates
    for address in ADDRESSES:
        series = Series()
        for _ in range(2 if smoke else 10):
            cache.clear()
            answer = series.time(admin_client.get, address)
            assert answer.status_code == 200
        lines.append((address, ms(series.median), ms(series.p95)))
    exposing = Series()
    for _ in range(2 if smoke else 10):
        cache.clear()
        assert exposing.time(render, timezone.now())
    lines.append(("/metrics, uncached", ms(exposing.median), ms(exposing.p95)))
    report(f"TELEMETRY with {number:,} records of {DAYS} days", ("address", "ms", "p95"), lines)


def _records(number: int) -> Iterator[TelemetryRecord]:
    now = timezone.now()
    step = timedelta(days=DAYS) / number
    for n in range(number):
        stage, failed = STAGES[n % len(STAGES)], n % 97 == 0
        yield TelemetryRecord(
            at=now - step * n,
            level="error" if failed else "info",
            source="schedule",
            component=stage,
            action=f"memory.{stage}.{'failed' if failed else 'completed'}",
            success=not failed,
            duration_ms=n % 500,
            metadata={"facts": n % 7, "part": n},
        )
