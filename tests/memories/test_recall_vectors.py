"""Recall by meaning: the bits follow the table of vectors, and what is wrong with a vector costs nobody an answer."""

from __future__ import annotations

import pytest
from django.db import connection

from memories.lifecycle import merge, verbs
from memories.models import Embedding, Memory
from memories.recall import Filters, bitsfile, index, meaning, pgvector_index, recall, scope, vectors
from tests.embedders import WordEmbedder, active_model, answer_by, embed_all
from tests.factories import MemoryFactory, ProjectFactory


@pytest.fixture(autouse=True)
def clean_process(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    vectors.forget()
    meaning.forget()
    bitsfile._written.clear()
    yield
    vectors.forget()
    meaning.forget()


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
    found = recall("tunnel slow")
    assert found.hits[0].memory_id == wanted.pk
    assert found.trace.semantic == "on"
    parts = found.hits[0].parts
    assert (parts.keyword_rank, parts.coverage, parts.vector_rank) == (None, 0.0, 1)
    assert parts.cosine > 0.5


def test_what_both_sides_find_ranks_above_what_one_finds(embedder, model):
    both = MemoryFactory(observation="The tunnel is slow at night")
    MemoryFactory(observation="The wireguard is sluggish at night")
    embed_all(embedder, model)
    hit = recall("tunnel slow").hits[0]
    assert hit.memory_id == both.pk
    assert hit.parts.keyword_rank == 1
    assert hit.parts.vector_rank in (1, 2)


def test_without_an_embedder_words_answer_and_the_trace_says_why(embedder, model):
    wanted = MemoryFactory(observation="The tunnel is slow")
    embed_all(embedder, model)
    embedder.broken = True
    found = recall("tunnel")
    assert [hit.memory_id for hit in found.hits] == [wanted.pk]
    assert found.trace.semantic == "off: the model's file is gone"


def test_vectors_of_another_model_are_not_compared(embedder, model):
    model.name = "another@model"
    model.save()
    assert recall("tunnel").trace.semantic.startswith("off: the embedder is words@test")


def test_a_memory_without_a_vector_is_found_by_its_words_and_counted_as_pending(embedder, model):
    wanted = MemoryFactory(observation="The tunnel is slow")
    found = recall("tunnel")
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
    found = recall("tunnel slow")
    assert {hit.memory_id for hit in found.hits} == {good.pk, bad.pk}
    assert next(hit for hit in found.hits if hit.memory_id == bad.pk).parts.cosine is None


def test_a_narrow_scope_loses_no_hit_among_many_nearer_ones(embedder, model, monkeypatch):
    """The nearest are all another project's; the scan must go on inside the scope."""
    monkeypatch.setattr(vectors, "RESCORED", 20)
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
    found = recall("where is the tunnel key").hits
    assert [hit.memory_id for hit in found[:2]] == [rows[0].pk, rows[1].pk]
    assert found[1].parts.context > 0


def test_a_neighbour_of_another_project_does_not_come_along(embedder, model):
    mine, other = ProjectFactory(), ProjectFactory()
    MemoryFactory(observation="Where is the wireguard key?", sequence="talk-1", position=0, project=mine)
    hidden = MemoryFactory(observation="In the drawer", sequence="talk-1", position=1, project=other)
    embed_all(embedder, model)
    assert hidden.pk not in ids("tunnel key", Filters(project=mine.pk))


@pytest.mark.django_db(transaction=True)
def test_a_second_process_starts_from_the_file_of_the_first(embedder, model, monkeypatch):
    monkeypatch.setattr(bitsfile, "SMALLEST", 1)
    wanted = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert ids("tunnel slow") == [wanted.pk]
    assert bitsfile.path_of(model).exists()
    vectors.forget()
    later = MemoryFactory(observation="wireguard sluggish again")
    embed_all(embedder, model)
    asked = []
    real = vectors._read
    monkeypatch.setattr(vectors, "_read", lambda m, after, known: asked.append(known) or real(m, after, known))
    assert set(ids("tunnel slow")) == {wanted.pk, later.pk}
    assert asked == [{Embedding.objects.get(memory=wanted).pk}], "what is in the file is not read again"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\x00" * 4096])
def test_a_damaged_file_costs_nothing(embedder, model, monkeypatch, damage):
    monkeypatch.setattr(bitsfile, "SMALLEST", 1)
    wanted = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    ids("tunnel slow")
    bitsfile.path_of(model).write_bytes(damage)
    vectors.forget()
    assert ids("tunnel slow") == [wanted.pk]


@pytest.mark.django_db(transaction=True)
def test_what_an_undone_transaction_saw_is_not_kept(embedder, model):
    from django.db import transaction

    MemoryFactory(observation="backups run nightly")
    embed_all(embedder, model)
    ids("tunnel slow")
    with transaction.atomic():
        MemoryFactory(observation="wireguard sluggish")
        embed_all(embedder, model)
        assert len(ids("tunnel slow")) == 1
        transaction.set_rollback(True)
    assert vectors.matrix(model).rows.tolist() == list(Embedding.objects.values_list("id", flat=True))


def test_deleted_vectors_are_let_go_of_in_time(embedder, model, monkeypatch):
    monkeypatch.setattr(vectors, "RECOUNT", -1.0)
    for n in range(3):
        MemoryFactory(observation=f"wireguard {n}")
    embed_all(embedder, model)
    Embedding.objects.order_by("id").first().delete()
    assert len(vectors.matrix(model).rows) == 2


def test_cosines_do_not_leave_the_scope(embedder, model):
    other = MemoryFactory(observation="wireguard sluggish", project=ProjectFactory())
    embed_all(embedder, model)
    query = embedder.embed(["tunnel slow"])[0]
    assert vectors.cosines(model, query, [other.pk], scope.where(scope.within(Filters()))) == {}
    index.catch_up()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="what SQLite does; this is PostgreSQL")
def test_on_sqlite_numpy_answers_whatever_the_setting(embedder, model, settings):
    settings.CLAUDEOPS_VECTOR_SEARCH = "pgvector"
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert pgvector_index.keep().reason
    found = recall("tunnel slow")
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors == "numpy"
