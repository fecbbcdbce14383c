"""Memories by the thousand: a hundred services, all categories, texts of the length and kind that agents write.

Memory `number` is the same in every run: its service, category and words follow from the number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memories.models import Inactive, Memory, Source, Verdict
from memories.store import Statement
from memories.taxonomy import OPS

SERVICES = 100
SCOPES = SERVICES * len(OPS.categories)
BATCH = 2000

SYLLABLES = ("ba", "do", "fu", "gi", "ka", "lo", "mu", "ne", "pi", "ra", "so", "tu", "va", "wo", "zi", "cha")
CONFIDENCES = (0.7, 0.7, 0.8, 0.7, 0.9, 0.6, 0.7, 1.0, 0.5, 0.8)


@dataclass(frozen=True, slots=True)
class Wording:
    """One fact about a part of a service: stated, restated in other words, and contradicted."""

    first: str
    again: str
    against: str


WORDINGS = {
    "timing": Wording(
        "The {} job takes 60s to finish after a restart, wait before checking its health",
        "The {} job takes about 60 seconds to finish after restart, wait before checking its health",
        "The {} job takes 5 minutes to finish after a restart, wait before checking its health",
    ),
    "dependency": Wording(
        "Must be started after the {} container",
        "It must be started after the {} container",
        "Can be started independently of the {} container",
    ),
    "behavior": Wording(
        "Sometimes the {} worker crashes on first start",
        "The {} worker sometimes crashes on its first start",
        "The {} worker never crashes on first start",
    ),
    "remediation": Wording(
        "Restarting the {} container clears the stale lock file",
        "A restart of the {} container clears the stale lock file",
        "Restarting the {} container does not clear the stale lock file",
    ),
    "maintenance": Wording(
        "The backup of the {} volume runs every night at 03:00",
        "Backup of the {} volume runs every night at 03:00",
        "The backup of the {} volume runs every night at 05:00",
    ),
}


def word(number: int) -> str:
    """Return a different word for each number, like names of containers."""
    syllables = []
    while True:
        number, place = divmod(number, len(SYLLABLES))
        syllables.append(SYLLABLES[place])
        if not number:
            return "".join(syllables).ljust(4, "k") + "x"


def service(number: int) -> str | None:
    """Return a service, and none one time in a hundred: general memories are a scope too."""
    place = number % SERVICES
    return f"service-{place:02}" if place else None


def category(number: int) -> str:
    return OPS.categories[number // SERVICES % len(OPS.categories)]


def observation(number: int, wording: str = "first") -> str:
    return str(getattr(WORDINGS[category(number)], wording)).format(word(number))


def candidate(number: int, wording: str = "first") -> Statement:
    return Statement(category(number), observation(number, wording), service(number))


def store(count: int, differing: Callable[[int], dict[str, Any]], *, first: int = 0) -> None:
    """Store `count` memories from number `first` on, with the given differences."""
    for begin in range(first, first + count, BATCH):
        Memory.objects.bulk_create(
            _memory(number, differing(number)) for number in range(begin, min(begin + BATCH, first + count))
        )


def _memory(number: int, differing: dict[str, Any]) -> Memory:
    usual = {"confidence": CONFIDENCES[number % len(CONFIDENCES)], "source": Source.RUN, "tier": 1}
    where = {"service": service(number), "category": category(number)}
    return Memory(**{**usual, **where, "observation": observation(number), **differing})


def mixed(number: int) -> dict[str, Any]:
    """Return the fields of a memory of an older database: a tenth is inactive, a few are held for review."""
    if number % 10 == 1:
        return {"active": False, "inactive_reason": Inactive.DECAYED, "confidence": 0.2}
    if number % 200 == 7:
        return {"verdict": Verdict.HOLD, "verdict_reason": "too short to say anything"}
    return {}


def forget() -> None:
    """Empty the tables of memories and of what refers to them."""
    memories = Memory._meta.db_table
    pointing = {relation.field.model._meta.db_table for relation in Memory._meta.related_objects} - {memories}
    with connection.cursor() as cursor:
        for table in (*sorted(pointing), memories):
            cursor.execute(f"DELETE FROM {table}")


def settle() -> None:
    """Run what PostgreSQL's autovacuum does soon after so many inserts; SQLite needs nothing."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE memories, memory_changes")
