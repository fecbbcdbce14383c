"""Stored and expected vectors, and the queue, for the tests of vectors."""

from __future__ import annotations

import numpy as np

from memories.embedding.base import embedded_text, from_bytes
from memories.models import Embedding, Memory, PendingEmbedding
from tests.memories.embedding.servers import vector_of


def stored() -> dict[int, list[float]]:
    return {row.memory_id: list(from_bytes(row.vector, row.model.dimensions)) for row in Embedding.objects.all()}


def expected(memory: Memory, model: str = "one", dimensions: int = 4) -> list[float]:
    vector = np.array(vector_of(embedded_text(memory), dimensions, model))
    return list(np.float32(vector / np.linalg.norm(vector)))


def close(found: list[float], wanted: list[float]) -> bool:
    return len(found) == len(wanted) and np.allclose(found, wanted, atol=1e-6)


def waiting() -> set[int]:
    return set(PendingEmbedding.objects.values_list("memory_id", flat=True))
