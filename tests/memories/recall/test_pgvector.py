"""pgvector gives the hits of an exact search, with every filter, and a recall over it those of numpy."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from memories.embedding import to_bytes
from memories.models import Embedding, EmbeddingModel, Memory, Project, Verdict
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, filters, keyword_index, pgvector, recall, vector_search
from tests.embedders import embed_all
from tests.factories import MemoryFactory, ProjectFactory
from tests.memories.pgvector.database import NOON, by_itself, needs_postgresql, served, sql

needs_postgresql()

DAY = timedelta(days=1)
DIMENSIONS = 64


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
    "by the index of an older pgvector": {"NARROW": 0, "NARROW_SHARE": 0.0, "ITERATIVE": (99,)},
}


@by_itself
def test_every_filter_gives_what_an_exact_search_gives(house, monkeypatch):
    model, memories, stored, queries = house
    kept = pgvector.keep()
    assert kept.built == pgvector.index_name(model)
    assert kept.moved == 3000
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
                rows = filters.within(Filters(**{"project": ANY_PROJECT, "agent": ANY_AGENT, **changed}))
                inside = np.isin(memories, list(rows.values_list("pk", flat=True)))
                visible = filters.where(rows)
                shares = []
                for query in queries:
                    near = vector_search.search(model, query, visible)
                    assert near.by.startswith("pgvector"), (way, called, near.by)
                    cosines = dict(zip(memories[inside].tolist(), (stored[inside] @ query).tolist(), strict=True))
                    assert set(near.cosines) <= set(cosines), (way, called, "a hit of another scope")
                    assert len(near.cosines) >= min(pgvector.NEAREST, len(cosines)), (way, called, "hits were lost")
                    assert all(abs(cosines[pk] - given) < 1e-5 for pk, given in near.cosines.items()), (way, called)
                    exact = set(sorted(cosines, key=cosines.__getitem__, reverse=True)[:10])
                    found = set(sorted(near.cosines, key=near.cosines.__getitem__, reverse=True)[:10])
                    shares.append(len(exact & found) / len(exact) if exact else 1.0)
                assert np.mean(shares) >= 0.99, (way, called, np.mean(shares))


@by_itself
def test_a_filter_of_one_in_a_hundred_gives_all_its_rows(house, monkeypatch):
    model, _, _, queries = house
    pgvector.keep()
    wanted = set(Memory.objects.filter(tags__contains=["rare"]).values_list("pk", flat=True))
    assert len(wanted) == 30
    visible = filters.where(filters.within(Filters(project=ANY_PROJECT, agent=ANY_AGENT, tags=("rare",))))
    for way, values in WAYS.items():
        with monkeypatch.context() as patched:
            for name, value in values.items():
                patched.setattr(pgvector, name, value)
            for query in queries:
                near = vector_search.search(model, query, visible)
                assert set(near.cosines) == wanted, way
                assert near.by.startswith("pgvector"), way


@by_itself
def test_the_statement_walks_the_index(house):
    model, _, _, queries = house
    pgvector.keep()
    sql("ANALYZE embedding_vectors")
    visible = filters.where(filters.within(Filters()))
    now = pgvector.state(model)
    statement, params = pgvector._Search(model, now.extension, now.rows, queries[0], visible).by_index()
    plan = "\n".join(line for (line,) in sql(f"EXPLAIN {statement}", *params))
    assert f"Index Scan using {pgvector.index_name(model)}" in plan
    assert "Sort" not in plan


@by_itself
@pytest.mark.parametrize("include_hold", [False, True])
def test_a_recall_gives_the_same_hits_with_either_search(embedder, model, settings, walking, include_hold):
    mine, other = ProjectFactory(), ProjectFactory()
    for n in range(12):
        MemoryFactory(observation=f"wireguard sluggish on floor {n}", project=(mine, other, None)[n % 3])
    MemoryFactory(observation="wireguard sluggish in the cellar", verdict=Verdict.HOLD, project=mine)
    MemoryFactory(observation="wireguard sluggish in the attic", active=False, project=mine)
    embed_all(embedder, model)
    keyword_index.catch_up()
    pgvector.keep()
    asked = Filters(project=mine.pk, include_hold=include_hold)
    by_pgvector = recall("tunnel slow", asked, limit=50, at=NOON)
    settings.CLAUDEOPS_VECTOR_SEARCH = "numpy"
    by_numpy = recall("tunnel slow", asked, limit=50, at=NOON)
    assert by_pgvector.trace.vectors.startswith("pgvector")
    assert by_numpy.trace.vectors == "numpy: CLAUDEOPS_VECTOR_SEARCH is numpy"
    assert [hit.memory_id for hit in by_pgvector.hits] == [hit.memory_id for hit in by_numpy.hits]
    verdicts = {hit.verdict for hit in by_pgvector.hits}
    assert verdicts == ({"allow", "hold"} if include_hold else {"allow"})
