"""The latency script at a size that shows that it works, its generator, and the page of its figures."""

from __future__ import annotations

import json
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connection

from memories.errors import InvalidMemory
from memories.models import Embedding, Memory, MemoryTerms, MemoryTermsDue, PendingEmbedding
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, keyword_index, recall
from tests.benchmarks.evaluation.scratch import scratch_database
from tests.benchmarks.latency.filling import Filler
from tests.benchmarks.latency.measuring import tenth_nearest, times
from tests.benchmarks.latency.sentences import queries, sentence
from tests.benchmarks.latency.worker import load
from tests.benchmarks.page import page
from tests.support import processes
from tests.support.embedders import WordEmbedder, active_model, embed_all
from tests.support.factories import MemoryFactory


@pytest.mark.django_db(transaction=True)
def test_every_figure_is_measured_in_a_scratch_database(tmp_path: Path) -> None:
    mine = MemoryFactory()
    command = ["-m", "tests.benchmarks.latency", "--sizes", "60", "--runs", "2", "--out", str(tmp_path / "out.json")]
    process = processes.start(command, {"CLAUDEOPS_EMBEDDINGS": "off"})
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "under load p50" in out
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["semantic"] == "off: it is switched off"
    assert [one["memories"] for one in found["sizes"]] == [60]
    for one in found["sizes"]:
        for figure in ("recall", "recall_cpu", "without_record", "under_load", "remember", "remember_cpu"):
            assert 0 < one[figure]["p50"] <= one[figure]["p95"] <= one[figure]["max"]
        assert one["recall"]["p50"] >= one["without_record"]["p50"]
        assert one["answered"] == 1.0
        assert sum(one["outcomes"].values()) == 2
        assert set(one["outcomes"]) <= {"created", "reinforced"}
        assert one["memory_mb"] > 20
        assert one["start_seconds"] > 0
        assert one["load_did"]["ingested"] + one["load_did"]["indexed"] > 0
        assert one["load_did"]["swept"] > 0
    assert list(Memory.objects.all()) == [mine]
    text = page([{"latency": found}])
    assert "| 60 |" in text
    assert str(tmp_path) not in text


@pytest.mark.django_db(transaction=True)
def test_a_filled_database_is_whole_and_takes_more_and_a_thread_of_its_load_that_dies_fails(
    tmp_path: Path, settings: Any
) -> None:
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    with scratch_database():  # made once: its migrations take seconds
        filler = Filler(WordEmbedder(32), tmp_path, seconds=0)
        filler.begin()
        filler.fill(60)
        filler.fill(300)
        assert keyword_index.missing() == []
        assert Memory.objects.count() == MemoryTerms.objects.count() == Embedding.objects.count() == 300
        assert not MemoryTermsDue.objects.exists()
        assert not PendingEmbedding.objects.exists()
        assert Memory.objects.filter(active=False).count() == 30
        one = sentence(123)
        memory = Memory.objects.get(observation=one.observation)
        assert (memory.service, memory.category, memory.tags) == (one.service, one.category, [])
        assert (memory.project and memory.project.slug) == one.project
        found = recall(one.observation, Filters(project=ANY_PROJECT, agent=ANY_AGENT))
        assert memory.pk in [hit.memory_id for hit in found.hits]
        assert filler.mixed == 300 - filler.real > 0
        vectors = np.stack([np.frombuffer(one.vector, dtype="<f4") for one in Embedding.objects.order_by("id")])
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        nearest = (vectors[filler.real :] @ vectors[: filler.real].T).max(axis=1)
        assert ((nearest > 0.6) & (nearest < 0.99)).all()
        the_load_fails_with_its_thread()
    assert connection.settings_dict["NAME"]


def the_load_fails_with_its_thread() -> None:
    ours, theirs = Pipe()
    ours.send("stop")
    observation = {"category": "timing", "service": None, "project": None, "observation": "wg0 needs 60s to start"}
    with ours, theirs:
        load(theirs, [observation])
        assert ours.recv() == "running"
        assert ours.recv()["refused"] == 0
        ours.send("stop")
        with pytest.raises(InvalidMemory):
            load(theirs, [observation | {"category": "nothing"}])


def test_sentences_are_the_same_each_time_and_differ_from_one_another() -> None:
    said = [sentence(number) for number in range(2_000)]
    assert said == [sentence(number) for number in range(2_000)]
    assert len({one.observation for one in said}) > 1_990
    assert len({one.service for one in said}) > 100
    assert {one.category for one in said} == {"timing", "dependency", "behavior", "remediation", "maintenance"}
    assert not any("{" in one.observation + one.question for one in said)
    assert sentence(7, variant=1).names == sentence(7).names


def test_no_query_is_repeated() -> None:
    assert len({query for query, _ in queries(500, 20, 1)}) == 500


@pytest.mark.django_db
def test_the_exact_scan_gives_the_tenth_nearest() -> None:
    embedder = WordEmbedder(32)
    MemoryFactory.create_batch(25)
    model = active_model(embedder)
    embed_all(embedder, model)
    asked = embedder.embed(["Takes 60s to start"])
    stored = np.stack([np.frombuffer(one.vector, dtype="<f4") for one in Embedding.objects.all()])
    assert tenth_nearest(asked, model) == [pytest.approx(sorted((stored @ asked[0]).tolist())[-10], abs=1e-6)]


def test_percentiles_are_by_nearest_rank() -> None:
    assert times([0.001 * number for number in range(1, 21)]) == {"p50": 10.0, "p95": 19.0, "max": 20.0}
