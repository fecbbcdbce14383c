"""pgvector gives the hits of an exact search and follows the embeddings; where it cannot serve, numpy does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.conf import settings as configured
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from claudeops.features import doctor
from memories.embedding import to_bytes
from memories.lifecycle import merge, verbs
from memories.models import Embedding, EmbeddingModel, Memory, Project, Verdict
from memories.recall import (
    ANY_AGENT,
    ANY_PROJECT,
    Filters,
    binary_index,
    filters,
    keyword_index,
    pgvector,
    query_vector,
    recall,
    vector_search,
)
from memories.recall.query_vector import QueryVector
from tests.support.embedders import WordEmbedder, active_model, answer_by, embed_all
from tests.support.factories import MemoryFactory, ProjectFactory

if "postgresql" not in configured.DATABASES["default"]["ENGINE"]:
    pytest.skip("needs a PostgreSQL with pgvector: TEST_DATABASE=postgresql", allow_module_level=True)

by_itself = pytest.mark.django_db(transaction=True)
EVERYTHING = Filters(project=ANY_PROJECT, agent=ANY_AGENT)
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
DIMENSIONS = 64


@pytest.fixture(autouse=True)
def clean_process(settings, tmp_path, monkeypatch):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    monkeypatch.setattr(pgvector, "AUTO_FROM", 1)
    for module in (binary_index, query_vector, pgvector):
        module.forget()
    yield
    for module in (binary_index, query_vector, pgvector):
        module.forget()


@pytest.fixture
def extension(transactional_db):
    """pgvector in the test's database, and nothing of ours left behind."""
    if reason := pgvector.try_extension():
        pytest.skip(f"needs a PostgreSQL with pgvector: {reason}")
    yield
    pgvector.try_extension()
    pgvector.drop()


@pytest.fixture
def embedder(monkeypatch, transactional_db):
    found = WordEmbedder()
    answer_by(monkeypatch, found)
    return found


@pytest.fixture
def model(embedder, extension):
    return active_model(embedder)


@pytest.fixture
def walking(monkeypatch):
    """The index is asked, however small the scope."""
    monkeypatch.setattr(pgvector, "NARROW", 0)
    monkeypatch.setattr(pgvector, "NARROW_SHARE", 0.0)


def served(model) -> str:
    pgvector.forget()
    return pgvector.served_by(model)


def sql(statement: str, *params):
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall() if cursor.description else None


def near(model, vector, where: Filters = EVERYTHING):
    newest = max(Embedding.objects.values_list("pk", flat=True), default=0)
    return vector_search.nearest(QueryVector(model, vector, newest), filters.where(filters.within(where)), 100)


def ids(query: str, where: Filters = Filters()) -> list[int]:  # noqa: B008
    return [hit.memory_id for hit in recall(query, where).hits]


def assert_in_step() -> None:
    """The copies are those of all embeddings, at half precision, and nothing else."""
    copied = {
        pk: rest for pk, *rest in sql("SELECT embedding_id, model_id, memory_id, half::text FROM embedding_halves")
    }
    there = {row.pk: row for row in Embedding.objects.all()}
    assert set(copied) == set(there)
    for pk, (model_id, memory_id, text) in copied.items():
        assert (model_id, memory_id) == (there[pk].model_id, there[pk].memory_id)
        stored = np.frombuffer(bytes(there[pk].vector), dtype="<f4")
        assert np.allclose(np.fromstring(text.strip("[]"), sep=","), stored, atol=2e-3)


@pytest.fixture
def house(extension):
    """3,000 memories in 60 clusters, in many scopes, and queries of the same kind."""
    model = EmbeddingModel.objects.create(name="clusters@test", dimensions=DIMENSIONS, state="active")
    random = np.random.default_rng(11)
    centres = random.standard_normal((60, DIMENSIONS))

    def drawn(count):
        found = centres[random.integers(0, 60, count)] + 0.7 * random.standard_normal((count, DIMENSIONS))
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    alpha, beta = ProjectFactory(slug="alpha"), ProjectFactory(slug="beta")
    rows = Memory.objects.bulk_create(
        Memory(
            category=("timing", "behavior")[n % 2],
            observation=f"fact number {n} of the house",
            service=f"s{n % 20}" if n % 7 else None,
            project=alpha if n % 5 == 0 else beta if n % 5 == 1 else None,
            agent="scout" if n % 11 == 0 else None,
            tags=["rare"] if n % 100 == 42 else ["common"] if n % 3 == 0 else [],
            verdict=Verdict.HOLD if n % 13 == 0 else Verdict.ALLOW,
            created_at=NOON - (n % 30) * DAY,
            updated_at=NOON - (n % 30) * DAY,
        )
        for n in range(3000)
    )
    stored = drawn(3000)
    Embedding.objects.bulk_create(
        Embedding(model=model, memory=row, vector=to_bytes(vector), content_hash="-")
        for row, vector in zip(rows, stored, strict=True)
    )
    sql("ANALYZE memories")
    return model, np.array([row.pk for row in rows]), stored, drawn(10)


