"""The project's own sets, with the real model: how often recall finds what answers, and floors it may not fall below.

The sets have a part that was tuned on and one that was not; docs/recall.md has the figures of both. That PostgreSQL
filters and scores words alike is asserted in ../recall/test_same_everywhere.py, that it finds the same vectors in
../recall/test_same_vectors.py.
"""

from __future__ import annotations

import json

import pytest

from claudeops.env import BASE_DIR
from memories.embedding.local import MINILM
from memories.models import Memory
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, binary_index, fusion, recall
from memories.recall.service import candidates_of
from tests.benchmarks.evaluation.metrics import ranking_metrics
from tests.benchmarks.evaluation.recall import store
from tests.benchmarks.evaluation.sets import MemoryLine, QueryLine, read

DATA = BASE_DIR / "tests" / "data" / "recall"
PARTS = ("tuning", "blind")
ASKED_EACH = 40
"""Queries of each category that are asked here, of some 130 to 260; the command of the evaluation takes them all."""

pytestmark = pytest.mark.one_database


@pytest.fixture
def installed(real_model, vectors, settings, tmp_path):
    """The model where an installation has it, and nothing else in the data folder but the vectors of this run."""
    (tmp_path / "bench").symlink_to(vectors, target_is_directory=True)
    folder = tmp_path / "models" / MINILM.name
    folder.parent.mkdir()
    folder.symlink_to(real_model, target_is_directory=True)
    settings.CLAUDEOPS_MODELS_DIR = folder.parent
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    settings.CLAUDEOPS_EMBEDDINGS = "local"


def lines(name):
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


class Question(QueryLine):
    """A query of our sets, which may name what the relevant memory replaced."""

    older: list[str] = []


def questions(name):
    return read(DATA / name, Question)


def some(asked):
    """Some queries of each category, taken evenly."""
    of: dict[str, list[Question]] = {}
    for one in asked:
        of.setdefault(one.category, []).append(one)
    return [one for each in of.values() for one in each[:: -(-len(each) // ASKED_EACH)]]


def ranked(memories, asked, vectors):
    """By query the ids of the first ten memories, as the ranking alone orders the candidates."""
    stored = store(read(DATA / memories, MemoryLine), vectors)
    assert stored.semantic.startswith("on ")
    binary_index.forget()
    latest = Memory.objects.latest("created_at").created_at
    found = {}
    for one in asked:
        at = one.as_of or latest
        filters = Filters(project=ANY_PROJECT, agent=ANY_AGENT, as_of=one.as_of)
        candidates, state, likeness = candidates_of(one.query, filters, at=at)
        assert state == "on"
        hits = fusion.rank(candidates, at, fusion.WEIGHTS, False, likeness)
        found[one.id] = [stored.names[hit.memory_id] for hit in hits[:10]]
    return found


def test_no_query_is_in_both_parts_and_each_has_its_answer():
    for kind in ("ops", "age", "changes"):
        there = {one["id"] for one in lines(f"{kind}.memories.jsonl")}
        tuning, blind = ({one["query"]: one for one in lines(f"{kind}.{part}.queries.jsonl")} for part in PARTS)
        assert not tuning.keys() & blind.keys()
        assert {name for one in (*tuning.values(), *blind.values()) for name in one["relevant"]} <= there
    assert len(lines("ops.memories.jsonl")) == len({one["text"] for one in lines("ops.memories.jsonl")}) == 1_000


@pytest.mark.django_db
@pytest.mark.usefixtures("installed")
def test_paraphrased_queries_and_exact_names_find_their_facts_among_a_thousand(vectors):
    asked = some(questions("ops.blind.queries.jsonl"))
    found = ranked("ops.memories.jsonl", asked, vectors)
    measured: dict[str, list[float]] = {}
    for one in asked:
        measured.setdefault(one.category, []).append(ranking_metrics(found[one.id], one.relevant)["recall@5"])
    mean = {category: sum(each) / len(each) for category, each in measured.items()}
    assert mean["paraphrase"] >= 0.98
    assert mean["identifier"] >= 0.98
    assert mean["oblique"] >= 0.60


@pytest.mark.django_db
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("kind", "floors"),
    [("age", {"tuning": (0.93, 0.95), "blind": (0.90, 0.90)}), ("changes", {"blind": (0.60, 0.90)})],
)
def test_what_replaced_a_fact_is_above_it_and_old_truths_stay_where_they_are(vectors, kind, floors):
    asked = {part: questions(f"{kind}.{part}.queries.jsonl") for part in floors}
    found = ranked(f"{kind}.memories.jsonl", [one for each in asked.values() for one in each], vectors)
    place = {(query, name): at for query, names in found.items() for at, name in enumerate(names)}
    for part, (floor, first) in floors.items():
        above = [
            place.get((one.id, one.relevant[0]), 99) < place.get((one.id, one.older[0]), 99)
            for one in asked[part]
            if one.category == "superseded"
        ]
        true = [place.get((one.id, one.relevant[0]), 99) for one in asked[part] if one.category == "old and true"]
        assert sum(above) / len(above) >= floor
        assert all(at < 5 for at in true)
        assert sum(at == 0 for at in true) / len(true) >= first


@pytest.mark.django_db
@pytest.mark.usefixtures("installed")
def test_a_recall_of_five_hits_loses_nothing_to_the_trust_pass_and_the_collapse(vectors):
    names = store(read(DATA / "ops.memories.jsonl", MemoryLine), vectors).names
    asked = [one for one in read(DATA / "ops.blind.queries.jsonl", QueryLine) if one.category != "oblique"][::6]
    binary_index.forget()
    whole = 0.0
    for one in asked:
        hits = recall(one.query, Filters(), limit=5, at=one.as_of).hits
        whole += len({names[hit.memory_id] for hit in hits} & set(one.relevant)) / len(one.relevant)
    assert whole / len(asked) >= 0.98
