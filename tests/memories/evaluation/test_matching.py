"""`python -m tests.benchmarks.evaluation matching`."""

from __future__ import annotations

import json
from functools import partial

import pytest

from memories.embedding.endpoint import PROBE
from memories.models import Memory, MemoryChange
from tests.benchmarks.evaluation.command import Command
from tests.memories.pairs import FOLDER
from tests.support import commands
from tests.support.processes import start

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

PAIRS = [
    ("a", "Takes 60s to start", "Takes one minute to start", "reinforces"),
    ("b", "Takes 60s to start", "Takes 5 minutes to start", "contradicts"),
    ("c", "Takes 60s to start", "Needs the NAS mounted", "distinct"),
    ("d", "Is enabled", "Leases last one day", "contradicts"),
]


run = partial(commands.run, Command(), "matching")


@pytest.fixture
def pairs(tmp_path):
    def write(rows):
        file = tmp_path / "pairs.jsonl"
        file.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
        return file

    return write


def rows():
    return [dict(zip(("id", "known", "new", "relation"), pair, strict=True)) for pair in PAIRS]


def test_the_confusion_and_the_rates_are_those_of_the_pairs(pairs):
    code, out, _ = run("--pairs", pairs(rows()), "--json")
    answer = json.loads(out)
    assert (code, answer["ok"], answer["command"]) == (0, True, "bench matching")
    figures = answer["result"]
    assert figures["confusion"]["contradicts"] == {"reinforces": 0, "contradicts": 1, "distinct": 1}
    # reinforces 1, contradicts 2/3 (one of two found), distinct 2/3 (one too many)
    assert figures["macro_f1"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 3, abs=1e-4)
    assert (figures["distinct_lost"], figures["contradictions_swallowed"]) == (0, 0)
    assert (figures["restatements_merged"], figures["destructive"], figures["pairs"]) == (1, 0, 4)


@pytest.mark.processes
def test_the_program_sets_django_up_by_itself_and_refuses_a_wrong_file(pairs):
    for file, code in ((pairs(rows()), 0), ("nowhere.jsonl", 1)):
        words = ["matching", "--pairs", str(file), "--words", "--json"]
        process = start(["-m", "tests.benchmarks.evaluation", *words])
        out, _ = process.communicate(timeout=60)
        answer = json.loads(out)
        assert (process.returncode, answer["ok"], answer["command"]) == (code, not code, "bench matching")


def test_a_person_reads_them_as_a_table(pairs):
    code, out, _ = run("--pairs", pairs(rows()))
    assert code == 0
    assert "4 pairs, macro-F1 0.778" in out
    assert "restatements merged       100.0%" in out


def test_each_answer_is_written_with_its_evidence(pairs, tmp_path):
    out = tmp_path / "answers.jsonl"
    run("--pairs", pairs(rows()), "--out", out)
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(one["id"], one["relation"]) for one in answers] == [
        ("a", "reinforces"),
        ("b", "contradicts"),
        ("c", "distinct"),
        ("d", "distinct"),
    ]
    assert "5 minutes" in answers[1]["evidence"]["why"]


def test_pairs_without_a_relation_are_judged_and_not_counted(pairs, tmp_path):
    out = tmp_path / "answers.jsonl"
    code, text, _ = run("--pairs", pairs([{"id": 1, "known": "Is on", "new": "Is off"}]), "--out", out)
    assert (code, "nothing is counted" in text) == (0, True)
    assert json.loads(out.read_text())["id"] == "1"


