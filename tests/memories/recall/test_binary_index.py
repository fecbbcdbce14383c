"""The sign bits find what is near exactly, follow the table of embeddings, and never answer for other rows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from django.db import transaction

from claudeops.features import doctor
from memories.embedding import to_bytes
from memories.embedding.local import LocalEmbedder
from memories.models import Embedding, EmbeddingModel, Memory, PendingEmbedding
from memories.recall import Filters, binary_index, vector_search
from memories.recall.binary_index import BinaryIndex
from memories.recall.filters import EVERYTHING, scope_of
from memories.recall.query_vector import QueryVector
from tests.benchmarks.evaluation.vectors import embed_cached

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "nonsense": lambda whole: b"nonsense",
    "zeros": lambda whole: bytes(len(whole)),
    "cut": lambda whole: whole[:-100],
    "other content of the same size": lambda whole: whole[:-900] + whole[-900:][::-1],
    "one bit": lambda whole: whole[:-500] + bytes([whole[-500] ^ 1]) + whole[-499:],
    "another model, with a right hash": lambda whole: hashed(whole[65:].replace(b"sketched@test", b"sketched@tent")),
    "fewer rows, with a right hash": lambda whole: hashed(whole[65:].replace(b'"rows": 30', b'"rows": 15')),
    "no header, with a right hash": lambda whole: hashed(b"[]\n" + whole[65:].partition(b"\n")[2]),
    "shorter vectors, with a right hash": lambda whole: hashed(whole[65 : -8 * 30]),
}


def hashed(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


WHO = "nginx postgres redis grafana jellyfin wireguard pihole traefik nextcloud mosquitto frigate immich".split()  # noqa: SIM905
WHAT = ["restarts", "loses its lock", "fills the disk", "drops connections", "answers slowly", "rotates its logs"]
WHEN = ["after a power cut", "every night at two", "when the VPN reconnects", "while backups run", "under load"]
WHY = ["because the mount is not there", "and must be escalated", "so wait a minute", "which is harmless"]


@pytest.fixture(autouse=True)
def clean_process(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    binary_index.forget()
    yield
    binary_index.forget()


def unit(rows: int, dimensions: int = 384, seed: int = 7) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((rows, dimensions)).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


def index_of(vectors: np.ndarray, first: int = 1) -> BinaryIndex:
    index = BinaryIndex.empty(vectors.shape[1])
    index.add([(first + place, first + place + 1000, "ab", to_bytes(vector)) for place, vector in enumerate(vectors)])
    return index


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


def newest(model: EmbeddingModel) -> int:
    return max(Embedding.objects.filter(model=model).values_list("pk", flat=True), default=0)


def now(model: EmbeddingModel) -> BinaryIndex:
    return binary_index.current(model, newest(model))


def search(model: EmbeddingModel, query: np.ndarray, where: Filters | None = None, limit: int = 100):
    scope = EVERYTHING if where is None else scope_of(where)
    return vector_search.nearest(QueryVector(model, query, newest(model)), scope, limit)


@pytest.mark.parametrize("dimensions", [5, 64, 384, 640])
def test_a_distance_is_the_number_of_signs_that_differ(dimensions):
    vectors, query = unit(50, dimensions), unit(1, dimensions, seed=8)[0]
    found = index_of(vectors).distances(query)
    assert found.tolist() == ((vectors > 0) != (query > 0)).sum(axis=1).tolist()


@pytest.mark.parametrize("most", [1, 7, 40, 200])
def test_the_nearest_are_as_many_as_were_asked_for_in_their_order(most):
    index, distances = index_of(unit(100)), np.random.default_rng(1).integers(0, 30, 100).astype(np.uint16)
    places = index.nearest(distances, most)
    assert distances[places].tolist() == sorted(distances.tolist())[:most]
    assert len(set(places.tolist())) == min(most, 100)
    among = [1005, 1001, 1090, 4711]
    places = index.nearest(distances, most, among)
    assert set(index.memories[places].tolist()) <= set(among)
    assert len(places) == min(most, 3)


def test_an_estimate_is_near_the_cosine():
    vectors = unit(500)
    index, query = index_of(vectors), vectors[7] + unit(1, seed=3)[0]
    query /= np.linalg.norm(query)
    found = index.estimates(query, [1008, 1001, 4711])
    assert set(found) == {1008, 1001}
    assert found[1008] == pytest.approx(float(vectors[7] @ query), abs=0.1)


def test_what_is_added_in_any_number_of_steps_is_there_once():
    vectors = unit(300)
    index, whole = BinaryIndex.empty(384), index_of(vectors)
    for start, end in pairwise([0, 1, 2, 50, 51, 300]):
        rows = [(n + 1, n + 1001, "ab", to_bytes(vectors[n])) for n in range(start, end)]
        index.add([*rows, (end, end, "ab", b"of another length")])
    assert (len(index), index.last) == (300, 300)
    assert np.array_equal(index.data[:, :300], whole.data[:, :300])


@pytest.mark.django_db(transaction=True)
def test_the_index_follows_what_is_stored_and_deleted(monkeypatch):
    monkeypatch.setattr(binary_index, "LOOK_BACK", 5)
    vectors = unit(40)
    model, ids = stored_rows(vectors[:30])
    assert len(now(model)) == 30
    for place in range(30, 40):
        memory = Memory.objects.create(category="timing", observation=f"number {place}")
        Embedding.objects.create(model=model, memory=memory, vector=to_bytes(vectors[place]), content_hash="-")
        assert max(search(model, vectors[place]).cosines.items(), key=lambda one: one[1])[0] == memory.pk
    Embedding.objects.filter(memory__in=ids).delete()
    assert set(search(model, vectors[3]).cosines) == set(Embedding.objects.values_list("memory_id", flat=True))
    search(model, vectors[3])
    assert set(now(model).embeddings.tolist()) == set(Embedding.objects.values_list("pk", flat=True)), "compacted"


@pytest.mark.django_db(transaction=True)
def test_an_embedding_that_was_committed_after_a_higher_one_is_found():
    vectors = unit(3)
    model, ids = stored_rows(vectors)
    late = Embedding.objects.get(memory=ids[1])
    late.delete()
    assert len(now(model)) == 2
    late.save(force_insert=True)
    memory = Memory.objects.create(category="timing", observation="one more")
    Embedding.objects.create(model=model, memory=memory, vector=to_bytes(unit(1, seed=9)[0]), content_hash="-")
    assert len(search(model, vectors[1]).cosines) == 4


@pytest.mark.django_db(transaction=True)
def test_what_a_rolled_back_transaction_saw_is_not_kept():
    vectors = unit(4)
    model, _ = stored_rows(vectors[:3])
    now(model)
    with transaction.atomic():
        memory = Memory.objects.create(category="timing", observation="not for long")
        Embedding.objects.create(model=model, memory=memory, vector=to_bytes(vectors[3]), content_hash="-")
        assert len(search(model, vectors[3]).cosines) == 4
        transaction.set_rollback(True)
    assert now(model).embeddings.tolist() == list(Embedding.objects.order_by("pk").values_list("pk", flat=True))


@pytest.mark.django_db(transaction=True)
def test_a_second_process_reads_the_file_and_only_what_came_since(monkeypatch):
    monkeypatch.setattr(binary_index, "FILE_FROM", 10)
    monkeypatch.setattr(binary_index, "LOOK_BACK", 5)
    vectors = unit(31)
    model, _ = stored_rows(vectors[:30])
    first = now(model)
    assert binary_index.path_of(model).exists()
    binary_index.forget()
    memory = Memory.objects.create(category="timing", observation="later")
    Embedding.objects.create(model=model, memory=memory, vector=to_bytes(vectors[30]), content_hash="-")
    read, real = [], binary_index._rows

    def counted(model, columns, *rest, **given):
        rows = real(model, columns, *rest, **given)
        if "vector" in columns:
            read.extend(rows)
        return rows

    monkeypatch.setattr(binary_index, "_rows", counted)
    again = now(model)
    assert [row[1] for row in read] == [memory.pk]
    assert np.array_equal(again.data[:, :30], first.data[:, :30])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_damaged_or_made_from_something_else_is_made_anew_and_the_trace_says_so(monkeypatch, damage):
    monkeypatch.setattr(binary_index, "FILE_FROM", 10)
    monkeypatch.setattr(binary_index, "LOOK_BACK", 5)
    monkeypatch.setattr(vector_search, "LEAST_RESCORED", 3)
    monkeypatch.setattr(vector_search, "RESCORED", 1)
    vectors = unit(30)
    model, ids = stored_rows(vectors)
    now(model)
    path = binary_index.path_of(model)
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    with pytest.raises(binary_index.Damaged):
        binary_index.read_file(model)
    assert [f.level for f in doctor._vectors_file()] == ["warning"]
    binary_index.forget()
    found = search(model, vectors[4], limit=1)
    assert max(found.cosines, key=lambda pk: found.cosines[pk]) == ids[4]
    assert "the file of vectors was damaged" in found.by
    assert path.read_bytes() == whole
    assert "damaged" not in search(model, vectors[4], limit=1).by, "said once"
    assert [f.level for f in doctor._vectors_file()] == ["ok"]


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_truncated_or_replaced_while_it_is_in_use_changes_no_answer(monkeypatch):
    monkeypatch.setattr(binary_index, "FILE_FROM", 10)
    monkeypatch.setattr(binary_index, "LOOK_BACK", 5)
    vectors = unit(30)
    model, ids = stored_rows(vectors)
    now(model)
    binary_index.forget()
    before = search(model, vectors[4]).cosines
    path = binary_index.path_of(model)
    os.truncate(path, 0)
    assert search(model, vectors[4]).cosines == before
    path.unlink()
    assert search(model, vectors[4]).cosines == before
    assert max(before, key=lambda pk: before[pk]) == ids[4]


@pytest.mark.django_db(transaction=True)
def test_the_file_is_written_under_another_name_and_synced_and_leftovers_are_removed(monkeypatch):
    monkeypatch.setattr(binary_index, "FILE_FROM", 10)
    monkeypatch.setattr(binary_index, "LOOK_BACK", 5)
    model, _ = stored_rows(unit(30))
    folder = binary_index.path_of(model).parent
    folder.mkdir()
    left, young, earlier = folder / ".index-dead", folder / ".index-alive", folder / "of-before.npz"
    for file in (left, young, earlier):
        file.write_bytes(b"x")
    for file in (left, earlier):
        os.utime(file, (1e9, 1e9))
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    now(model)
    assert [Path(name).name.startswith(".index-") for name in synced] == [True]
    assert sorted(file.name for file in folder.iterdir()) == [".index-alive", binary_index.path_of(model).name]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("restarted", [True, False], ids=["a new process", "the same process"])
@pytest.mark.parametrize("kept", [0, 20], ids=["nothing of before", "half of it"])
@pytest.mark.parametrize("more", [0, 5], ids=["as many as before", "more than before"])
def test_after_a_restored_backup_the_new_embeddings_find_themselves(monkeypatch, restarted, kept, more):
    """A restored backup numbers its new embeddings like others that were there before, of other texts."""
    monkeypatch.setattr(binary_index, "FILE_FROM", 10)
    monkeypatch.setattr(binary_index, "LOOK_BACK", 5)
    monkeypatch.setattr(vector_search, "LEAST_RESCORED", 4)
    monkeypatch.setattr(vector_search, "RESCORED", 1)
    before, after = unit(40), unit(40 + more, seed=11)
    model, _ = stored_rows(before)
    rows = list(Embedding.objects.order_by("pk"))
    for place, row in enumerate(rows):
        row.content_hash = f"{place + 1:016x}" * 4
    Embedding.objects.bulk_update(rows, ["content_hash"])
    assert binary_index.current(model, newest(model)).count == 40
    Embedding.objects.filter(pk__gt=rows[kept - 1].pk if kept else 0).delete()
    first = rows[0].pk
    memories = Memory.objects.bulk_create(
        Memory(category="timing", observation=f"after {place}") for place in range(kept, 40 + more)
    )
    Embedding.objects.bulk_create(
        Embedding(
            pk=first + place,
            model=model,
            memory=memory,
            vector=to_bytes(after[place]),
            content_hash=f"{place + 99:016x}" * 4,
        )
        for place, memory in enumerate(memories, kept)
    )
    if restarted:
        binary_index.forget()
    for place, memory in enumerate(memories, kept):
        found = search(model, after[place], limit=1).cosines
        assert found[memory.pk] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.django_db
def test_a_vector_that_is_no_number_is_passed_over_and_counted():
    vectors = unit(3)
    vectors[1] = np.nan
    model, ids = stored_rows(vectors)
    found = search(model, vectors[0])
    assert set(found.cosines) == {ids[0], ids[2]}
    assert found.broken == 1


@pytest.mark.django_db
@pytest.mark.one_database
def test_a_scope_of_a_part_of_all_loses_none_of_its_nearest(monkeypatch):
    """Among many that are alike, most of them elsewhere, the first hundreds by their signs hold few of the scope's."""
    monkeypatch.setattr(vector_search, "RESCORED", 4)
    monkeypatch.setattr(vector_search, "READ", 1.0)
    random = np.random.default_rng(11)
    near = np.repeat(random.standard_normal((4, 384)), 1_000, axis=0) + 0.9 * random.standard_normal((4_000, 384))
    made = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)
    model, ids = stored_rows(made)
    for share in (2, 6, 40):
        mine = np.array(ids)[random.permutation(4_000)[: 4_000 // share]]
        Memory.objects.update(category="timing")
        Memory.objects.filter(pk__in=mine.tolist()).update(category="dependency")
        hit = 0
        for query in made[::400]:
            exact = dict(zip(mine.tolist(), (made[mine - ids[0]] @ query).tolist(), strict=True))
            found = search(model, query, Filters(categories=("dependency",))).cosines
            best, ten = (set(sorted(of, key=lambda pk, of=of: -of[pk])[:10]) for of in (exact, found))
            hit += len(best & ten)
        assert hit >= 0.99 * 10 * len(made[::400]), share


@pytest.mark.django_db
@pytest.mark.one_database
def test_of_the_real_models_nearest_ten_at_least_99_of_100_are_found(real_model, vectors, monkeypatch):
    """A tenth of the rows goes past the sign bits here, as a hundredth does of a hundred thousand."""
    texts = [f"{who} {what} {when} {why}" for who in WHO for what in WHAT for when in WHEN for why in WHY[:2]]
    embedder = LocalEmbedder(real_model)
    made = embed_cached(embedder, texts, vectors)
    model, ids = stored_rows(made, texts)
    monkeypatch.setattr(vector_search, "LEAST_RESCORED", len(texts) // 10)
    monkeypatch.setattr(vector_search, "RESCORED", 1)
    asked = embedder.embed([f"why is it that {who} {what}?" for who in WHO for what in WHAT[:3]])
    hit = 0
    for query in asked:
        exact = made @ query
        best = np.sort(exact)[-10]
        found = search(model, query, limit=10).cosines
        ten = sorted(found, key=lambda pk: -found[pk])[:10]
        hit += sum(exact[pk - ids[0]] >= best - 1e-6 for pk in ten)
    assert hit >= 0.99 * 10 * len(asked)
