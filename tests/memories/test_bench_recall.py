"""`bench recall`: its arithmetic, and the command on the project's own facts, in a database of its own."""

from __future__ import annotations

import json
import os
import re
import signal
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from claudeops.env import BASE_DIR
from memories.bench.embedded import embedded
from memories.bench.recalling import answer, scores, summary
from memories.bench.scratch import scratch
from memories.bench.sets import Asked, read_memories, read_queries, store
from memories.errors import InvalidSet
from memories.models import Memory
from tests.embedders import WordEmbedder
from tests.factories import MemoryFactory
from tests.processes import wait_for

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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"id": "m1", "text": "y"}, "the id 'm1' is there twice"),
        ({"id": "m2"}, "'text' is missing"),
        ({"id": "m2", "text": "y", "position": "third"}, "'position' is 'third'; a whole number"),
        ({"id": "m2", "text": "y", "created_at": "2026-02-30T10:00:00Z"}, "'created_at' is '2026-02-30T10:00:00Z'"),
        ({"id": "m2", "text": "y", "created_at": 5}, "'created_at' is 5, which is no time"),
        ({"id": "m2", "text": "y", "project": "a b"}, "'project' is 'a b'; allowed are letters"),
        ({"id": "m2", "text": "y", "service": "s" * 65}, "'service' has 65 characters; at most 64"),
    ],
)
def test_a_line_that_is_no_memory_is_refused_with_its_number(tmp_path, line, said):
    file = tmp_path / "memories.jsonl"
    file.write_text(json.dumps({"id": "m1", "text": "x"}) + "\n" + json.dumps(line))
    with pytest.raises(InvalidSet, match="line 2") as refused:
        read_memories(file)
    assert said in str(refused.value)


def test_a_file_without_lines_is_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(InvalidSet, match="holds no query"):
        read_queries(tmp_path / "empty.jsonl")
    with pytest.raises(InvalidSet, match="holds no memory"):
        read_memories(tmp_path / "empty.jsonl")


def test_a_query_is_there_once(tmp_path):
    file = tmp_path / "queries.jsonl"
    file.write_text(2 * '{"id": "q0", "query": "x", "relevant": ["a"]}\n')
    with pytest.raises(InvalidSet, match="line 2: the id 'q0' is there twice"):
        read_queries(file)


def test_vectors_that_cannot_be_read_are_made_anew(tmp_path):
    embedder = WordEmbedder()
    first = embedded(embedder, ["a"], tmp_path)
    (tmp_path / "vectors.sqlite3").write_bytes(b"no database at all" * 100)
    assert (embedded(embedder, ["a"], tmp_path) == first).all()
    assert embedded(WordEmbedder(64), ["a"], tmp_path).shape == (1, 64)


@pytest.mark.django_db
def test_time_and_project_of_a_query_narrow_what_answers(settings, tmp_path):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    told = {
        "old": {"text": "The gateway reboots on Monday", "created_at": "2026-01-01T00:00:00Z"},
        "new": {"text": "The gateway reboots on Tuesday", "created_at": "2026-03-01"},
        "theirs": {"text": "The gateway reboots by hand", "project": "b", "created_at": "2026-01-01"},
    }
    asked = [
        {"id": "then", "query": "gateway reboots", "as_of": "2026-02-01T00:00:00Z", "project": "a"},
        {"id": "now", "query": "gateway reboots", "project": "a"},
        {"id": "theirs", "query": "gateway reboots", "project": "b"},
        {"id": "anywhere", "query": "gateway reboots"},
    ]
    told["ours"] = {"text": "Nothing of this is known", "project": "a"}
    memories, queries = tmp_path / "memories.jsonl", tmp_path / "queries.jsonl"
    memories.write_text("\n".join(json.dumps({"id": name, **row}) for name, row in told.items()))
    queries.write_text("\n".join(json.dumps({**row, "relevant": []}) for row in asked))
    stored = store(read_memories(memories), tmp_path)
    found = answer(read_queries(queries), stored.keys, context=False, limit=20)
    ranked = dict(zip((one.id for one in found.asked), found.ranked["recall"], strict=True))
    assert ranked["then"] == ["old"]
    assert ranked["now"] == ["new", "old"]
    assert set(ranked["theirs"]) == set(ranked["anywhere"]) == {"old", "new", "theirs"}


@pytest.mark.django_db
def test_neighbours_count_with_context_only(settings, tmp_path):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    turns = ["Which port has the printer?", "It is the third one.", "Good night."]
    file = tmp_path / "memories.jsonl"
    file.write_text(
        "\n".join(
            json.dumps({"id": str(place), "text": text, "sequence": "talk", "position": place})
            for place, text in enumerate(turns)
        )
    )
    stored = store(read_memories(file), tmp_path)
    asked = [Asked("q", "port of the printer", ("1",))]
    beside = answer(asked, stored.keys, context=True, limit=20).ranked
    assert beside["recall"][0][:2] == ["0", "1"]
    alone = answer(asked, stored.keys, context=False, limit=20).ranked
    assert "without context" in beside
    assert "without context" not in alone


@pytest.mark.parametrize("given", ["0", "-3", "many"])
def test_a_limit_that_is_none_is_refused(given, capsys):
    with pytest.raises(SystemExit) as left:
        call_command("bench", "recall", "--memories", "m", "--queries", "q", "--limit", given)
    assert (left.value.code, "a whole number from 1 on" in capsys.readouterr().err) == (2, True)


@pytest.mark.django_db(transaction=True)
def test_queries_without_an_answer_are_answered_and_not_counted_and_unknown_ids_are_named(settings, tmp_path):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    memories, queries, target = (tmp_path / f"{name}.jsonl" for name in ("memories", "queries", "out"))
    memories.write_text('{"id": 1, "text": "The wg0 tunnel drops"}')
    asked = [
        {"id": "a", "query": "wg0", "relevant": [1]},
        {"id": "b", "query": "tunnel", "relevant": []},
        {"id": "c", "query": "tunnel", "relevant": ["gone"]},
    ]
    queries.write_text("\n".join(json.dumps(row) for row in asked))
    files = {"memories": str(memories), "queries": str(queries), "out": str(target)}
    out = StringIO()
    call_command("bench", "recall", *_options(files), stdout=out)
    assert "1 queries have no relevant memory and are not counted." in out.getvalue()
    assert "1 relevant ids are of no memory and cannot be found: gone" in out.getvalue()
    assert [json.loads(line)["id"] for line in target.read_text().splitlines()] == ["a", "b", "c"]
    assert re.search(r"^recall +0\.500", out.getvalue(), re.MULTILINE)


@pytest.mark.django_db(transaction=True)
def test_a_bench_that_is_broken_off_leaves_no_database_behind():
    name, folder = connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR
    with pytest.raises(SystemExit) as left, scratch() as where:
        made = connection.settings_dict["NAME"]
        assert made != name
        os.kill(os.getpid(), signal.SIGTERM)  # Ctrl-C leaves the same way, without our help
        wait_for(lambda: False)
    assert left.value.code == 128 + signal.SIGTERM
    assert not where.exists()
    assert (connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR) == (name, folder)
    assert made not in scratch_databases()


def scratch_databases():
    """Names of what benches left behind on the server."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE 'claudeops_bench_%%'")
        return [name for (name,) in cursor.fetchall()]


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
