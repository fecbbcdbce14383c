"""A store with something to do for each step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from memories.models import Disagreement, Memory, MemoryChange
from tests.support.factories import MemoryFactory

AT = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
SAME = "The backup of jellyfin runs at 03:00 and takes an hour"


def knowledge(days: int, text: str, **more: Any) -> Memory:
    given = {"taxonomy": "knowledge", "category": "operations", "service": None, "observation": text}
    at = AT - timedelta(days=days)
    return MemoryFactory(**given | {"updated_at": at, "created_at": at} | more)


def fill(count: int = 1) -> None:
    """Make `count` memories for each step, and some that must stay as they are."""
    for n in range(count):
        old = AT - timedelta(days=44)
        MemoryFactory(observation=f"Host {n} swaps under load", service=f"host-{n}", updated_at=old)
        MemoryFactory(
            observation=f"Host {n} is being moved",
            service=f"moved-{n}",
            expires_at=AT - timedelta(hours=1),
            updated_at=AT,
        )
        for _ in range(2):
            MemoryFactory(observation=SAME, service=f"media-{n}", updated_at=AT - timedelta(days=1))
        knowledge(100, f"The owner of rack {n} is the network team")
        knowledge(200, f"Invoices of customer {n} go out on Mondays", stale_at=AT - timedelta(days=10))
        knowledge(100, f"Printer {n} stands on the third floor", recall_count=1)
        knowledge(300, f"Door {n} opens with the blue key", persistent=True)


def dump() -> list[Any]:
    """Return all that a run writes, without the numbers of rows that a rolled back transaction uses up."""
    columns = [field.attname for field in Memory._meta.concrete_fields if field.attname != "uuid"]
    changes = MemoryChange.objects.order_by("memory_id", "pk").values_list(
        "memory_id", "kind", "at", "before", "after", "reason", "actor"
    )
    questions = Disagreement.objects.order_by("older", "newer").values_list(
        "older", "newer", "kind", "state", "created_at"
    )
    return [*Memory.objects.order_by("pk").values_list(*columns), *changes, *questions]
