"""Sketches of vectors: what is near by them is what is near exactly, whatever comes, goes and is shared in a file."""

from __future__ import annotations

import numpy as np
import pytest

from memories.embedding import to_bytes
from memories.embedding.local import LocalEmbedder
from memories.models import Embedding, EmbeddingModel, Memory, PendingEmbedding
from memories.recall import Filters, aside, bitsfile, scope, signs, sketches, vectors
from tests.factories import MemoryFactory

WHO = "nginx postgres redis grafana jellyfin wireguard pihole traefik nextcloud mosquitto frigate immich".split()  # noqa: SIM905
WHAT = ["restarts", "loses its lock", "fills the disk", "drops connections", "answers slowly", "rotates its logs"]
WHEN = ["after a power cut", "every night at two", "when the VPN reconnects", "while backups run", "under load"]
WHY = ["because the mount is not there", "and must be escalated", "so wait a minute", "which is harmless"]


@pytest.fixture(autouse=True)
def clean_process(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    vectors.forget()
    bitsfile._written.clear()
    yield
    vectors.forget()


def unit(rows: int, dimensions: int = 384, seed: int = 7) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((rows, dimensions)).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


def part(stored: np.ndarray, first: int = 1) -> sketches.Part:
    ids = np.arange(first, first + len(stored), dtype=np.int64)
    return sketches.part_of(ids, ids + 1000, stored)


def test_a_cosine_by_bytes_is_nearly_the_exact_one():
    stored, query = unit(500), unit(1, seed=8)[0]
    found = part(stored).cosines(np.arange(500), query)
    assert np.abs(found - stored @ query).max() < 0.003


def test_a_vector_of_zeros_is_no_error():
    stored = np.zeros((2, 384), dtype=np.float32)
    assert part(stored).cosines(np.arange(2), unit(1)[0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("most", [1, 7, 40, 200])
def test_so_many_as_were_asked_for_are_the_nearest(most):
    random = np.random.default_rng(1)
    distance = random.integers(0, 30, 100).astype(np.uint16)
    found = signs.fewest(distance, most)
    assert sorted(distance[found].tolist()) == sorted(distance.tolist())[:most]
    assert len(set(found.tolist())) == min(most, 100)


def test_a_sign_weighs_as_much_as_the_query_has_of_its_dimension():
    """0 to 7 by the size of the query's number; the few greatest of all weigh no more than those below them."""
    query = np.linspace(0.001, 1, 128, dtype=np.float32) * np.where(np.arange(128) % 2, 1, -1).astype(np.float32)
    query[5] = 40.0
    stored, wanted = unit(50, 128), signs.asked(query)
    top = np.sort(np.abs(query))[int(signs.FULL_WEIGHT * 128)]
    weights = np.minimum(np.rint(np.abs(query) / top * 7), 7)
    differ = (stored > 0) != (query > 0)
    assert signs.weighted(signs.pack(stored), wanted).tolist() == (differ @ weights).tolist()
    assert weights[5] == 7
    plain = signs.distances(signs.pack(stored), wanted.signs)
    strong = signs.distances(signs.pack(stored), wanted.signs, wanted.strong)
    assert plain.tolist() == differ.sum(axis=1).tolist()
    assert strong.tolist() == differ[:, weights >= 2].sum(axis=1).tolist()


def test_a_distance_of_all_dimensions_of_a_great_model_is_counted_to_its_end():
    """More than a byte holds, over more words than one sum takes, in more rows than are compared at once."""
    stored = np.ones((signs.CHUNK + 3, 640), dtype=np.float32)
    stored[-1, :7] = -1
    bits = np.asfortranarray(signs.pack(stored))
    far = signs.distances(bits, signs.pack(-np.ones((1, 640), dtype=np.float32))[0])
    assert (far[0], far[signs.CHUNK], far[-1]) == (640, 640, 633)
    nothing = signs.asked(np.zeros(640, dtype=np.float32))
    assert not signs.weighted(bits[:5], nothing).any()


def test_half_of_many_rows_is_compared_aside_with_the_same_result(monkeypatch):
    bits, wanted = np.asfortranarray(signs.pack(unit(1001))), signs.asked(unit(1, seed=8)[0])
    alone = signs.distances(bits, wanted.signs, wanted.strong)
    monkeypatch.setattr(signs, "HALVED", 1000)
    for several in (True, False):
        monkeypatch.setattr(aside, "_several", several)
        assert signs.distances(bits, wanted.signs, wanted.strong).tolist() == alone.tolist()


@pytest.mark.parametrize("most", [40, 300])
@pytest.mark.parametrize("size", [200, 1000])
def test_of_few_rows_the_nearest_by_bytes_are_the_exact_ones(size, most):
    """Whether their signs are looked at or not; one that is gone is not among them."""
    stored, query = unit(size), unit(1, seed=8)[0]
    matrix = sketches.Matrix(part(stored[: size - 50]), sketches.empty(384))
    matrix = matrix.plus(part(stored[size - 50 :], first=size - 49))
    exact = (np.argsort(-(stored @ query)) + 1001).tolist()
    assert len(matrix.near(query, most)) == min(most, size)
    assert matrix.near(query, most)[:1] == exact[:1]
    assert len(set(matrix.near(query, most)[:40]) & set(exact[:40])) >= 38
    fewer = matrix.only(matrix.rows[matrix.rows != exact[0] - 1000])
    assert exact[0] not in fewer.near(query, size)
    assert len(fewer.near(query, size)) == size - 1


@pytest.mark.parametrize("rough", [True, False])
@pytest.mark.parametrize("tail", [0, 300])
def test_the_nearest_pass_their_signs_and_are_put_in_order_by_their_bytes(tail, rough, monkeypatch):
    """Of 3,000 that lie near one another by fifties the exact nearest are among the 250 that are left of them."""
    monkeypatch.setattr(sketches, "FEW", 0)
    monkeypatch.setattr(sketches, "ROUGH", 3000 if rough else 0)
    monkeypatch.setattr(sketches, "ROUGHLY", 250)
    random = np.random.default_rng(7)
    stored = np.repeat(random.standard_normal((60, 384)), 50, axis=0) + 0.8 * random.standard_normal((3000, 384))
    stored = (stored / np.linalg.norm(stored, axis=1, keepdims=True)).astype(np.float32)
    matrix = sketches.Matrix(part(stored[: 3000 - tail]), sketches.empty(384))
    if tail:
        matrix = matrix.plus(part(stored[3000 - tail :], first=3001 - tail))
    hit = 0
    for query in stored[::150]:
        exact = set((np.argsort(-(stored @ query))[:10] + 1001).tolist())
        near = matrix.near(query, 250)
        assert len(near) == len(set(near)) == 250
        hit += len(exact & set(near[:30]))
    assert hit >= 0.99 * 10 * 20


def test_what_came_and_went_since_the_file_is_counted_in_and_out():
    stored = unit(40)
    matrix = sketches.Matrix(part(stored[:30]), sketches.empty(384)).plus(part(stored[30:], first=31))
    assert len(matrix) == 40
    assert matrix.near(stored[35], 3)[0] == 1036
    assert matrix.near(stored[3], 3)[0] == 1004
    fewer = matrix.only(matrix.rows[~np.isin(matrix.rows, [4, 36])])
    assert len(fewer) == 38
    pages = list(fewer.pages(7))
    assert [row for page in pages for row in page.rows.tolist()] == fewer.rows.tolist()
    assert max(map(len, pages)) == 7
    assert 1004 not in fewer.near(stored[3], 40)
    assert 1036 not in fewer.near(stored[35], 40)
    assert fewer.near(stored[5], 40, np.array([1001, 1004, 1040]))[1:] in ([1040], [1001])


def test_a_memory_with_a_new_vector_is_found_by_that_one_alone():
    stored, again = unit(30), unit(1, seed=9)
    new = sketches.part_of(np.array([99]), np.array([1004]), again)
    matrix = sketches.Matrix(part(stored), sketches.empty(384)).plus(new)
    assert len(matrix) == 30
    assert matrix.near(again[0], 1) == [1004]
    assert matrix.near(stored[3], 1) != [1004]


def stored_rows(made: np.ndarray, texts: list[str] | None = None) -> tuple[EmbeddingModel, list[int]]:
    model = EmbeddingModel.objects.create(name="sketched@test", dimensions=made.shape[1], state="active")
    rows = Memory.objects.bulk_create(
        Memory(category="timing", observation=texts[place] if texts else f"number {place}")
        for place in range(len(made))
    )
    Embedding.objects.bulk_create(
        Embedding(model=model, memory=row, vector=to_bytes(vector), content_hash="-")
        for row, vector in zip(rows, made, strict=True)
    )
    PendingEmbedding.objects.all().delete()
    return model, [row.pk for row in rows]


EVERYTHING = scope.of(Filters())


@pytest.mark.django_db(transaction=True)
def test_a_file_of_before_holds_what_was_written_and_no_more_is_read(monkeypatch):
    monkeypatch.setattr(bitsfile, "SMALLEST", 10)
    made = unit(30)
    model, ids = stored_rows(made)
    first = vectors.matrix(model)
    assert (len(first.base), len(first.tail)) == (30, 0), "what was written is mapped, not kept twice"
    vectors.forget()
    monkeypatch.setattr(vectors, "_read", lambda *_: pytest.fail("a vector was read again"))
    again = vectors.matrix(model)
    for name in ("rows", "memories", "bits", "codes", "scales"):
        assert np.array_equal(getattr(again.base, name), getattr(first.base, name)), name
    found = vectors.search(model, made[4], EVERYTHING)
    assert max(found.cosines, key=lambda pk: found.cosines[pk]) == ids[4]


def test_a_vector_that_is_no_number_is_near_to_nothing_and_spoils_no_other():
    made = unit(3)
    made[1] = np.nan
    codes, scales = sketches.quantised(made)
    assert not codes[1].any()
    assert scales[1] == 0
    assert np.allclose(codes[[0, 2]] * scales[[0, 2], None], made[[0, 2]], atol=0.01)


@pytest.mark.django_db
def test_the_scan_goes_on_until_enough_are_within_the_scope(django_assert_max_num_queries):
    """Of 300 near ones every second lies in another scope: two looks into the database find a hundred."""
    random = np.random.default_rng(3)
    near = np.ones((300, 64)) + 0.3 * random.standard_normal((300, 64))
    model, ids = stored_rows((near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32))
    Memory.objects.filter(pk__in=ids[::2]).update(category="dependency")
    query = np.full(64, 0.125, dtype=np.float32)
    visible = scope.of(Filters(categories=("timing",)))
    search = vectors.Search(model, query, visible, newest=vectors.matrix(model).last)
    with django_assert_max_num_queries(7):  # with those that read the sketches, and that look for pgvector
        found = search.near()
    assert len(found.cosines) >= vectors.WANTED
    assert found.outside > 0
    assert not set(found.cosines) & set(ids[::2])
    exact = {pk: float(vector @ query) for pk, vector in zip(ids, from_rows(model), strict=True) if pk in ids[1::2]}
    best = sorted(exact, key=lambda pk: -exact[pk])[:10]
    assert sorted(found.cosines, key=lambda pk: -found.cosines[pk])[:10] == best


@pytest.mark.django_db
@pytest.mark.parametrize("share", [2, 6, 40])
def test_a_scope_of_a_part_of_all_loses_none_of_its_nearest(share, monkeypatch, settings):
    """Among many that are alike, most of them elsewhere, the first hundreds by their signs hold few of the scope's."""
    monkeypatch.setattr(vectors, "RESCORED", 400)
    settings.CLAUDEOPS_VECTOR_SEARCH = "numpy"
    random = np.random.default_rng(11)
    near = np.repeat(random.standard_normal((4, 384)), 1_000, axis=0) + 0.9 * random.standard_normal((4_000, 384))
    made = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)
    model, ids = stored_rows(made)
    mine = np.array(ids)[random.permutation(4_000)[: 4_000 // share]]
    Memory.objects.filter(pk__in=mine.tolist()).update(category="dependency")
    visible = scope.of(Filters(categories=("dependency",)))
    hit = 0
    for query in made[::200]:
        exact = {int(pk): float(made[pk - ids[0]] @ query) for pk in mine}
        found = vectors.search(model, query, visible).cosines
        best, ten = (set(sorted(of, key=lambda pk, of=of: -of[pk])[:10]) for of in (exact, found))
        hit += len(best & ten)
    assert hit >= 0.99 * 200


def from_rows(model: EmbeddingModel) -> np.ndarray:
    raw = Embedding.objects.filter(model=model).order_by("memory_id").values_list("vector", flat=True)
    return np.stack([np.frombuffer(bytes(one), dtype="<f4") for one in raw])


@pytest.mark.django_db
def test_those_that_the_words_found_get_their_cosine_on_the_way():
    made = unit(20)
    model, ids = stored_rows(made)
    unseen = MemoryFactory(observation="no vector yet")
    found = vectors.Search(model, made[0], EVERYTHING).near(beside=[ids[7], unseen.pk])
    assert found.cosines[ids[7]] == pytest.approx(float(made[7] @ made[0]), abs=1e-5)
    assert unseen.pk not in found.cosines
    assert found.outside == 0


@pytest.mark.django_db
def test_of_the_real_models_nearest_ten_at_least_99_of_100_are_found(real_model, monkeypatch):
    """A tenth of the rows goes past the sign bits here, as a hundredth does of a hundred thousand."""
    texts = [f"{who} {what} {when} {why}" for who in WHO for what in WHAT for when in WHEN for why in WHY[:2]]
    embedder = LocalEmbedder(real_model)
    made = embedder.embed(texts)
    model, ids = stored_rows(made, texts)
    monkeypatch.setattr(vectors, "RESCORED", len(texts) // 10)
    monkeypatch.setattr(sketches, "FEW", 0)
    monkeypatch.setattr(sketches, "ROUGH", 0)
    asked = embedder.embed([f"why is it that {who} {what}?" for who in WHO for what in WHAT[:3]])
    hit = 0
    for query in asked:
        exact = made @ query
        best = np.sort(exact)[-10]
        found = vectors.search(model, query, EVERYTHING).cosines
        ten = sorted(found, key=lambda pk: -found[pk])[:10]
        hit += sum(exact[pk - ids[0]] >= best - 1e-6 for pk in ten)
    assert hit >= 0.99 * 10 * len(asked)


def test_the_bytes_give_the_cosines_of_named_memories_and_nothing_for_those_without_a_vector():
    made = unit(50)
    base = sketches.part_of(np.arange(1, 31), np.arange(30, 0, -1) * 3, made[:30])
    nothing = sketches.empty(made.shape[1])
    again = sketches.part_of(np.array([31, 32]), np.array([6, 500]), made[30:32])
    now = sketches.Matrix(base, nothing).plus(again)
    wanted = np.array([90, 6, 500, 7, 3])
    found = now.cosines(made[40], wanted)
    exact = made[[0, 30, 31, 29]] @ made[40]
    assert np.isnan(found[3]), "7 has no vector"
    assert np.allclose(found[[0, 1, 2, 4]], exact, atol=0.002), "6 has a new vector, and its old one is gone"
    assert len(now.cosines(made[40], np.array([], dtype=np.int64))) == 0
