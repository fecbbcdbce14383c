"""Report what the stages of the pipeline did: `record()` is the one way. `prune()` deletes old ones."""

from __future__ import annotations

from datetime import datetime, timedelta

from claudeops.lib.append import append
from memories.models import RecordLevel, TelemetryRecord, to_utc

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


def record(
    action: str,
    *,
    component: str,
    source: str,
    success: bool = True,
    level: str = "",
    duration_ms: int | None = None,
    key: str | None = None,
    at: datetime | None = None,
    **metadata: object,
) -> None:
    """Store a record of a stage that ended at `at` (UTC; now when None).

    `action` is `memory.STAGE.OUTCOME`, such as `memory.observe.completed`. `level` is by `success` unless it is given.
    With `key` it is stored once, however often the stage is repeated: call it inside of the transaction that ends the
    stage. Without one it never fails and never waits for the database's writer. `metadata` are counts and names, never
    a text that somebody wrote.
    """
    row = TelemetryRecord(
        key=key,
        at=to_utc(at),
        level=level or (RecordLevel.INFO if success else RecordLevel.ERROR),
        source=source[:40],
        component=component[:40],
        action=action[:64],
        success=success,
        duration_ms=duration_ms,
        metadata=metadata,
    )
    if key is None:
        append(row)
    else:
        TelemetryRecord.objects.bulk_create([row], ignore_conflicts=True)


__all__ = ["prune", "record"]
