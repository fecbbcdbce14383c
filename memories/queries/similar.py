"""The memories most alike one: the candidates of recall's two searches, and how the matcher relates them to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from django.conf import settings

from memories.candidates import generate
from memories.candidates.generate import Scope
from memories.candidates.relate import CHOSEN, comparable
from memories.capture.agent_id import agent_id
from memories.embedding.base import STORED
from memories.embedding.state import answering
from memories.matching import Kind, relation
from memories.models import Memory
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
    ids = generate.in_words(scope, memory.observation, memory.service, CHOSEN)
    ids |= set(generate.in_meaning(scope, vector, CHOSEN)) if vector else set()
    cosines = vector_search.cosines(vector, ids, EVERYTHING) if vector else {}
    found = [_related(row, memory, cosines) for row in comparable(rows).filter(pk__in=ids).exclude(pk=memory.pk)]
    near = sorted((one for one in found if one), key=lambda one: (-one[0], one[1].memory.pk))
    return [similar for _, similar in near[:MOST]]


def _vector_of(memory: Memory) -> QueryVector | None:
    """Return the stored vector of a memory; None without one, and while semantic search is off."""
    found = answering() if settings.CLAUDEOPS_EMBEDDINGS != "off" else None
    if found is None:
        return None
    for _, raw in vector_search.read_vectors(found.model, [memory.pk], EVERYTHING):
        if len(raw) == found.model.dimensions * STORED.itemsize:
            return QueryVector(found.model, np.frombuffer(raw, dtype=STORED), found.newest)
    return None


def _related(row: Memory, memory: Memory, cosines: Mapping[int, float]) -> tuple[float, Similar] | None:
    """Return how near a memory is, for sorting, and what is said of it; None for one that is not similar."""
    alike = row.service == memory.service  # the matcher answers for texts of one service
    cosine = cosines.get(row.pk)
    found = relation(row.observation, memory.observation, about=memory.service if alike else None, cosine=cosine)
    if alike and found.kind is Kind.REINFORCES:
        return 3.0, Similar(row, "says the same")
    if alike and found.kind is Kind.CONTRADICTS:
        return 2.0, Similar(row, "contradicts it")
    if cosine is not None and cosine >= LEAST_COSINE:
        return cosine, Similar(row, f"{cosine:.0%} alike in meaning")
    if found.score >= LEAST_SHARED:
        return found.score, Similar(row, f"shares {found.score:.0%} of the content")
    return None
