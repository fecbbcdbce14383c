"""The memories most alike one: the candidates of recall's two searches, and how the matcher relates them to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from django.conf import settings
from django.db.models import QuerySet

from claudeops.lib.diff import GONE, NEW, Piece, word_diff
from memories import candidates
from memories.candidates import CHOSEN, Scope, comparable
from memories.capture.fields import agent_id
from memories.embedding.base import STORED
from memories.embedding.state import answering
from memories.matching import Kind, relation
from memories.models import Fact, GateDecision, Memory
from memories.recall import vector_search
from memories.recall.filters import EVERYTHING, where
from memories.recall.query_vector import QueryVector

MOST = 5
LEAST_COSINE, LEAST_SHARED = 0.5, 0.3
"""Below both of these two texts have nothing to do with one another."""


@dataclass(frozen=True, slots=True)
class Similar:
    """A memory and its similarity in words, without a full stop."""

    memory: Memory
    words: str


def similar_to(memory: Memory) -> list[Similar]:
    """Return at most MOST memories of the same project and agent (or of none), the nearest first.

    The stored vector is compared, so no model is asked; without one only words are. At most 2 × CHOSEN texts, and those
    equal to it, are compared.
    """
    rows = Memory.objects.all().isolated_to(memory.project_id, memory.agent, file_of=agent_id(memory.agent or ""))
    scope = Scope(where(rows), where(comparable(Memory.objects.all()).exclude(pk=memory.pk)))
    vector = _vector_of(memory)
    ids = candidates.in_words(scope, memory.observation, memory.service, CHOSEN)
    ids |= set(candidates.in_meaning(scope, vector, CHOSEN)) if vector else set()
    cosines = vector_search.cosines(vector, ids, EVERYTHING) if vector else {}
    pairs = [_related(row, memory, cosines) for row in comparable(rows).filter(pk__in=ids).exclude(pk=memory.pk)]
    near = sorted((one for one in pairs if one), key=lambda one: (-one[0], one[1].memory.pk))
    return [similar for _, similar in near[:MOST]]


def _vector_of(memory: Memory) -> QueryVector | None:
    """Return the stored vector of a memory; None without one, and while semantic search is off."""
    active = answering() if settings.CLAUDEOPS_EMBEDDINGS != "off" else None
    if active is None:
        return None
    for _, raw in vector_search.read_vectors(active.model, [memory.pk], EVERYTHING):
        if len(raw) == active.model.dimensions * STORED.itemsize:
            return QueryVector(active.model, np.frombuffer(raw, dtype=STORED), active.newest)
    return None


def _related(row: Memory, memory: Memory, cosines: Mapping[int, float]) -> tuple[float, Similar] | None:
    """Return how near a memory is, for sorting, and what is said of it; None for one that is not similar."""
    alike = row.service == memory.service  # the matcher answers for texts of one service
    cosine = cosines.get(row.pk)
    match = relation(row.observation, memory.observation, about=memory.service if alike else None, cosine=cosine)
    if alike and match.kind is Kind.REINFORCES:
        return 3.0, Similar(row, "says the same")
    if alike and match.kind is Kind.CONTRADICTS:
        return 2.0, Similar(row, "contradicts it")
    if cosine is not None and cosine >= LEAST_COSINE:
        return cosine, Similar(row, f"{cosine:.0%} alike in meaning")
    if match.score >= LEAST_SHARED:
        return match.score, Similar(row, f"shares {match.score:.0%} of the content")
    return None


@dataclass(frozen=True, slots=True)
class Nearest:
    """A known memory; `words` say how near it is. `known` spells its text, `new` the other one, in pieces."""

    memory: Memory
    words: str
    known: tuple[Piece, ...]
    new: tuple[Piece, ...]


def nearest_to(memory: Memory) -> Nearest | None:
    """Return the nearest memory of the same project and agent; None without a similar one. Two searches."""
    similar = similar_to(memory)
    return compared(similar[0].memory, memory.observation, similar[0].words) if similar else None


def compared(known: Memory, text: str, words: str) -> Nearest:
    pieces = word_diff(known.observation, text)
    return Nearest(
        known,
        words,
        tuple(piece for piece in pieces if piece.kind != NEW),
        tuple(piece for piece in pieces if piece.kind != GONE),
    )


@dataclass(frozen=True, slots=True)
class HeldMemory:
    """A memory that waits. `fact` is where an observed session said it; `nearest` what is known most like it."""

    memory: Memory
    fact: Fact | None
    nearest: Similar | None


def held_memories(rows: QuerySet[Memory], limit: int) -> list[HeldMemory]:
    """Return the first of `rows`. To find the nearest costs a few queries for each memory: keep `limit` small."""
    memories = list(rows.select_related("project")[:limit])
    facts = facts_of(memory.pk for memory in memories)
    return [HeldMemory(memory, facts.get(memory.pk), next(iter(similar_to(memory)), None)) for memory in memories]


def facts_of(ids: Iterable[int]) -> dict[int, Fact]:
    """Return by memory the latest fact that it is part of; a memory without facts is left out."""
    rows = Fact.objects.filter(memory__in=list(ids)).select_related("segment").order_by("pk")
    return {fact.memory_id: fact for fact in rows if fact.memory_id is not None}


def because(rows: QuerySet[Memory], code: str) -> QuerySet[Memory]:
    """Filter to the memories that the gate held for this reason (a code of `capture.reasons`) in the first place."""
    return rows.filter(pk__in=GateDecision.objects.filter(reasons__0=code, memory__isnull=False).values("memory"))
