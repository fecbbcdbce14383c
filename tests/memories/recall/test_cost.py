"""What a recall asks of the database: as many statements for many words and memories as for few."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.recall import (
    ANY_AGENT,
    ANY_PROJECT,
    Asker,
    Filters,
    filters,
    keyword_index,
    keyword_search,
    recall,
    results,
)
from tests.support.embedders import WordEmbedder, active_model, answer_by, embed_all
from tests.support.factories import MemoryFactory, ProjectFactory


@pytest.fixture(autouse=True)
def nothing_kept():
    keyword_index.forget()
    yield
    keyword_index.forget()


def statements(query: str, where: Filters | None = None, asker: Asker | None = None) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert recall(query, where or Filters(), asked_by=asker).hits
    return sum(not one["sql"].startswith(("BEGIN", "COMMIT", "SET LOCAL")) for one in asked.captured_queries)


@pytest.mark.django_db
def test_many_words_and_memories_cost_no_more_statements_than_few(settings):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    first = MemoryFactory(observation="The tunnel wg0 drops at night", sequence="s", position=1)
    keyword_index.catch_up()
    few = statements("tunnel wg0")
    for place in range(2, 40):
        MemoryFactory(observation=f"The tunnel wg{place} drops at noon", sequence="s", position=place)
    keyword_index.catch_up()
    assert statements("which tunnel wg0 wg1 wg2 wg3 drops at night or noon, and why") == few
    assert recall("tunnel wg0", Filters()).hits[0].memory_id == first.pk


@pytest.mark.django_db(transaction=True)
def test_only_large_counts_are_kept_and_only_for_some_minutes(monkeypatch):
    def counts() -> tuple[int, dict[str, int]]:
        size = keyword_index.collection().size
        return size, keyword_index.frequencies(["tunnel", "wg0"], size)[0]

    for place in range(3):
        MemoryFactory(observation=f"The tunnel wg{place} drops")
    keyword_index.catch_up()
    monkeypatch.setattr(keyword_index, "FEW", 2)
    assert counts() == (3, {"tunnel": 3, "wg0": 1})
    MemoryFactory(observation="The tunnel wg0 is back")
    keyword_index.catch_up()
    assert counts() == (3, {"tunnel": 3, "wg0": 2})
    monkeypatch.setattr(keyword_index, "RECOUNT", 0.0)
    assert counts() == (4, {"tunnel": 4, "wg0": 2})


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's statistics say how common a term is")
def test_how_common_a_term_is_comes_from_the_statistics_of_a_large_table_and_else_is_counted(monkeypatch):
    for place in range(40):
        MemoryFactory(observation=f"The tunnel wg{place} drops")
    keyword_index.catch_up()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_terms")
        cursor.execute("DELETE FROM memory_terms WHERE memory_id % 2 = 0")
    monkeypatch.setattr(keyword_index, "FEW", 5)
    wanted = ["tunnel", "wg3"]
    counted, _ = keyword_index.frequencies(wanted, 20)
    assert counted["tunnel"] == 20
    keyword_index.forget()
    monkeypatch.setattr(keyword_index, "SAMPLED_FROM", 10)
    assert keyword_index._sampled(20)["tunnel"] == pytest.approx(1.0)
    assert keyword_index.frequencies(wanted, 20)[0] == counted  # all of what there is, and the rare one counted
    keyword_index.forget()
    assert keyword_index._sampled(500) == {}  # of a table that was much smaller


@pytest.mark.parametrize(
    "texts",
    [["a b a", "ab a", ""], ["a a a", "b"], ["x", "a"], ["wg0 wg wg0", "wg"], ["a"]],
)
def test_terms_are_counted_as_whole_words(texts):
    terms = ("a", "b", "wg0", "wg", "ab")
    hits = keyword_search.KeywordHits(terms)
    hits.add((place, len(text.split()), text) for place, text in enumerate(texts))
    expected = [{term: text.split().count(term) for term in terms if term in text.split()} for text in texts]
    assert list(hits.held.values()) == expected


@pytest.mark.django_db(transaction=True)
def test_a_recall_by_words_and_meaning_asks_five_questions_and_one_more_within_a_project(monkeypatch):
    embedder = WordEmbedder()
    answer_by(monkeypatch, embedder)
    monkeypatch.setattr(keyword_index, "FEW", 2)
    model, project = active_model(embedder), ProjectFactory()
    for place in range(30):
        MemoryFactory(observation=f"The tunnel wg{place} is slow at night", service=None, project=project)
    keyword_index.catch_up()
    embed_all(embedder, model)
    everywhere = Filters(project=ANY_PROJECT, agent=ANY_AGENT)
    recall("tunnel slow", everywhere)  # the vectors are read once, the memories counted once in five minutes
    asked = Asker("cli")
    # The model; what is not indexed, with the counts of the terms; the words; the rows with their vectors; the log.
    assert statements("wireguard wg3 sluggish", everywhere, asked) == 5
    assert statements("wireguard wg4 sluggish", Filters(project=project.pk, agent=ANY_AGENT), asked) == 6


@pytest.mark.django_db
def test_a_recall_by_words_and_meaning_takes_few_statements(monkeypatch):
    embedder = WordEmbedder()
    answer_by(monkeypatch, embedder)
    model = active_model(embedder)
    for place in range(30):
        MemoryFactory(observation=f"The tunnel wg{place} is slow at night", service=None)
    keyword_index.catch_up()
    embed_all(embedder, model)
    recall("tunnel slow", Filters())  # the vectors are read once
    found = statements("wireguard wg3 sluggish")
    # With what a test's transaction does not keep: the number of memories, all vectors (which there are, then they).
    assert found <= 9
    MemoryFactory(observation="Backups run nightly")
    keyword_index.catch_up()
    embed_all(embedder, model)
    assert statements("what of the wireguard wg3 and wg4, is it sluggish and why at night") <= found


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="the plan is SQLite's")
@pytest.mark.parametrize("taxonomy", [None, "ops", "knowledge"])
def test_the_candidates_are_read_by_their_ids_whatever_limits_the_scope(taxonomy):
    rows = [MemoryFactory(taxonomy="knowledge", category="operations", service=None).pk for _ in range(2)]
    scope = filters.scope_of(Filters(project=1, agent="mender", taxonomy=taxonomy))
    with CaptureQueriesContext(connection) as asked:
        found = results.read(rows, scope)
    assert {row[0] for row in found} == (set() if taxonomy == "ops" else set(rows))
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {asked.captured_queries[0]['sql']}")
        plan = [step for *_, step in cursor.fetchall()]
    assert "SEARCH memories USING INTEGER PRIMARY KEY (rowid=?)" in plan
