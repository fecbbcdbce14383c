"""The nearest of seeded vectors, beside an exact reading and a committed list: so every database gives the same.

The suite runs on one database at a time. What is written down here was computed once, and both are held to it.
"""

from __future__ import annotations

import numpy as np
import pytest

from memories.embedding import to_bytes
from memories.models import Embedding, EmbeddingModel, Memory, PendingEmbedding
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, binary_index, filters, pgvector, vector_search
from memories.recall.query_vector import QueryVector
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db(transaction=True)  # pgvector's index is not made inside one

ROWS, DIMENSIONS, CENTRES = 800, 128, 20
NEAREST = {
    0: [783, 93, 659, 789, 529, 147, 453, 22, 744, 667],
    1: [725, 355, 449, 531, 211, 777, 511, 460, 682, 69],
    2: [421, 114, 676, 71, 538, 27, 219, 39, 144, 203],
    3: [466, 119, 279, 594, 169, 626, 583, 577, 452, 298],
}
"""The ten nearest of all to the first queries, best first, by the places of their vectors."""
SCOPES = {
    "everything": {"project": ANY_PROJECT, "agent": ANY_AGENT},
    "the global ones": {},
    "a project": {"project": "alpha", "agent": ANY_AGENT},
    "an agent": {"project": ANY_PROJECT, "agent": "scout"},
    "a category": {"project": ANY_PROJECT, "categories": ("behavior",)},
    "services": {"project": ANY_PROJECT, "services": ("s3", None)},
    "one in fifty": {"project": ANY_PROJECT, "tags": ("rare",)},
    "nothing": {"project": ANY_PROJECT, "services": ()},
}


@pytest.fixture(params=["numpy", "pgvector"])
def way(request, settings, tmp_path, monkeypatch):
    """Each way of searching that this database has. So few vectors pgvector compares row by row, which is exact; what
    its index finds of more is in `pgvector/test_hits.py`."""
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    monkeypatch.setattr(pgvector, "AUTO_FROM", 1)
    if request.param != "numpy" and (reason := pgvector.try_extension()):
        pytest.skip(f"needs a PostgreSQL with pgvector: {reason}")
    for module in (binary_index, pgvector):
        module.forget()
    yield request.param
    for module in (binary_index, pgvector):
        module.forget()
    pgvector.drop()


def drawn(random: np.random.Generator, centres: np.ndarray, count: int) -> np.ndarray:
    found = centres[random.integers(0, len(centres), count)] + 0.7 * random.standard_normal((count, DIMENSIONS))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


@pytest.fixture
def house(way):
    """800 vectors in 20 clusters, their memories in many scopes, and 12 queries of the same kind."""
    random = np.random.default_rng(20260501)
    centres = random.standard_normal((CENTRES, DIMENSIONS))
    stored, asked = drawn(random, centres, ROWS), drawn(random, centres, 12)
    model = EmbeddingModel.objects.create(name="seeded@test", dimensions=DIMENSIONS, state="active")
    projects = [None, ProjectFactory(slug="alpha"), ProjectFactory(slug="beta")]
    rows = Memory.objects.bulk_create(
        Memory(
            category=("timing", "behavior")[place % 2],
            observation=f"fact number {place}",
            service=f"s{place % 9}" if place % 4 else None,
            project=projects[place % 3],
            agent="scout" if place % 5 == 0 else None,
            tags=["rare"] if place % 50 == 7 else [],
        )
        for place in range(ROWS)
    )
    Embedding.objects.bulk_create(
        Embedding(model=model, memory=row, vector=to_bytes(vector), content_hash="-")
        for row, vector in zip(rows, stored, strict=True)
    )
    PendingEmbedding.objects.all().delete()
    if way != "numpy":
        assert not pgvector.ensure()
        pgvector.forget()
        assert pgvector.served_by(model).startswith("pgvector")
    return model, rows, stored, asked


def nearest(model: EmbeddingModel, query: np.ndarray, scope: filters.Where) -> dict[int, float]:
    newest = Embedding.objects.latest("pk").pk
    return vector_search.nearest(QueryVector(model, query, newest), scope, 100).cosines


def inside(row: Memory, where: Filters) -> bool:
    """What the filters let through, as DESIGN and the docstring of Filters say it."""
    return (
        (where.project == ANY_PROJECT or row.project_id in (None, where.project))
        and (where.agent == ANY_AGENT or row.agent in (None, where.agent))
        and (where.services is None or row.service in where.services)
        and (where.categories is None or row.category in where.categories)
        and all(tag in row.tags for tag in where.tags)
    )


def test_the_ten_nearest_of_all_are_those_that_are_written_down(house):
    model, rows, _, asked = house
    place = {row.pk: number for number, row in enumerate(rows)}
    everything = filters.scope_of(Filters(project=ANY_PROJECT, agent=ANY_AGENT))
    for number, wanted in NEAREST.items():
        found = nearest(model, asked[number], everything)
        assert [place[pk] for pk in sorted(found, key=lambda pk: -found[pk])[:10]] == wanted, number


@pytest.mark.parametrize("name", SCOPES)
def test_the_nearest_within_each_scope_are_the_exact_ones_with_their_cosines(name, house):
    model, rows, stored, asked = house
    given = dict(SCOPES[name])
    if given.get("project") == "alpha":
        given["project"] = rows[1].project_id
    where = Filters(**given)
    there = [place for place, row in enumerate(rows) if inside(row, where)]
    for number, query in enumerate(asked):
        found = nearest(model, query, filters.scope_of(where))
        exact = {rows[place].pk: float(stored[place] @ query) for place in there}
        assert set(found) <= set(exact), (name, number, "out of the scope")
        best = sorted(exact, key=lambda pk: -exact[pk])[:100]
        # Of 800 random vectors 200 are read exactly; beyond the first twenty a sign more or less decides.
        assert set(best[:20]) <= set(found), (name, number)
        assert sorted(found, key=lambda pk: -found[pk])[:20] == best[:20]
        assert found == {pk: pytest.approx(exact[pk], abs=1e-5) for pk in found}
