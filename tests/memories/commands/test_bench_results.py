"""`manage.py bench results`: one page of what the benches printed."""

from __future__ import annotations

import io
import json
import re

import pytest
from django.core.management import call_command

from claudeops.env import BASE_DIR
from memories.bench.page import page
from tests.memories.pairs import FOLDER

FACTS = BASE_DIR / "tests" / "data" / "recall"
MACHINE = {
    "at": "2026-11-22 10:00 UTC",
    "database": "SQLite 3.40.1",
    "cores": 2,
    "processor": "A processor",
    "load": 0.4,
    "python": "3.11.7",
    "django": "5.2",
    "numpy": "2.4",
}
SIZE = {
    "memories": 1_000,
    "vectors": {"real": 900, "mixed": 100},
    "recall": {"p50": 9.1, "p95": 14.2, "max": 20.0},
    "recall_cpu": {"p50": 8.1, "p95": 13.2, "max": 19.0},
    "under_load": {"p50": 12.0, "p95": 31.0, "max": 60.0},
    "remember": {"p50": 25.0, "p95": 40.0, "max": 60.0},
    "remember_cpu": {"p50": 17.0, "p95": 30.0, "max": 31.0},
    "load_did": {"indexed": 5_000, "swept": 600, "ingested": 40, "refused": 0, "seconds": 4.2},
    "memory_mb": 150,
    "start_seconds": 1.4,
    "vector_recall_at_10": 0.998,
    "load": [0.4, 1.2, 2.1],
    "vectors_served_by": "numpy",
}


def latency(**changed):
    return {"semantic": "on (all-MiniLM)", "runs": 200, "sizes": [SIZE | changed], "machine": MACHINE}


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("bench", *map(str, arguments), stdout=out, stderr=err)
        code = 0
    except SystemExit as exit_:
        code = exit_.code
    return code, out.getvalue(), err.getvalue()


@pytest.mark.django_db(transaction=True)
def test_what_the_benches_print_becomes_a_page_without_a_path_of_this_machine(tmp_path):
    memories, queries = FACTS / "facts.memories.jsonl", FACTS / "facts.queries.jsonl"
    answers = tmp_path / "answers.jsonl"
    (tmp_path / "m.json").write_text(run("matching", "--pairs", FOLDER / "unseen.jsonl", "--json")[1])
    asked = ("recall", "--memories", memories, "--queries", queries, "--out", answers, "--json")
    (tmp_path / "r.json").write_text(run(*asked)[1])
    target = tmp_path / "results.md"
    code, out, err = run("results", tmp_path / "m.json", tmp_path / "r.json", "--out", target)
    assert (code, err) == (0, "")
    assert "made of 2 documents: 1 of recall, 1 of matching" in out
    text = target.read_text()
    assert text.index("## Recall") < text.index("### facts.queries.jsonl") < text.index("## Matching")
    assert re.search(r"\| \*\*recall\*\* \| \d\.\d{3} \[", text)
    assert "| without words |" in text
    assert "| identifier |" in text
    assert "; by words alone, without a model." in text
    assert "unseen.jsonl (by words alone)" in text
    assert str(tmp_path) not in text
    assert str(BASE_DIR) not in text
    run("results", tmp_path / "m.json", tmp_path / "r.json", "--out", target)
    assert target.read_text() == text


def test_latency_is_held_against_its_aims():
    text = page([("latency", latency())], "command")
    assert "| 1,000 | 9.1 | 14.2 | 15: reached | 8.1 | 13.2 | 12 | 31 | 25 (aim 20: missed) | 40 | 17 |" in text
    assert (
        "| 1,000 | 150 | 1.4 (aim 1: missed) | 0.998 | 900 by the model, 100 mixed with noise; searched by numpy |"
        in text
    )
    assert "5,000 indexed, 600 swept, 40 taken in, 0 refused, in 4.2 s" in text
    assert "**Not measured for this page**, though there are aims: 10,000 and 100,000 and 1,000,000 memories." in text
    slow = page([("latency", latency(recall={"p50": 1, "p95": 15.0, "max": 15.0}))], "command")
    assert "15: missed" in slow


def test_a_busy_machine_is_named_as_one():
    assert "Measured under load" not in page([("latency", latency())], "command")
    busy = page([("latency", latency(load=[0.4, 9.5, 12.0]))], "command")
    assert "**Measured under load**" in busy
    assert "load 0.4 to 12." in busy


def test_without_a_model_the_page_says_so():
    alone = latency(vectors={"real": 0, "mixed": 0}, vector_recall_at_10=None) | {"semantic": "off: /home/me is gone"}
    text = page([("latency", alone)], "command")
    assert "By words alone, without a model." in text
    assert "/home/me" not in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no", "is no JSON"),
        ("[]", "is no document of a bench"),
        ('{"ok": true, "command": "memory list", "result": {}}', "is no document of a bench"),
        ('{"ok": false, "command": "bench recall", "error": {}}', "says that bench recall failed"),
        ('{"ok": true, "command": "bench latency", "result": {}}', "A document lacks what the page shows"),
    ],
)
def test_what_is_no_document_of_a_bench_is_refused(content, said, tmp_path):
    (tmp_path / "x.json").write_text(content)
    code, _, err = run("results", tmp_path / "x.json", "--out", tmp_path / "page.md")
    assert (code, said in err) == (1, True)
    assert not (tmp_path / "page.md").exists()


def test_a_document_that_is_not_there_and_a_page_that_cannot_be_written_are_named(tmp_path):
    code, _, err = run("results", tmp_path / "x.json", "--out", tmp_path / "page.md")
    assert (code, "x.json cannot be read" in err) == (1, True)
    (tmp_path / "x.json").write_text(json.dumps({"ok": True, "command": "bench latency", "result": latency()}))
    code, _, err = run("results", tmp_path / "x.json", "--out", tmp_path / "no" / "page.md")
    assert (code, "cannot be written" in err) == (1, True)