FILTERS = {
    "everything": {},
    "the global ones": {"project": None, "agent": None},
    "a project and the global ones": {"project": "alpha", "agent": None},
    "an agent": {"project": None, "agent": "scout"},
    "services": {"services": ("s3", "s4", None)},
    "one service": {"services": ("s7",)},
    "no service at all": {"services": ()},
    "a category": {"categories": ("behavior",)},
    "a taxonomy": {"taxonomy": "ops"},
    "a common tag": {"tags": ("common",)},
    "a tag of one in a hundred": {"tags": ("rare",)},
    "since": {"since": NOON - 3 * DAY},
    "until": {"until": NOON - 20 * DAY},
    "as it was": {"as_of": NOON - 10 * DAY},
    "all at once": {"project": "alpha", "agent": "scout", "tags": ("common",), "categories": ("timing",)},
}
WAYS = {
    "by the index": {"NARROW": 0, "NARROW_SHARE": 0.0},
    "row by row": {},
}


@by_itself
def test_every_filter_gives_what_an_exact_search_gives_and_the_index_is_walked(house, monkeypatch):
    """One test: to store the house and to build its index takes longer than all that is asked of it."""
    model, memories, stored, queries = house
    rare = set(Memory.objects.filter(tags__contains=["rare"]).values_list("pk", flat=True))
    assert len(rare) == 30
    assert pgvector.ensure() == ""
    assert served(model).startswith("pgvector")
    for way, values in WAYS.items():
        with monkeypatch.context() as patched:
            for name, value in values.items():
                patched.setattr(pgvector, name, value)
            for called, asked in FILTERS.items():
                project = (
                    Project.objects.get(slug=asked["project"]).pk if asked.get("project") else asked.get("project")
                )
                changed = {**asked, "project": project} if "project" in asked else asked
                where = Filters(**{"project": ANY_PROJECT, "agent": ANY_AGENT, **changed})
                inside = np.isin(memories, list(filters.within(where).values_list("pk", flat=True)))
                shares = []
                for query in queries:
                    answer = near(model, query, where)
                    assert answer.by.startswith("pgvector"), (way, called, answer.by)
                    cosines = dict(zip(memories[inside].tolist(), (stored[inside] @ query).tolist(), strict=True))
                    assert set(answer.cosines) <= set(cosines), (way, called, "a hit of another scope")
                    assert len(answer.cosines) >= min(pgvector.NEAREST, len(cosines)), (way, called, "hits were lost")
                    assert all(abs(cosines[pk] - given) < 1e-5 for pk, given in answer.cosines.items()), (way, called)
                    if called == "a tag of one in a hundred":
                        assert set(answer.cosines) == rare, way
                    exact = set(sorted(cosines, key=cosines.__getitem__, reverse=True)[:10])
                    found = set(sorted(answer.cosines, key=answer.cosines.__getitem__, reverse=True)[:10])
                    shares.append(len(exact & found) / len(exact) if exact else 1.0)
                assert np.mean(shares) >= 0.99, (way, called, np.mean(shares))
    for name, value in WAYS["by the index"].items():
        monkeypatch.setattr(pgvector, name, value)
    assert_the_statement_walks_the_index(model, queries[0])


def assert_the_statement_walks_the_index(model, query) -> None:
    sql("ANALYZE embedding_halves")
    with CaptureQueriesContext(connection) as asked:
        near(model, query, Filters())
    (walk,) = [one["sql"] for one in asked if "AS MATERIALIZED" in one["sql"]]
    plan = "\n".join(line for (line,) in sql("EXPLAIN " + walk.replace("%", "%%")))
    assert f"Index Scan using embedding_halves_hnsw_{model.pk}" in plan


