"""Delete old telemetry records."""

from __future__ import annotations

from datetime import datetime, timedelta

from memories.models import TelemetryRecord, to_utc

BATCH = 1_000
KEPT = timedelta(days=30)


def prune(at: datetime | None = None) -> int:
    """Delete the records older than KEPT, a batch at a time; return how many."""
    before = to_utc(at) - KEPT
    old = TelemetryRecord.objects.filter(at__lt=before).order_by("at", "pk")
    total = 0
    while batch := list(old.values_list("pk", flat=True)[:BATCH]):
        total += TelemetryRecord.objects.filter(pk__in=batch).delete()[0]
    return total
