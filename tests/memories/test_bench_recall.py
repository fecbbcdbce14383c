"""`bench recall`: its arithmetic, and the command on the project's own facts, in a database of its own."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from claudeops.env import BASE_DIR
from memories.bench.embedded import embedded
from memories.bench.recalling import read_queries, scores, summary
from memories.errors import InvalidSet
from memories.models import Memory
from tests.embedders import WordEmbedder
from tests.factories import MemoryFactory

DATA = BASE_DIR / "tests" / "data" / "recall"


def test_figures_of_one_query():
    found = scores(["x", "a", "y", "b"], ["a", "b"])
    assert (found["recall@1"], found["recall@5"], found["hit@1"], found["hit@5"]) == (0, 1, 0, 1)
    assert found["mrr"] == 0.5
    assert found["ndcg@10"] == pytest.approx((1 / 1.58496 + 1 / 2.32193) / (1 + 1 / 1.58496), abs=1e-4)


def test_the_interval_holds_the_mean_and_is_the_same_each_time():
    each = [scores(["a"], ["a"]), scores(["b"], ["a"]), scores(["a"], ["a"]), scores(["b"], ["a"])]
    found = summary(each)
    assert found == summary(each)
    assert found["recall@1"]["low"] < found["recall@1"]["mean"] == 0.5 < found["recall@1"]["high"]


def test_a_text_is_embedded_once(tmp_path):
    class Counting(WordEmbedder):
        texts = 0

        def embed(self, texts):
            self.texts += len(texts)
            return super().embed(texts)

    embedder = Counting()
    first = embedded(embedder, ["a", "b", "a"], tmp_path)
    again = embedded(embedder, ["b", "c"], tmp_path)
    assert embedder.texts == 3
    assert (first[1] == again[0]).all()


@pytest.mark.parametrize("line", ['{"id": "q", "query": "x"}', '{"id": "q", "query": "", "relevant": ["a"]}', "no"])
def test_a_line_that_is_no_query_is_refused_with_its_number(tmp_path, line):
    file = tmp_path / "queries.jsonl"
    file.write_text('{"id": "q0", "query": "x", "relevant": ["a"]}\n' + line)
    with pytest.raises(InvalidSet, match="line 2"):
        read_queries(file)


@pytest.mark.django_db(transaction=True)
def test_the_command_finds_every_identifier_and_leaves_the_operators_rows_alone(settings, tmp_path):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    mine = MemoryFactory()
    name = connection.settings_dict["NAME"]
    out, target = StringIO(), tmp_path / "answers.jsonl"
    files = {"memories": str(DATA / "facts.memories.jsonl"), "queries": str(DATA / "facts.queries.jsonl")}
    call_command("bench", "recall", "--out", str(target), "--json", *_options(files), stdout=out)
    result = json.loads(out.getvalue())["result"]
    assert result["semantic"] == "off: it is switched off"
    for category in ("identifier", "superseded", "old and true"):
        assert result["categories"][category]["recall@1"]["mean"] == 1.0
    assert result["variants"]["without age"]["queries"] == 10
    ranked = [json.loads(line) for line in target.read_text().splitlines()]
    assert ranked[0]["ranked"][0] == "f1"
    assert len(ranked) == 10
    assert connection.settings_dict["NAME"] == name
    assert list(Memory.objects.all()) == [mine]


def _options(files):
    return [part for key, value in files.items() for part in (f"--{key}", value)]