def test_no_row_of_the_operators_is_read_or_written(pairs, django_assert_num_queries):
    with django_assert_num_queries(0):
        run("--pairs", FOLDER / "unseen.jsonl")
    assert (Memory.objects.count(), MemoryChange.objects.count()) == (0, 0)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "line 1: invalid JSON"),
        ("[1]", "line 1: Input should be a valid dictionary"),
        ({"id": "a", "known": "x"}, "'new': Field required"),
        ({"id": "a", "known": "x", "new": "  "}, "'new': String should match"),
        (
            {"id": "a", "known": "x", "new": "y", "relation": "same"},
            "'relation': Input should be 'reinforces', 'contradicts' or 'distinct'",
        ),
        ('{"id": "a", "known": "x", "new": "y"}\n{"id": "a", "known": "x", "new": "y"}', "the id 'a' is there twice"),
        ("", "holds no lines"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(row, said, pairs):
    code, _, err = run("--pairs", pairs([row]))
    assert code == 1
    assert said in err


def test_a_file_that_is_not_there_is_named():
    code, out, _ = run("--pairs", "nowhere.jsonl", "--json")
    answer = json.loads(out)
    assert (code, answer["error"]["code"]) == (1, "invalid_set")
    assert "nowhere.jsonl cannot be read" in answer["error"]["message"]


def test_answers_that_cannot_be_written_are_refused(pairs, tmp_path):
    code, _, err = run("--pairs", pairs(rows()), "--out", tmp_path / "no" / "where.jsonl")
    assert (code, "cannot be written" in err) == (1, True)


def test_a_run_that_broke_off_embeds_nothing_twice(pairs, endpoint):
    endpoint.answer = lambda texts, model: (503, "later") if "Needs the NAS mounted" in texts else None
    code, _, err = run("--pairs", pairs(rows()))
    assert (code, "answers with HTTP 503" in err) == (1, True)
    endpoint.answer = lambda texts, model: None
    code, out, _ = run("--pairs", pairs(rows()), "--json")
    assert (code, json.loads(out)["result"]["semantic"]) == (0, "on (endpoint:one:4)")
    before = len(endpoint.texts)
    code, again, _ = run("--pairs", pairs(rows()), "--json")
    assert set(endpoint.texts[before:]) <= {"a probe", PROBE}
    assert json.loads(again)["result"]["confusion"] == json.loads(out)["result"]["confusion"]


def test_without_a_model_it_says_so():
    _, out, _ = run("--pairs", FOLDER / "unseen.jsonl")
    assert "Embeddings: semantic search is off: it is switched off." in out


UNSURE = "The nightly library scan of all media takes long on the old disks"
UNSURE_TOO = "The nightly library scan of all media takes long on the slow old disks"


def test_the_judge_is_asked_about_what_stays_unsure_and_both_figures_are_given(pairs, judge):
    given = [*rows(), {"id": "e", "known": UNSURE, "new": UNSURE_TOO, "relation": "reinforces"}]
    judge.says |= {UNSURE_TOO: "reinforces", "Takes 5 minutes to start": "contradicts"}
    code, out, _ = run("--pairs", pairs(given), "--words", "--judge", "--json")
    figures = json.loads(out)["result"]
    assert code == 0
    assert [pair["second"] for pair in judge.asked[0]] == ["Takes 5 minutes to start", UNSURE_TOO]
    assert (figures["accuracy"], figures["judge"]["accuracy"]) == (0.6, 0.8)
    taken = {name: figures["judge"][name] for name in ("asked", "unanswered", "calls", "tokens_in", "tokens_out")}
    assert taken == {"asked": 2, "unanswered": 0, "calls": 1, "tokens_in": 200, "tokens_out": 20}
    _, out, _ = run("--pairs", pairs(given), "--words", "--judge")
    assert "small was asked about 2 pairs in 1 calls (200 tokens in, 20 out, $0.0000); 0 without a verdict." in out


def test_it_asks_twenty_pairs_to_a_call(pairs, judge):
    given = [{"id": str(n), "known": UNSURE, "new": UNSURE_TOO, "relation": "reinforces"} for n in range(23)]
    run("--pairs", pairs(given), "--words", "--judge")
    assert [len(asked) for asked in judge.asked] == [20, 3]


def test_a_contradiction_is_not_talked_away_and_what_has_no_verdict_stays(pairs, judge):
    judge.usual = "reinforces"
    _, out, _ = run("--pairs", pairs(rows()), "--words", "--judge", "--json")
    assert json.loads(out)["result"]["judge"]["confusion"]["contradicts"]["contradicts"] == 1
    judge.served.status = 401
    _, out, _ = run("--pairs", pairs(rows()), "--words", "--judge", "--json")
    figures = json.loads(out)["result"]
    assert figures["judge"]["unanswered"] == figures["judge"]["asked"] == 1
    assert figures["judge"]["why"] and figures["judge"]["accuracy"] == figures["accuracy"]


def test_without_a_judge_it_refuses(pairs):
    code, out, _ = run("--pairs", pairs(rows()), "--judge", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (1, "no_judge")
