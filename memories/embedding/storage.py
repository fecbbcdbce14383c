"""Store vectors and dequeue their memories; hashes tell texts that changed since they were embedded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connection, transaction

from memories.embedding.base import HasText, Vectors, content_hash, embedded_text, to_bytes
from memories.models import Embedding, EmbeddingModel, Memory, PendingEmbedding


@dataclass(frozen=True, slots=True)
class Made:
    vector: Vectors
    content_hash: str


def store(memory: Memory, model: EmbeddingModel, vector: Vectors) -> None:
    """Store the vector of a memory that was created in the same transaction."""
    _checked(model, vector)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO embeddings (model_id, memory_id, vector, content_hash) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            [model.pk, memory.pk, to_bytes(vector), hash_of(memory)],
        )
        cursor.execute("DELETE FROM embedding_pending WHERE memory_id = %s AND model_id = %s", [memory.pk, model.pk])


def hash_of(memory: HasText) -> str:
    return content_hash(embedded_text(memory))


def store_all(model: EmbeddingModel, made: Mapping[int, Made], unchanged: Iterable[int] = ()) -> int:
    """Store vectors by memory id and dequeue them and `unchanged`; return how many were stored.

    A memory that was changed or deleted meanwhile, or is being changed, stays in the queue.
    """
    for one in made.values():
        _checked(model, one.vector)
    with transaction.atomic():
        rows = Memory.objects.filter(pk__in=made).only("pk", "observation", "service").order_by("pk")
        if connection.vendor == "postgresql":
            # Skipping locked rows avoids deadlocks; the lock keeps texts unchanged until the commit.
            rows = rows.select_for_update(skip_locked=True, of=("self",), no_key=True)
        same = {row.pk: made[row.pk] for row in rows if hash_of(row) == made[row.pk].content_hash}
        _replace(model, same)
        PendingEmbedding.objects.filter(model=model, memory__in=list(unchanged)).delete()
    return len(same)


def _replace(model: EmbeddingModel, made: Mapping[int, Made]) -> None:
    Embedding.objects.filter(model=model, memory__in=list(made)).delete()
    Embedding.objects.bulk_create(
        [
            Embedding(model=model, memory_id=pk, vector=to_bytes(one.vector), content_hash=one.content_hash)
            for pk, one in made.items()
        ],
        ignore_conflicts=True,
    )
    PendingEmbedding.objects.filter(model=model, memory__in=list(made)).delete()


def _checked(model: EmbeddingModel, vector: Vectors) -> None:
    if vector.shape != (model.dimensions,):
        raise ValueError(f"a vector of {vector.shape} cannot be stored for {model.name}, which has {model.dimensions}")
