"""`manage.py bench latency`, at sizes that show that it works; and its sentences."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection

from memories.bench.latency import nearest, times
from memories.bench.sentences import queries, sentence
from memories.models import Memory
from tests.embedders import WordEmbedder, active_model, embed_all
from tests.factories import MemoryFactory


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    call_command("bench", "latency", *arguments, stdout=out, stderr=err)
    return out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_every_figure_is_taken_on_a_database_of_its_own(endpoint, capfd):
    mine, name = MemoryFactory(), connection.settings_dict["NAME"]
    found = json.loads(run("--sizes", "120,50", "--runs", "2", "--seconds", "1", "--json"))["result"]
    assert found["semantic"] == "on (endpoint:one:4)"
    assert [one["memories"] for one in found["sizes"]] == [50, 120]
    for one in found["sizes"]:
        for figure in ("recall", "recall_cpu", "without_record", "under_load", "remember", "remember_cpu"):
            assert 0 < one[figure]["p50"] <= one[figure]["p95"] <= one[figure]["max"]
        assert one["recall"]["p50"] >= one["without_record"]["p50"]
        assert one["answered"] == 1.0
        assert sum(one["outcomes"].values()) == 2
        assert set(one["outcomes"]) <= {"created", "reinforced"}
        assert one["memory_mb"] > 20
        assert one["start_seconds"] > 0
        assert one["vector_recall_at_10"] == 1.0
        assert one["vectors"]["real"] + one["vectors"]["mixed"] == one["memories"]
        assert one["load_did"]["ingested"] + one["load_did"]["indexed"] > 0
    assert found["machine"]["cores"] >= 1
    assert "120 memories are stored" in capfd.readouterr().err
    assert list(Memory.objects.all()) == [mine]
    assert connection.settings_dict["NAME"] == name


@pytest.mark.django_db(transaction=True)
def test_without_a_model_words_are_measured_alone_and_a_person_reads_so(settings):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    text = run("--sizes", "50", "--runs", "1")
    assert "semantic search is off: it is switched off. The figures are of keyword search alone." in text
    assert "under load p50" in text
    assert "Vectors:" not in text


@pytest.mark.parametrize("given", ["abc", "0", "5", "", "-100", "1000,x", "99999999999"])
def test_sizes_that_are_none_are_refused(given, capsys):
    with pytest.raises(SystemExit) as left:
        run(f"--sizes={given}")
    assert left.value.code == 2
    assert "whole numbers from 10 to 10,000,000" in capsys.readouterr().err


def test_sentences_are_the_same_each_time_and_differ_from_one_another():
    said = [sentence(number) for number in range(2_000)]
    assert said == [sentence(number) for number in range(2_000)]
    assert len({one.observation for one in said}) > 1_990
    assert len({one.service for one in said}) > 100
    assert {one.category for one in said} == {"timing", "dependency", "behavior", "remediation", "maintenance"}
    assert not any("{" in one.observation + one.question for one in said)
    again = sentence(7, said=1)
    assert again.names == sentence(7).names


def test_no_query_is_asked_twice():
    asked = [query for query, _ in queries(500, 20, 1)]
    assert len(set(asked)) == 500


@pytest.mark.django_db
def test_the_exact_search_gives_the_tenth_nearest():
    embedder = WordEmbedder(32)
    MemoryFactory.create_batch(25)
    model = active_model(embedder)
    embed_all(embedder, model)
    asked = embedder.embed(["Takes 60s to start"])
    stored = np.stack([np.frombuffer(one.vector, dtype="<f4") for one in model.embeddings.all()])
    assert nearest(asked, model) == [pytest.approx(sorted((stored @ asked[0]).tolist())[-10], abs=1e-6)]


def test_percentiles_are_by_nearest_rank():
    assert times([0.001 * number for number in range(1, 21)]) == {"p50": 10.0, "p95": 19.0, "max": 20.0}
