"""Recall by meaning: the bits follow the table of vectors, and what is wrong with a vector costs nobody an answer."""

from __future__ import annotations

import pytest
from django.db import connection

from memories.lifecycle import merge, verbs
from memories.models import Embedding, Memory
from memories.recall import Filters, binary_index, filters, keyword_index, pgvector, query_vector, recall, vector_search
from memories.recall.query_vector import QueryVector
from tests.support.embedders import WordEmbedder, active_model, answer_by, embed_all
from tests.support.factories import MemoryFactory, ProjectFactory


@pytest.fixture(autouse=True)
def clean_process(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    binary_index.forget()
    query_vector.forget()
    yield
    binary_index.forget()
    query_vector.forget()


@pytest.fixture
def embedder(db, monkeypatch):
    """An embedder whose vectors answer."""
    found = WordEmbedder()
    answer_by(monkeypatch, found)
    return found


@pytest.fixture
def model(embedder):
    return active_model(embedder)


def ids(query: str, filters: Filters = Filters(), **kwargs) -> list[int]:  # noqa: B008
    return [hit.memory_id for hit in recall(query, filters, **kwargs).hits]


def test_a_paraphrase_that_shares_no_word_is_found(embedder, model):
    wanted = MemoryFactory(observation="wireguard sluggish")
    MemoryFactory(observation="backups run nightly")
    embed_all(embedder, model)
    found = recall("tunnel slow", Filters())
    assert found.hits[0].memory_id == wanted.pk
    assert found.trace.semantic == "on"
    parts = found.hits[0].parts
    assert (parts.keyword_rank, parts.coverage, parts.vector_rank) == (None, 0.0, 1)
    assert parts.cosine > 0.5


def test_what_both_sides_find_ranks_above_what_one_finds(embedder, model):
    both = MemoryFactory(observation="The tunnel is slow at night")
    MemoryFactory(observation="The wireguard is sluggish at night")
    embed_all(embedder, model)
    hit = recall("tunnel slow", Filters()).hits[0]
    assert hit.memory_id == both.pk
    assert hit.parts.keyword_rank == 1
    assert hit.parts.vector_rank in (1, 2)


def test_without_an_embedder_words_answer_and_the_trace_says_why(embedder, model):
    wanted = MemoryFactory(observation="The tunnel is slow")
    embed_all(embedder, model)
    embedder.broken = True
    found = recall("tunnel", Filters())
    assert [hit.memory_id for hit in found.hits] == [wanted.pk]
    assert found.trace.semantic == "off: the model's file is gone"


def test_vectors_of_another_model_are_not_compared(embedder, model):
    model.name = "another@model"
    model.save()
    assert recall("tunnel", Filters()).trace.semantic.startswith("off: the embedder is words@test")


def test_a_memory_without_a_vector_is_found_by_its_words_and_counted_as_pending(embedder, model):
    wanted = MemoryFactory(observation="The tunnel is slow")
    found = recall("tunnel", Filters())
    assert [hit.memory_id for hit in found.hits] == [wanted.pk]
    assert found.trace.pending == 1


def test_a_new_vector_is_seen_at_once(embedder, model):
    embed_all(embedder, model)
    assert ids("tunnel slow") == []
    wanted = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert ids("tunnel slow") == [wanted.pk]


def test_an_edited_memory_is_found_by_its_new_meaning_alone(embedder, model):
    memory = MemoryFactory(observation="wireguard sluggish", service=None)
    embed_all(embedder, model)
    assert ids("tunnel slow") == [memory.pk]
    verbs.edit(memory, by="operator", observation="printer jams")
    embed_all(embedder, model)
    assert ids("paper stuck") == [memory.pk]
    assert ids("tunnel slow") == []


def test_a_deleted_memory_is_not_found(embedder, model):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    ids("tunnel slow")
    merge.delete(memory, by="operator")
    assert ids("tunnel slow") == []


def test_a_stored_vector_of_the_wrong_size_is_passed_over(embedder, model):
    good, bad = MemoryFactory(observation="wireguard sluggish"), MemoryFactory(observation="tunnel slow indeed")
    embed_all(embedder, model)
    Embedding.objects.filter(memory=bad).update(vector=b"\x00" * 12)
    found = recall("tunnel slow", Filters())
    assert {hit.memory_id for hit in found.hits} == {good.pk, bad.pk}
    assert next(hit for hit in found.hits if hit.memory_id == bad.pk).parts.cosine is None


def test_a_narrow_scope_loses_no_hit_among_many_nearer_ones(embedder, model, monkeypatch):
    """The nearest are all another project's; the scan must go on inside the scope."""
    monkeypatch.setattr(vector_search, "LEAST_RESCORED", 20)
    monkeypatch.setattr(vector_search, "RESCORED", 0)
    mine, other = ProjectFactory(), ProjectFactory()
    Memory.objects.bulk_create(
        [Memory(category="timing", observation="wireguard sluggish", project=other) for _ in range(60)]
    )
    wanted = MemoryFactory(observation="wireguard sluggish on this side of the house", project=mine)
    embed_all(embedder, model)
    assert ids("tunnel slow", Filters(project=mine.pk)) == [wanted.pk]
    assert ids("tunnel slow") == []


def test_the_turns_beside_a_hit_come_along(embedder, model):
    turns = ["Where did you leave the wireguard key?", "In the drawer, under the blue box.", "Thanks, bye."]
    rows = [
        MemoryFactory(observation=text, sequence="talk-1", position=place, service=None)
        for place, text in enumerate(turns)
    ]
    MemoryFactory(observation="Backups run nightly", service=None)
    embed_all(embedder, model)
    found = recall("where is the tunnel key", Filters()).hits
    assert [hit.memory_id for hit in found[:2]] == [rows[0].pk, rows[1].pk]
    assert found[1].parts.context > 0


def test_a_neighbour_of_another_project_does_not_come_along(embedder, model):
    mine, other = ProjectFactory(), ProjectFactory()
    MemoryFactory(observation="Where is the wireguard key?", sequence="talk-1", position=0, project=mine)
    hidden = MemoryFactory(observation="In the drawer", sequence="talk-1", position=1, project=other)
    embed_all(embedder, model)
    assert hidden.pk not in ids("tunnel key", Filters(project=mine.pk))


def test_cosines_do_not_leave_the_scope(embedder, model):
    other = MemoryFactory(observation="wireguard sluggish", project=ProjectFactory())
    embed_all(embedder, model)
    query = QueryVector(model, embedder.embed(["tunnel slow"])[0], 0)
    assert vector_search.cosines(query, [other.pk], filters.scope_of(Filters())) == {}
    keyword_index.catch_up()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="what SQLite does; this is PostgreSQL")
def test_on_sqlite_numpy_answers(embedder, model):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert pgvector.ensure()
    found = recall("tunnel slow", Filters())
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors == "numpy"
