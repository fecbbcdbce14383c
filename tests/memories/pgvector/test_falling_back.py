"""Where pgvector cannot serve numpy does, says why, and no hit is lost."""

from __future__ import annotations

import numpy as np
import pytest
from django.db import transaction

from claudeops.workers import doctor
from memories.embedding import to_bytes
from memories.lifecycle import curate, verbs
from memories.models import Embedding, EmbeddingModel, Memory
from memories.recall import Filters, filters, pgvector, recall, vector_search
from tests.embedders import WordEmbedder, answer_by, embed_all
from tests.factories import MemoryFactory
from tests.memories.pgvector.database import (
    EVERYTHING,
    NOON,
    assert_in_step,
    by_itself,
    ids,
    needs_postgresql,
    served,
    sql,
)

needs_postgresql()


@by_itself
def test_without_the_extension_numpy_answers_and_says_so(embedder, model, walking):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.keep()
    assert recall("tunnel slow", Filters()).trace.vectors.startswith("pgvector")
    sql("DROP EXTENSION vector CASCADE")
    found = recall("tunnel slow", Filters())  # this process has not noticed yet
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors.startswith("numpy: pgvector failed (")
    later = MemoryFactory(observation="wireguard sluggish again")
    embed_all(embedder, model)
    found = recall("tunnel slow", Filters())
    assert {hit.memory_id for hit in found.hits} == {memory.pk, later.pk}
    assert found.trace.vectors == "numpy: this database has no extension pgvector"
    assert pgvector.keep().reason == "this database has no extension pgvector"
    assert pgvector.try_extension() == ""
    assert pgvector.keep().built == pgvector.index_name(model)
    found = recall("tunnel slow", Filters())
    assert {hit.memory_id for hit in found.hits} == {memory.pk, later.pk}
    assert found.trace.vectors.startswith("pgvector")


@by_itself
def test_inside_a_transaction_a_failure_spoils_nothing(embedder, model, walking):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.keep()
    recall("tunnel slow", Filters())
    sql("DROP EXTENSION vector CASCADE")
    with transaction.atomic():
        assert ids("tunnel slow") == [memory.pk]
        later = MemoryFactory(observation="printer jams")
    assert Memory.objects.filter(pk=later.pk).exists()


@pytest.mark.django_db
def test_who_may_not_make_the_extension_is_told_and_nothing_fails():
    sql("DROP EXTENSION IF EXISTS vector CASCADE")
    sql("CREATE ROLE claudeops_test_plain")
    sql("SET LOCAL ROLE claudeops_test_plain")
    assert "permission denied" in pgvector.try_extension()
    assert sql("SELECT 1") == [(1,)]
    sql("RESET ROLE")


@by_itself
def test_a_dump_restored_without_the_table_is_written_to_as_ever(embedder, model, walking):
    MemoryFactory(observation="backups run nightly")
    embed_all(embedder, model)
    pgvector.keep()
    sql("DROP TABLE embedding_vectors")
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert ids("tunnel slow") == [memory.pk]
    verbs.edit(memory, by="operator", observation="printer jams")
    curate.delete(memory, by="operator")
    assert served(model) == "numpy: pgvector's index is not made yet"
    assert pgvector.keep().built
    assert_in_step()


@by_itself
def test_a_lost_index_costs_time_and_no_hit_and_is_made_again(embedder, model, walking):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.keep()
    recall("tunnel slow", Filters())
    sql(f"DROP INDEX {pgvector.index_name(model)}")
    assert ids("tunnel slow") == [memory.pk]
    pgvector.forget()
    found = recall("tunnel slow", Filters())
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors == "numpy: pgvector's index is not made yet"
    assert pgvector.keep().built
    assert served(model).startswith("pgvector")


@by_itself
def test_a_lost_trigger_ends_the_service_and_the_copy_is_made_anew(embedder, model, walking):
    MemoryFactory(observation="backups run nightly")
    embed_all(embedder, model)
    pgvector.keep()
    sql("ALTER TABLE embeddings DISABLE TRIGGER embedding_vectors_added")
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert served(model).startswith("numpy")
    assert ids("tunnel slow") == [memory.pk]
    pgvector.keep()
    assert_in_step()
    assert served(model).startswith("pgvector")
    assert ids("tunnel slow") == [memory.pk]


