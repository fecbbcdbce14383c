"""What a recall asks of the database: as many statements for many words and memories as for few."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.recall import Filters, frequency, index, keyword, recall, weighing
from tests.embedders import WordEmbedder, active_model, answer_by, embed_all
from tests.factories import MemoryFactory


@pytest.fixture(autouse=True)
def nothing_kept():
    keyword.forget()
    yield
    keyword.forget()


def statements(query: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert recall(query).hits
    return len(asked)


@pytest.mark.django_db
def test_many_words_and_memories_cost_no_more_statements_than_few(settings):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    first = MemoryFactory(observation="The tunnel wg0 drops at night", sequence="s", position=1)
    index.catch_up()
    few = statements("tunnel wg0")
    for place in range(2, 40):
        MemoryFactory(observation=f"The tunnel wg{place} drops at noon", sequence="s", position=place)
    index.catch_up()
    assert statements("which tunnel wg0 wg1 wg2 wg3 drops at night or noon, and why") == few
    assert recall("tunnel wg0", Filters()).hits[0].memory_id == first.pk


@pytest.mark.django_db(transaction=True)
def test_only_the_counts_of_many_memories_are_kept_and_only_for_a_moment(monkeypatch):
    for place in range(3):
        MemoryFactory(observation=f"The tunnel wg{place} drops")
    index.catch_up()
    assert frequency.frequencies(["tunnel", "wg0"]) == {"tunnel": 3, "wg0": 1}
    monkeypatch.setattr(frequency, "FEW", 2)
    monkeypatch.setattr(frequency, "SOME", 2)
    assert (frequency.collection().size, frequency.frequencies(["tunnel", "wg0"])) == (3, {"tunnel": 3, "wg0": 1})
    MemoryFactory(observation="The tunnel wg0 is back")
    index.catch_up()
    assert (frequency.collection().size, frequency.frequencies(["tunnel", "wg0"])) == (3, {"tunnel": 3, "wg0": 2})
    monkeypatch.setattr(frequency, "RECOUNT", 0.0)
    assert (frequency.collection().size, frequency.frequencies(["tunnel", "wg0"])) == (4, {"tunnel": 4, "wg0": 2})


@pytest.mark.django_db(transaction=True)
def test_a_count_of_some_is_kept_for_a_moment_for_who_can_do_with_that(monkeypatch):
    for place in range(3):
        MemoryFactory(observation=f"The tunnel wg{place} drops")
    index.catch_up()
    monkeypatch.setattr(frequency, "SOME", 2)

    def of_a_moment() -> tuple[int, dict[str, int]]:
        size = frequency.collection(frequency.MOMENT).size
        return size, frequency.with_due(["tunnel", "wg0"], size, 5)[0]

    def exact() -> tuple[int, dict[str, int]]:
        return frequency.collection().size, frequency.frequencies(["tunnel", "wg0"])

    assert of_a_moment() == exact() == (3, {"tunnel": 3, "wg0": 1})
    MemoryFactory(observation="The tunnel wg0 is back")
    index.catch_up()
    assert of_a_moment() == (3, {"tunnel": 3, "wg0": 2})
    assert exact() == (4, {"tunnel": 4, "wg0": 2})


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's statistics say how common a term is")
def test_how_common_a_term_is_comes_from_the_statistics_of_a_large_table_and_else_is_counted(monkeypatch):
    for place in range(40):
        MemoryFactory(observation=f"The tunnel wg{place} drops")
    index.catch_up()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_terms")
        cursor.execute("DELETE FROM memory_terms WHERE memory_id % 2 = 0")
    monkeypatch.setattr(frequency, "FEW", 5)
    monkeypatch.setattr(frequency, "SOME", 5)
    wanted = ["tunnel", "wg3"]
    counted = frequency.frequencies(wanted)
    assert counted["tunnel"] == 20
    frequency.forget()
    monkeypatch.setattr(frequency, "MANY", 10)
    assert frequency._sampled(20)["tunnel"] == pytest.approx(1.0)
    assert frequency.frequencies(wanted) == counted  # all of what there is, and the rare one counted
    frequency.forget()
    assert frequency._sampled(500) == {}  # of a table that was much smaller


def naive(terms: list[str], texts: list[str]) -> list[list[int]]:
    return [[text.split().count(term) for term in terms] for text in texts]


@pytest.mark.parametrize(
    "texts",
    [["a b a", "ab a", ""], ["a a a", "b"], ["x", "a"], ["wg0 wg wg0", "wg"], ["a"]],
)
def test_counting_in_all_texts_at_once_counts_each(texts):
    terms = ["a", "b", "wg0", "wg", "ab"]
    assert weighing.counted(terms, weighing.BETWEEN.join(texts), len(texts)).tolist() == naive(terms, texts)


@pytest.mark.django_db
def test_a_recall_by_words_and_meaning_takes_few_statements(monkeypatch):
    embedder = WordEmbedder()
    answer_by(monkeypatch, embedder)
    model = active_model(embedder)
    for place in range(30):
        MemoryFactory(observation=f"The tunnel wg{place} is slow at night", service=None)
    index.catch_up()
    embed_all(embedder, model)
    recall("tunnel slow")  # the vectors are read once
    found = statements("wireguard wg3 sluggish")
    # The model, the counts of the terms, of the memories, what is not indexed, the words' side, the vectors, the rows;
    # with what a test's transaction does not keep: all vectors (which there are, then they), their number.
    assert found <= (14 if connection.vendor == "postgresql" else 11)
    MemoryFactory(observation="Backups run nightly")
    index.catch_up()
    embed_all(embedder, model)
    assert statements("what of the wireguard wg3 and wg4, is it sluggish and why at night") <= found
