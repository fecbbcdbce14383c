"""`python -m tests.benchmarks.evaluation recall`: the rankings that are compared, and the command on invented facts."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from claudeops.env import BASE_DIR
from memories.models import Memory
from tests.benchmarks.evaluation.command import Command
from tests.benchmarks.evaluation.recall import rank, store
from tests.benchmarks.evaluation.sets import MemoryLine, QueryLine, read
from tests.support.factories import MemoryFactory

DATA = BASE_DIR / "tests" / "data" / "recall"


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
    lines = read(queries, QueryLine)
    found, _ = rank(lines, store(read(memories, MemoryLine), tmp_path), context=False, limit=20)
    ranked = dict(zip((one.id for one in lines), found["recall"], strict=True))
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
    stored = store(read(file, MemoryLine), tmp_path)
    asked = [QueryLine(id="q", query="port of the printer", relevant=["1"])]
    beside, _ = rank(asked, stored, context=True, limit=20)
    assert beside["recall"][0][:2] == ["0", "1"]
    alone, _ = rank(asked, stored, context=False, limit=20)
    assert "without context" in beside
    assert "without context" not in alone


@pytest.mark.parametrize("given", ["0", "-3", "many"])
def test_a_limit_that_is_none_is_refused(given, capsys):
    with pytest.raises(SystemExit) as left:
        call_command(Command(), "recall", "--memories", "m", "--queries", "q", "--limit", given)
    assert (left.value.code, "a whole number from 1 on" in capsys.readouterr().err) == (2, True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("scratch_is_a_copy")
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
    call_command(Command(), "recall", *_options(files), stdout=out)
    assert "1 queries have no relevant memory and are not counted." in out.getvalue()
    assert "1 relevant ids belong to no memory and cannot be found: gone" in out.getvalue()
    assert [json.loads(line)["id"] for line in target.read_text().splitlines()] == ["a", "b", "c"]
    assert re.search(r"^recall +0\.500", out.getvalue(), re.MULTILINE)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("scratch_is_a_copy")
def test_the_command_finds_every_identifier_and_leaves_the_operators_rows_alone(settings, tmp_path):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    mine = MemoryFactory()
    name = connection.settings_dict["NAME"]
    out, target = StringIO(), tmp_path / "answers.jsonl"
    files = {"memories": str(DATA / "facts.memories.jsonl"), "queries": str(DATA / "facts.queries.jsonl")}
    call_command(Command(), "recall", "--out", str(target), "--json", *_options(files), stdout=out)
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