@by_itself
def test_another_model_is_served_by_numpy_until_its_own_index_is_there(embedder, model, walking, monkeypatch):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.keep()
    other = WordEmbedder(dimensions=96)
    other.name = "other@test"
    EmbeddingModel.objects.filter(pk=model.pk).update(state="retired")
    new = EmbeddingModel.objects.create(name=other.name, dimensions=96, state="active")
    embed_all(other, new)
    answer_by(monkeypatch, other)
    found = recall("tunnel slow", Filters())
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors == "numpy: pgvector's index is not made yet"
    assert pgvector.keep().built == pgvector.index_name(new)
    found = recall("tunnel slow", Filters())
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors.startswith("pgvector")
    assert sql("SELECT to_regclass(%s)", pgvector.index_name(model)) == [(None,)]
    assert_in_step()


@by_itself
def test_more_dimensions_than_an_index_takes_are_left_to_numpy(extension):
    wide = EmbeddingModel.objects.create(name="wide@test", dimensions=4_096, state="active")
    memory = MemoryFactory()
    vector = np.zeros(4_096, dtype=np.float32)
    vector[7] = 1.0
    Embedding.objects.create(model=wide, memory=memory, vector=to_bytes(vector), content_hash="-")
    assert "4,000 dimensions at most" in pgvector.keep().reason
    near = vector_search.search(wide, vector, filters.where(filters.within(EVERYTHING)))
    assert list(near.cosines) == [memory.pk]
    assert "4,000 dimensions at most" in near.by


@by_itself
def test_a_pgvector_too_old_for_half_precision_is_left_to_numpy(embedder, model, monkeypatch):
    monkeypatch.setattr(pgvector, "OLDEST", (99,))
    reason = pgvector.keep().reason
    assert reason.startswith("pgvector is 0.")
    assert served(model) == f"numpy: {reason}"


@by_itself
def test_auto_begins_where_it_pays_and_numpy_removes_all_of_it(embedder, model, settings, monkeypatch):
    monkeypatch.setattr(pgvector, "AUTO_FROM", 3)
    settings.CLAUDEOPS_VECTOR_SEARCH = "auto"
    for n in range(2):
        MemoryFactory(observation=f"wireguard sluggish {n}")
    embed_all(embedder, model)
    assert pgvector.keep().reason == "fewer than 3 vectors"
    assert sql("SELECT to_regclass('embedding_vectors')") == [(None,)]
    MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert pgvector.keep().built
    assert served(model).startswith("pgvector")
    settings.CLAUDEOPS_VECTOR_SEARCH = "numpy"
    assert pgvector.keep().reason == "CLAUDEOPS_VECTOR_SEARCH is numpy"
    left = sql("SELECT to_regclass('embedding_vectors'), to_regproc('embedding_vectors_added')")
    assert left == [(None, None)]
    assert sql("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'embedding_vectors%%'") == [(0,)]
    assert len(ids("tunnel slow")) == 3


@by_itself
def test_doctor_says_who_searches(embedder, model, monkeypatch):
    monkeypatch.setattr(doctor.state, "off_reason", lambda: None)

    def said():
        pgvector.forget()
        (finding,) = [one for one in doctor._semantic_search(NOON) if one.subject == "vector search"]
        return finding

    assert (said().level, said().text) == (
        "warning",
        "CLAUDEOPS_VECTOR_SEARCH asks for pgvector, served by numpy: pgvector's index is not made yet",
    )
    MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.keep()
    assert said().level == "ok"
    assert said().text.startswith("pgvector 0.")


@by_itself
def test_an_extension_in_a_schema_of_its_own_serves_as_well(embedder, model, walking):
    """Hosted databases keep extensions outside of the search path."""
    sql("DROP EXTENSION vector CASCADE")
    sql("CREATE SCHEMA elsewhere")
    sql("CREATE EXTENSION vector SCHEMA elsewhere")
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert pgvector.keep().built
    found = recall("tunnel slow", Filters())
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors.startswith("pgvector")
    pgvector.drop()
    sql("DROP SCHEMA elsewhere CASCADE")
