"""What the gate held, with what helps a person to decide: its source turn, and the nearest known memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from memories.models import Fact, GateDecision, Memory
from memories.queries.similar import Similar, similar_to


@dataclass(frozen=True, slots=True)
class HeldMemory:
    """A memory that waits. `fact` is where an observed session said it; `nearest` what is known most like it."""

    memory: Memory
    fact: Fact | None
    nearest: Similar | None


def held_memories(rows: QuerySet[Memory], limit: int) -> list[HeldMemory]:
    """Return the first of `rows`. To find the nearest costs a few queries for each memory: keep `limit` small."""
    found = list(rows.select_related("project")[:limit])
    facts = facts_of(memory.pk for memory in found)
    return [HeldMemory(memory, facts.get(memory.pk), next(iter(similar_to(memory)), None)) for memory in found]


def facts_of(ids: Iterable[int]) -> dict[int, Fact]:
    """Return by memory the latest fact that it is part of; a memory without facts is left out."""
    rows = Fact.objects.filter(memory__in=list(ids)).select_related("segment").order_by("pk")
    return {fact.memory_id: fact for fact in rows if fact.memory_id is not None}


def because(rows: QuerySet[Memory], code: str) -> QuerySet[Memory]:
    """Filter to the memories that the gate held for this reason (a code of `capture.reasons`) in the first place."""
    return rows.filter(pk__in=GateDecision.objects.filter(reasons__0=code, memory__isnull=False).values("memory"))
