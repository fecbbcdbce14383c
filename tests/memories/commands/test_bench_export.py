"""`manage.py bench export`: the operator's answers and marks as sets, and back through the evaluation."""

from __future__ import annotations

import io
import json
from functools import partial

import pytest
from django.core.management import call_command

from memories.lifecycle import disagreements
from memories.recall.feedback import mark
from memories.recall.service import Question
from tests.benchmarks.evaluation.command import Command
from tests.support import commands
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db(transaction=True)


run = partial(commands.run, "bench")


def evaluate(verb, *arguments):
    out = io.StringIO()
    call_command(Command(), verb, *map(str, arguments), "--json", stdout=out)
    return json.loads(out.getvalue())["result"]


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.usefixtures("scratch_is_a_copy")
def test_marked_hits_are_exported_and_read_back(operator, tmp_path):
    project = ProjectFactory(slug="lab")
    right = MemoryFactory(observation="The wg0 tunnel drops after a reboot", project=project)
    wrong = MemoryFactory(observation="The tunnel boring machine is for rent")
    MemoryFactory(observation="Jellyfin takes 60 seconds to start")
    mark(Question("tunnel drops", project="lab"), right.pk, "right", by=operator)
    mark(Question("tunnel drops", project="lab"), wrong.pk, "wrong", by=operator)
    queries, memories = tmp_path / "queries.jsonl", tmp_path / "memories.jsonl"
    code, out, _ = run("export", "--kind", "recall", "--out", queries, "--memories", memories)
    assert code == 0
    assert "1 queries are in" in out
    (query,) = lines(queries)
    assert (query["query"], query["project"], query["relevant"]) == ("tunnel drops", "lab", [str(right.uuid)])
    assert query["wrong"] == [str(wrong.uuid)]
    assert {row["id"]: row["project"] for row in lines(memories)}[str(right.uuid)] == "lab"
    result = evaluate("recall", "--memories", memories, "--queries", queries)
    assert (result["memories"], result["unknown"]) == (3, [])
    assert result["variants"]["recall"]["recall@1"]["mean"] == 1.0


def test_what_may_not_be_recalled_is_in_neither_file(operator, tmp_path):
    kept = MemoryFactory(observation="Backups of the NAS run at three")
    held = MemoryFactory(observation="The password of the NAS is hunter2")
    gone = MemoryFactory(observation="Backups of the NAS run at four")
    for memory in (kept, held, gone):
        mark(Question("backups"), memory.pk, "right", by=operator)
    mark(Question("password"), held.pk, "right", by=operator)
    type(held).objects.filter(pk=held.pk).update(verdict="hold")
    type(gone).objects.filter(pk=gone.pk).update(active=False, inactive_reason="operator")
    queries, memories = tmp_path / "queries.jsonl", tmp_path / "memories.jsonl"
    code, out, _ = run("export", "--kind", "recall", "--out", queries, "--memories", memories)
    assert (code, "1 marked queries are left out" in out) == (0, True)
    assert [row["relevant"] for row in lines(queries)] == [[str(kept.uuid)]]
    assert [row["id"] for row in lines(memories)] == [str(kept.uuid)]
    assert "hunter2" not in queries.read_text() + memories.read_text()
    assert str(held.uuid) not in queries.read_text()


def test_answered_disagreements_are_exported_as_pairs_and_read_back(tmp_path):
    older, newer = (
        MemoryFactory(observation="Takes 60s to start"),
        MemoryFactory(observation="Takes 5 minutes to start"),
    )
    disagreements.answer(disagreements.note(older, newer, "contradiction"), "wrong", by="ann")
    disagreements.note(older, MemoryFactory(), "duplicate")
    file = tmp_path / "settled.jsonl"
    code, out, _ = run("export", "--kind", "pairs", "--out", file, "--json")
    answer = json.loads(out)
    assert (code, answer["command"], answer["result"]["count"]) == (0, "bench export", 1)
    assert [action["command"] for action in answer["next_actions"]] == [
        f"python -m tests.benchmarks.evaluation matching --pairs {file}"
    ]
    (line,) = lines(file)
    assert line | {"id": ""} == {
        "id": "",
        "known": "Takes 60s to start",
        "new": "Takes 5 minutes to start",
        "relation": "contradicts",
        "service": "jellyfin",
        "category": "timing",
    }
    assert evaluate("matching", "--pairs", file)["macro_f1"] == 1.0


def test_a_file_that_cannot_be_written_is_refused_and_nothing_is_left(tmp_path):
    taken = tmp_path / "taken.jsonl"
    taken.mkdir()
    code, out, _ = run("export", "--kind", "pairs", "--out", taken, "--json")
    error = json.loads(out)["error"]
    assert (code, error["code"]) == (1, "invalid_set")
    assert error["message"] == f"{taken} cannot be written: Is a directory."
    code, _, err = run("export", "--kind", "recall", "--out", tmp_path / "no" / "q", "--memories", tmp_path / "m")
    assert (code, "q cannot be written" in err) == (1, True)
    assert list(tmp_path.iterdir()) == [taken]


def test_with_nothing_marked_it_says_so(tmp_path):
    code, out, _ = run("export", "--kind", "recall", "--out", tmp_path / "q", "--memories", tmp_path / "m")
    assert (code, "No hit that may be recalled is marked right yet" in out) == (0, True)


def test_both_files_are_asked_for_and_must_differ(tmp_path):
    code, _, err = run("export", "--kind", "recall", "--out", tmp_path / "q")
    assert (code, "writes two files" in err) == (1, True)
    code, _, err = run("export", "--kind", "recall", "--out", tmp_path / "q", "--memories", tmp_path / "q")
    assert (code, "Give two files" in err) == (1, True)
    code, _, err = run("export", "--kind", "pairs", "--out", tmp_path / "q", "--memories", tmp_path / "m")
    assert (code, "--memories is for --kind recall" in err) == (1, True)
    assert not list(tmp_path.iterdir())
