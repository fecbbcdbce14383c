"""The database of the latency bench: filled in bulk, whole afterwards; taken away when a bench that died left it."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from contextlib import closing

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from memories.bench import making, scratch
from memories.bench.filling import Filler
from memories.bench.making import Chunk, make, maker
from memories.bench.sentences import sentence
from memories.models import Embedding, Memory, MemoryTerms, MemoryTermsDue, PendingEmbedding
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, keyword_index, recall
from memories.recall.keyword_index import text_of
from memories.recall.terms import index_terms
from tests.embedders import WordEmbedder

DAY = 24 * 3600
ALL = Filters(project=ANY_PROJECT, agent=ANY_AGENT)


def quiet(done, of):
    pass


def schema():
    """Indexes and triggers by name, and how each is made."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' UNION ALL "
                "SELECT tgname, tgenabled::text || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal"
            )
        else:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('index', 'trigger')")
        return dict(cursor.fetchall())


@pytest.mark.django_db(transaction=True)
def test_a_filled_database_is_whole_and_takes_more(tmp_path, settings):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    with scratch.scratch():
        before = schema()
        filler = Filler(WordEmbedder(32), tmp_path, seconds=60)
        filler.begin()
        filler.fill(60, quiet, quiet)
        filler.fill(250, quiet, quiet)
        assert schema() == before
        assert keyword_index.missing() == []
        assert Memory.objects.count() == MemoryTerms.objects.count() == Embedding.objects.count() == 250
        assert not MemoryTermsDue.objects.exists()
        assert not PendingEmbedding.objects.exists()
        assert Memory.objects.filter(active=False).count() == 25
        assert (filler.real, filler.mixed) == (250, 0)
        one = sentence(123)
        memory = Memory.objects.get(observation=one.observation)
        assert (memory.service, memory.category, memory.tags) == (one.service, one.category, [])
        assert (memory.project and memory.project.slug) == one.project
        terms = index_terms(text_of(memory.observation, memory.service, memory.tags, memory.created_at))
        assert MemoryTerms.objects.get(memory_id=memory.pk).terms == " ".join(terms)
        assert memory.pk in [hit.memory_id for hit in recall(one.observation, ALL).hits]
        later = Memory.objects.create(category="timing", observation="One more, of which the triggers know")
        assert later.pk > 250
        assert MemoryTermsDue.objects.filter(memory_id=later.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_vectors_that_were_not_made_by_the_model_are_near_to_one_that_was_and_of_length_one(tmp_path, settings):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    with scratch.scratch():
        filler = Filler(WordEmbedder(32), tmp_path, seconds=0)
        filler.begin()
        filler.fill(300, quiet, quiet)
        assert filler.real == 256
        vectors = np.stack([np.frombuffer(one.vector, dtype="<f4") for one in Embedding.objects.order_by("id")])
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        nearest = (vectors[256:] @ vectors[:256].T).max(axis=1)
        assert ((nearest > 0.6) & (nearest < 0.99)).all()


def test_rows_are_the_same_whether_one_process_makes_them_or_several(monkeypatch):
    chunks = [Chunk(start, start + 40, 7, timezone.now(), {"project-01": 3}) for start in range(0, 200, 40)]
    monkeypatch.setattr(making, "POOL_FROM", 1)
    monkeypatch.setattr(making, "cores", lambda: 2)
    with maker(200) as made:
        assert list(made(chunks)) == [make(chunk) for chunk in chunks]


def test_a_text_of_any_characters_comes_through_a_copy():
    assert making._copied("a\\b\tc\nd\re") == r"a\\b\tc\nd\re"
    assert making._copied(None) == r"\N"
    assert making._copied(b"\x00\xff") == r"\\x00ff"


def test_a_folder_that_a_killed_bench_left_is_gone_after_a_day_and_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name, file in (("claudeops-bench-old", "bench.sqlite3"), ("claudeops-bench-used", "x"), ("others-old", "x")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("rows")
    old = time.time() - 2 * DAY
    for path in (*tmp_path.rglob("*"),):
        if "used" not in str(path.parent):
            os.utime(path, (old, old))
    (tmp_path / "claudeops-bench-link").symlink_to(tmp_path / "others-old")
    assert list(scratch._tidy_folders(time.time())) == ["claudeops-bench-old"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "claudeops-bench-link",
        "claudeops-bench-used",
        "others-old",
    ]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="a database of a server's")
@pytest.mark.django_db(transaction=True)
def test_a_database_that_a_killed_bench_left_is_dropped_after_a_day_unless_somebody_is_in_it(monkeypatch):
    monkeypatch.setattr(scratch, "DATABASE", f"claudeops_tidied_{uuid.uuid4().hex[:8]}_")  # no other test's
    now = int(time.time())
    old, used, new = (f"{scratch.DATABASE}{made}_{'ab' * 6}" for made in (now - 2 * DAY, now - 3 * DAY, now - 60))
    others = f"{scratch.DATABASE}of_somebody"
    for name in (old, used, new, others):
        scratch._server(f'CREATE DATABASE "{name}"')
    inside = connection.copy()
    inside.settings_dict["NAME"] = used
    try:
        with closing(inside):
            inside.ensure_connection()
            assert list(scratch._tidy_databases(now)) == [old]
        with connection.cursor() as cursor:
            cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [scratch.DATABASE])
            assert {name for (name,) in cursor.fetchall()} == {used, new, others}
    finally:
        for name in (old, used, new, others):
            scratch._server(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
