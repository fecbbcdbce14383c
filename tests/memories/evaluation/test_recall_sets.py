"""The project's own sets, with the real model: how often recall finds what answers, and floors it may not fall below.

The sets have a part that was tuned on and one that was not; docs/recall.md has the figures of both.
"""

from __future__ import annotations

import json
import os
from io import StringIO

import pytest
from django.core.management import call_command

from claudeops.env import BASE_DIR
from memories.embedding.local import MINILM
from memories.evaluation.recall import store
from memories.evaluation.sets import MemoryLine, QueryLine, read
from memories.recall import Filters, binary_index, recall

DATA = BASE_DIR / "tests" / "data" / "recall"
PARTS = ("tuning", "blind")
ASKED_EACH = 75
"""Queries of each category that are asked here, of some 130 to 260; `bench recall` takes them all."""


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    """The folder of vectors that all workers of this run share: each text is embedded once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "vectors"
    folder.mkdir(exist_ok=True)
    return folder


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


def some(name):
    """Some queries of each category, taken evenly from the file."""
    of: dict[str, list] = {}
    for one in lines(name):
        of.setdefault(one["category"], []).append(one)
    return [one for each in of.values() for one in each[:: -(-len(each) // ASKED_EACH)]]


def bench(tmp_path, memories, queries):
    asked, target, out = tmp_path / "queries.jsonl", tmp_path / "ranked.jsonl", StringIO()
    asked.write_text("".join(json.dumps(one) + "\n" for one in queries), encoding="utf-8")
    call_command(
        "bench", "recall", "--memories", str(DATA / memories), "--queries", str(asked), "--out", str(target), "--json",
        stdout=out,
    )  # fmt: skip
    result = json.loads(out.getvalue())["result"]
    assert result["semantic"].startswith("on ")
    ranked = {one["id"]: one["ranked"] for one in map(json.loads, target.read_text(encoding="utf-8").splitlines())}
    return {name: of["recall@5"]["mean"] for name, of in result["categories"].items()}, ranked


def test_no_query_is_in_both_parts_and_each_has_its_answer():
    for kind in ("ops", "age", "changes"):
        there = {one["id"] for one in lines(f"{kind}.memories.jsonl")}
        tuning, blind = ({one["query"]: one for one in lines(f"{kind}.{part}.queries.jsonl")} for part in PARTS)
        assert not tuning.keys() & blind.keys()
        assert {name for one in (*tuning.values(), *blind.values()) for name in one["relevant"]} <= there
    assert len(lines("ops.memories.jsonl")) == len({one["text"] for one in lines("ops.memories.jsonl")}) == 1_000


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("installed")
def test_paraphrased_queries_and_exact_names_find_their_facts_among_a_thousand(tmp_path):
    found, _ = bench(tmp_path, "ops.memories.jsonl", some("ops.blind.queries.jsonl"))
    assert found["paraphrase"] >= 0.98
    assert found["identifier"] >= 0.98
    assert found["oblique"] >= 0.60


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("kind", "part", "floor", "first"),
    [("age", "tuning", 0.93, 0.95), ("age", "blind", 0.90, 0.90), ("changes", "blind", 0.60, 0.90)],
)
def test_what_replaced_a_fact_is_above_it_and_old_truths_stay_where_they_are(tmp_path, kind, part, floor, first):
    asked = lines(f"{kind}.{part}.queries.jsonl")
    _, ranked = bench(tmp_path, f"{kind}.memories.jsonl", asked)
    place = {(query, name): at for query, names in ranked.items() for at, name in enumerate(names)}
    above = [
        place.get((one["id"], one["relevant"][0]), 99) < place.get((one["id"], one["older"][0]), 99)
        for one in asked
        if one["category"] == "superseded"
    ]
    true = [place.get((one["id"], one["relevant"][0]), 99) for one in asked if one["category"] == "old and true"]
    assert sum(above) / len(above) >= floor
    assert all(at < 5 for at in true)
    assert sum(at == 0 for at in true) / len(true) >= first


@pytest.mark.django_db
@pytest.mark.usefixtures("installed")
def test_a_recall_of_five_hits_loses_nothing_to_the_trust_pass_and_the_collapse(vectors):
    names = store(read(DATA / "ops.memories.jsonl", MemoryLine), vectors).names
    asked = [one for one in read(DATA / "ops.blind.queries.jsonl", QueryLine) if one.category != "oblique"][::3]
    binary_index.forget()
    whole = 0.0
    for one in asked:
        hits = recall(one.query, Filters(), limit=5, at=one.as_of).hits
        whole += len({names[hit.memory_id] for hit in hits} & set(one.relevant)) / len(one.relevant)
    assert whole / len(asked) >= 0.98