@by_itself
@pytest.mark.parametrize("include_hold", [False, True])
def test_a_recall_gives_the_same_hits_with_either_search(embedder, model, walking, include_hold):
    mine, other = ProjectFactory(), ProjectFactory()
    for n in range(12):
        MemoryFactory(observation=f"wireguard sluggish on floor {n}", project=(mine, other, None)[n % 3])
    MemoryFactory(observation="wireguard sluggish in the cellar", verdict=Verdict.HOLD, project=mine)
    MemoryFactory(observation="wireguard sluggish in the attic", active=False, project=mine)
    embed_all(embedder, model)
    keyword_index.catch_up()
    pgvector.ensure()
    asked = Filters(project=mine.pk, include_hold=include_hold)
    by_pgvector = recall("tunnel slow", asked, limit=50, at=NOON)
    pgvector.drop()
    by_numpy = recall("tunnel slow", asked, limit=50, at=NOON)
    assert by_pgvector.trace.vectors.startswith("pgvector")
    assert by_numpy.trace.vectors == "numpy: pgvector's index is not complete yet"
    assert [hit.memory_id for hit in by_pgvector.hits] == [hit.memory_id for hit in by_numpy.hits]
    verdicts = {hit.verdict for hit in by_pgvector.hits}
    assert verdicts == ({"allow", "hold"} if include_hold else {"allow"})


@by_itself
def test_what_is_created_edited_and_deleted_is_in_step(embedder, model, walking, monkeypatch):
    monkeypatch.setattr(pgvector, "NEAREST", 3)
    for n in range(5):
        MemoryFactory(observation=f"backups run nightly to box {n}", service=None)
    embed_all(embedder, model)
    pgvector.ensure()
    memory = MemoryFactory(observation="wireguard sluggish", service=None)
    embed_all(embedder, model)
    assert ids("tunnel slow") == [memory.pk], "found before it is in the index"
    assert_in_step()
    pgvector.ensure()
    assert ids("tunnel slow") == [memory.pk]
    verbs.edit(memory, by="operator", observation="printer jams")
    assert_in_step()
    embed_all(embedder, model)
    assert ids("tunnel slow") == []
    assert ids("paper stuck") == [memory.pk]
    pgvector.ensure()
    assert_in_step()
    assert ids("paper stuck") == [memory.pk]
    merge.delete(memory, by="operator")
    assert ids("paper stuck") == []
    assert_in_step()
    assert served(model).startswith("pgvector")


@by_itself
def test_bulk_and_raw_sql_of_anybody_are_in_step(embedder, model, walking):
    rows = Memory.objects.bulk_create(
        Memory(category="timing", observation=f"backups run nightly to box {n}") for n in range(20)
    )
    embed_all(embedder, model)
    pgvector.ensure()
    assert_in_step()
    turned = to_bytes(embedder.embed(["tunnel slow"])[0])
    sql("UPDATE embeddings SET vector = %s WHERE memory_id = %s", turned, rows[3].pk)
    assert_in_step()
    query = embedder.embed(["tunnel slow"])[0]
    assert near(model, query).cosines[rows[3].pk] == pytest.approx(1.0, abs=1e-5)
    pgvector.ensure()
    assert_in_step()
    assert near(model, query).cosines[rows[3].pk] == pytest.approx(1.0, abs=1e-5)
    sql("DELETE FROM memories WHERE id = ANY(%s)", [row.pk for row in rows[:10]])
    assert_in_step()
    assert set(near(model, query).cosines) <= {row.pk for row in rows[10:]}
    with transaction.atomic():
        sql("DELETE FROM embeddings WHERE memory_id = %s", rows[15].pk)
        transaction.set_rollback(True)
    assert_in_step()
    sql("TRUNCATE embeddings")
    assert_in_step()
    assert near(model, query).cosines == {}


@by_itself
def test_a_vector_that_is_of_no_use_is_in_no_search_and_holds_nothing_up(embedder, model, walking):
    rows = [MemoryFactory(observation=f"wireguard sluggish {n}") for n in range(4)]
    embed_all(embedder, model)
    Embedding.objects.filter(memory=rows[0]).update(vector=b"\x00" * 12)
    Embedding.objects.filter(memory=rows[1]).update(vector=np.full(256, np.nan, dtype="<f4").tobytes())
    assert pgvector.ensure() == ""
    query = embedder.embed(["tunnel slow"])[0]
    found = near(model, query)
    assert set(found.cosines) == {rows[2].pk, rows[3].pk}
    assert found.by.startswith("pgvector")


@by_itself
def test_without_the_extension_numpy_answers_and_says_so(embedder, model, walking):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.ensure()
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
    assert pgvector.ensure() == "this database has no extension pgvector"
    assert pgvector.try_extension() == ""
    assert pgvector.ensure() == ""
    found = recall("tunnel slow", Filters())
    assert {hit.memory_id for hit in found.hits} == {memory.pk, later.pk}
    assert found.trace.vectors.startswith("pgvector")


@by_itself
def test_inside_a_transaction_a_failure_spoils_nothing(embedder, model, walking):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.ensure()
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
    pgvector.ensure()
    sql("DROP TABLE embedding_halves")
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert ids("tunnel slow") == [memory.pk]
    verbs.edit(memory, by="operator", observation="printer jams")
    merge.delete(memory, by="operator")
    assert served(model) == "numpy: pgvector's index is not complete yet"
    assert pgvector.ensure() == ""
    assert_in_step()


