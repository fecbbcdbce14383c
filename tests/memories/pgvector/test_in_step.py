"""The copy that pgvector searches follows the stored vectors, whoever writes them."""

from __future__ import annotations

import numpy as np
import pytest
from django.db import transaction

from memories.embedding import to_bytes
from memories.lifecycle import curate, verbs
from memories.models import Embedding, Memory
from memories.recall import Filters, filters, pgvector, recall, vector_search
from tests.embedders import embed_all
from tests.factories import MemoryFactory
from tests.memories.pgvector.database import (
    EVERYTHING,
    assert_in_step,
    by_itself,
    ids,
    needs_postgresql,
    second_connection,
    served,
    sql,
)

needs_postgresql()


@by_itself
def test_what_is_created_edited_and_deleted_is_in_step(embedder, model, walking, monkeypatch):
    monkeypatch.setattr(pgvector, "NEAREST", 3)
    for n in range(5):
        MemoryFactory(observation=f"backups run nightly to box {n}", service=None)
    embed_all(embedder, model)
    pgvector.keep()
    memory = MemoryFactory(observation="wireguard sluggish", service=None)
    embed_all(embedder, model)
    assert ids("tunnel slow") == [memory.pk], "found before it is in the index"
    assert_in_step()
    pgvector.keep()
    assert sql("SELECT count(*) FROM embedding_vectors_due") == [(0,)]
    assert ids("tunnel slow") == [memory.pk]
    verbs.edit(memory, by="operator", observation="printer jams")
    assert_in_step()
    embed_all(embedder, model)
    assert ids("tunnel slow") == []
    assert ids("paper stuck") == [memory.pk]
    pgvector.keep()
    assert_in_step()
    assert ids("paper stuck") == [memory.pk]
    curate.delete(memory, by="operator")
    assert ids("paper stuck") == []
    assert_in_step()
    assert served(model).startswith("pgvector")


@by_itself
def test_bulk_and_raw_sql_of_anybody_are_in_step(embedder, model, walking):
    rows = Memory.objects.bulk_create(
        Memory(category="timing", observation=f"backups run nightly to box {n}") for n in range(20)
    )
    embed_all(embedder, model)
    pgvector.keep()
    assert_in_step()
    turned = to_bytes(embedder.embed(["tunnel slow"])[0])
    sql("UPDATE embeddings SET vector = %s WHERE memory_id = %s", turned, rows[3].pk)
    assert_in_step()
    query, everything = embedder.embed(["tunnel slow"])[0], filters.where(filters.within(EVERYTHING))
    assert vector_search.search(model, query, everything).cosines[rows[3].pk] == pytest.approx(1.0, abs=1e-5)
    pgvector.keep()
    assert_in_step()
    assert vector_search.search(model, query, everything).cosines[rows[3].pk] == pytest.approx(1.0, abs=1e-5)
    sql("DELETE FROM memories WHERE id = ANY(%s)", [row.pk for row in rows[:10]])
    assert_in_step()
    assert set(vector_search.search(model, query, everything).cosines) <= {row.pk for row in rows[10:]}
    with transaction.atomic():
        sql("DELETE FROM embeddings WHERE memory_id = %s", rows[15].pk)
        transaction.set_rollback(True)
    assert_in_step()
    sql("TRUNCATE embeddings")
    assert_in_step()
    assert vector_search.search(model, query, everything).cosines == {}


@by_itself
def test_a_vector_that_is_of_no_use_is_in_no_search_and_holds_nothing_up(embedder, model, walking):
    rows = [MemoryFactory(observation=f"wireguard sluggish {n}") for n in range(4)]
    embed_all(embedder, model)
    Embedding.objects.filter(memory=rows[0]).update(vector=b"\x00" * 12)
    Embedding.objects.filter(memory=rows[1]).update(vector=np.full(256, np.nan, dtype="<f4").tobytes())
    kept = pgvector.keep()
    assert (kept.moved, kept.built) == (2, pgvector.index_name(model))
    query, everything = embedder.embed(["tunnel slow"])[0], filters.where(filters.within(EVERYTHING))
    near = vector_search.search(model, query, everything)
    assert set(near.cosines) == {rows[2].pk, rows[3].pk}
    assert near.by.startswith("pgvector")


@by_itself
def test_what_another_holds_at_this_moment_stays_due_and_is_found(embedder, model, walking):
    rows = [MemoryFactory(observation=f"wireguard sluggish {n}") for n in range(3)]
    embed_all(embedder, model)
    with second_connection() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM embeddings WHERE memory_id = %s FOR UPDATE", [rows[0].pk])
        assert pgvector.keep().moved == 2
        cursor.execute("ROLLBACK")
    assert sql("SELECT count(*) FROM embedding_vectors_due") == [(1,)]
    assert set(ids("tunnel slow")) == {row.pk for row in rows}
    assert pgvector.keep().moved == 1
    assert_in_step()


@by_itself
def test_many_new_vectors_are_left_to_numpy_until_they_are_copied(embedder, model, walking, monkeypatch):
    monkeypatch.setattr(pgvector, "FRESH", 2)
    MemoryFactory(observation="backups run nightly")
    embed_all(embedder, model)
    pgvector.keep()
    rows = [MemoryFactory(observation=f"wireguard sluggish {n}") for n in range(3)]
    embed_all(embedder, model)
    found = recall("tunnel slow", Filters())
    assert {hit.memory_id for hit in found.hits} == {row.pk for row in rows}
    assert found.trace.vectors == "numpy: more than 2 vectors are new and not in pgvector's index yet"
    pgvector.keep()
    assert recall("tunnel slow", Filters()).trace.vectors.startswith("pgvector")
