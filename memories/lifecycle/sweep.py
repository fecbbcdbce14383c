"""Apply decay and expiry to all due memories. Idempotent; runs may overlap; with nothing due, it takes no lock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet

from memories.lifecycle.bulk_write import BATCH, write_all
from memories.lifecycle.lock import writing
from memories.lifecycle.rules import aged, decay_start
from memories.lifecycle.write import Why
from memories.models import Change, Memory, Verdict, to_utc
from memories.taxonomy import TAXONOMIES
from memories.telemetry import record

ACTOR = "system"

PAUSE = 0.05
"""Seconds between batches: SQLite's writers poll every 100 ms; without it one waited 10 s (100,000 rows)."""


@dataclass(frozen=True, slots=True)
class Swept:
    """How many memories lost confidence, became inactive by that, and expired."""

    decayed: int = 0
    deactivated: int = 0
    expired: int = 0

    def __add__(self, other: Swept) -> Swept:
        return Swept(self.decayed + other.decayed, self.deactivated + other.deactivated, self.expired + other.expired)


def sweep(
    at: datetime | None = None,
    *,
    source: str = "command",
    only: Change | None = None,
    evidence: dict[str, Any] | None = None,
) -> Swept:
    """Apply decay and expiry as of `at` (aware UTC, default now), in batches of one transaction each.

    `only` (DECAYED or EXPIRED) applies one of them. `evidence` is stored with each change. `source` is what runs it,
    for its telemetry record; a sweep that changes nothing leaves none.
    """
    when, begun = to_utc(at), time.monotonic()
    ids = _due_ids(when)
    total = Swept()
    for start in range(0, len(ids), BATCH):
        if start and not connection.in_atomic_block:
            time.sleep(PAUSE)
        total += _sweep(ids[start : start + BATCH], when, only, evidence)
    if total != Swept():
        took = int((time.monotonic() - begun) * 1000)
        record("memory.decay.completed", component="lifecycle", source=source, duration_ms=took, **asdict(total))
    return total


def planned(at: datetime) -> Iterator[tuple[Memory, Change, dict[str, Any], str]]:
    """Yield (memory, kind, new columns, reason) for what a sweep at `at` would change. Writes nothing."""
    ids = _due_ids(at)
    for start in range(0, len(ids), BATCH):
        for row in Memory.objects.filter(pk__in=ids[start : start + BATCH]).order_by("pk"):
            if (effect := _change(row, at)) is not None:
                yield row, *effect


def _due_ids(at: datetime) -> list[int]:
    return sorted(set(due(at).values_list("pk", flat=True)))


def is_due(at: datetime | None = None) -> bool:
    """Whether a sweep at `at` would change anything. Reads indexes only."""
    return due(to_utc(at)).exists()


def due(at: datetime) -> QuerySet[Memory]:
    """Return what a sweep at `at` changes; a memory that both decays and expires is in it twice.

    One SELECT for each partial index (memories_decay, memories_expiry): no database uses one for a term of an OR.
    """
    active = Memory.objects.filter(active=True).order_by()
    parts = [active.filter(expires_at__isnull=False, expires_at__lte=at)]
    for taxonomy in TAXONOMIES.values():
        ageing = active.filter(persistent=False, taxonomy=taxonomy.slug)
        if decay := taxonomy.decay:
            period_over = Q(decayed_until=None) | Q(decayed_until__lte=at - decay.every)
            confirmed = at - decay.every - decay.grace
            parts.append(ageing.filter(period_over, updated_at__lte=confirmed, verdict=Verdict.ALLOW))
    return parts[0].union(*parts[1:], all=True)


def _sweep(ids: list[int], at: datetime, only: Change | None, evidence: dict[str, Any] | None) -> Swept:
    """Sweep one batch. Rows are locked before they are read: one that was confirmed meanwhile is no longer due."""
    total = Swept()
    with writing():
        changes = []
        for row in Memory.objects.select_for_update(of=("self",)).filter(pk__in=ids).order_by("pk"):
            effect = _change(row, at)
            if effect is None or only not in (None, effect[0]):
                continue
            kind, new, reason = effect
            total += Swept(expired=1) if kind == Change.EXPIRED else Swept(decayed=1, deactivated="active" in new)
            changes.append((row, kind, new, Why(ACTOR, at, reason, evidence)))
        write_all(changes)
    return total


def _change(row: Memory, at: datetime) -> tuple[Change, dict[str, Any], str] | None:
    """Return (kind, new columns, reason) of what time does to a memory until `at`; None for nothing."""
    new = aged(row, at)
    if "confidence" in new:
        return Change.DECAYED, new, _reason(row, new["decayed_until"])
    return (Change.EXPIRED, new, "It has expired.") if new else None


def _reason(row: Memory, until: datetime) -> str:
    decay = TAXONOMIES[row.taxonomy].decay
    assert decay is not None  # noqa: S101
    periods = (until - decay_start(row.updated_at, row.decayed_until, decay)) // decay.every
    return f"{periods} × {decay.step:g} taken: not confirmed since {row.updated_at:%Y-%m-%d}."