@by_itself
def test_a_lost_index_costs_time_and_no_hit_and_is_made_again(embedder, model, walking):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.ensure()
    recall("tunnel slow", Filters())
    sql(f"DROP INDEX {f'embedding_halves_hnsw_{model.pk}'}")
    assert ids("tunnel slow") == [memory.pk]
    pgvector.forget()
    found = recall("tunnel slow", Filters())
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors == "numpy: pgvector's index is not complete yet"
    assert pgvector.ensure() == ""
    assert served(model).startswith("pgvector")


@by_itself
def test_a_lost_trigger_ends_the_service_and_the_copy_is_made_anew(embedder, model, walking):
    MemoryFactory(observation="backups run nightly")
    embed_all(embedder, model)
    pgvector.ensure()
    sql("ALTER TABLE embeddings DISABLE TRIGGER embedding_halves_copy")
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert served(model).startswith("numpy")
    assert ids("tunnel slow") == [memory.pk]
    pgvector.ensure()
    assert_in_step()
    assert served(model).startswith("pgvector")
    assert ids("tunnel slow") == [memory.pk]


@by_itself
def test_another_model_is_served_by_numpy_until_its_own_index_is_there(embedder, model, walking, monkeypatch):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.ensure()
    other = WordEmbedder(dimensions=96)
    other.name = "other@test"
    EmbeddingModel.objects.filter(pk=model.pk).update(state="retired")
    new = EmbeddingModel.objects.create(name=other.name, dimensions=96, state="active")
    embed_all(other, new)
    answer_by(monkeypatch, other)
    found = recall("tunnel slow", Filters())
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors == "numpy: pgvector's index is not complete yet"
    assert pgvector.ensure() == ""
    found = recall("tunnel slow", Filters())
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors.startswith("pgvector")
    assert_in_step()


@by_itself
def test_more_dimensions_than_an_index_takes_are_left_to_numpy(extension):
    wide = EmbeddingModel.objects.create(name="wide@test", dimensions=4_096, state="active")
    memory = MemoryFactory()
    vector = np.zeros(4_096, dtype=np.float32)
    vector[7] = 1.0
    Embedding.objects.create(model=wide, memory=memory, vector=to_bytes(vector), content_hash="-")
    assert "4,000 dimensions at most" in pgvector.ensure()
    found = near(wide, vector)
    assert list(found.cosines) == [memory.pk]
    assert "4,000 dimensions at most" in found.by


@by_itself
def test_it_begins_where_it_pays_and_drop_removes_all_of_it(embedder, model, monkeypatch):
    monkeypatch.setattr(pgvector, "AUTO_FROM", 3)
    for n in range(2):
        MemoryFactory(observation=f"wireguard sluggish {n}")
    embed_all(embedder, model)
    assert pgvector.ensure() == "fewer than 3 vectors"
    assert sql("SELECT to_regclass('embedding_halves')") == [(None,)]
    MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert pgvector.ensure() == ""
    assert served(model).startswith("pgvector")
    pgvector.drop()
    left = sql("SELECT to_regclass('embedding_halves'), to_regproc('embedding_halves_copy')")
    assert left == [(None, None)]
    assert sql("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'embedding_halves%%'") == [(0,)]
    assert len(ids("tunnel slow")) == 3


@by_itself
def test_doctor_says_who_searches(embedder, model, monkeypatch):
    monkeypatch.setattr(doctor.state, "off_reason", lambda: None)

    def said():
        pgvector.forget()
        (finding,) = [one for one in doctor._semantic_search(NOON) if one.subject == "vector search"]
        return finding

    assert (said().level, said().text) == (
        "ok",
        "numpy: pgvector's index is not complete yet",
    )
    MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.ensure()
    assert said().level == "ok"
    assert said().text.startswith("pgvector (HNSW)")


@by_itself
def test_an_extension_in_a_schema_of_its_own_serves_as_well(embedder, model, walking):
    """Hosted databases keep extensions outside of the search path."""
    sql("DROP EXTENSION vector CASCADE")
    sql("CREATE SCHEMA elsewhere")
    sql("CREATE EXTENSION vector SCHEMA elsewhere")
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    assert pgvector.ensure() == ""
    found = recall("tunnel slow", Filters())
    assert [hit.memory_id for hit in found.hits] == [memory.pk]
    assert found.trace.vectors.startswith("pgvector")
    pgvector.drop()
    sql("DROP SCHEMA elsewhere CASCADE")
