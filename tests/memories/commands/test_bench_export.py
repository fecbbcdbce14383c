"""`manage.py bench export --kind recall`: the operator's marks as a set, and back through `bench recall`."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command

from memories.recall.feedback import mark
from memories.recall.service import Question
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db(transaction=True)


def run(verb, *arguments):
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("bench", verb, *map(str, arguments), stdout=out, stderr=err)
        code = 0
    except SystemExit as exit_:
        code = exit_.code
    return code, out.getvalue(), err.getvalue()


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.usefixtures("scratch_is_a_copy")
def test_marked_hits_are_exported_and_the_bench_reads_them_back(operator, tmp_path):
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
    code, out, _ = run("recall", "--memories", memories, "--queries", queries, "--json")
    result = json.loads(out)["result"]
    assert (code, result["memories"], result["unknown"]) == (0, 3, [])
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
