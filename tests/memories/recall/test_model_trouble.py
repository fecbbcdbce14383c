"""A model that disappears, is damaged or answers wrongly while a process runs: words answer, and the trace says why."""

from __future__ import annotations

import numpy as np
import pytest

from memories.embedding import to_bytes
from memories.embedding.backfill import backfill
from memories.embedding.local import TOKENIZER, WEIGHTS
from memories.models import Embedding
from memories.recall import Filters, binary_index, keyword_index, query_vector, recall
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

QUESTION = "the cat sat on the mat"


@pytest.fixture(autouse=True)
def clean_process():
    binary_index.forget()
    query_vector.forget()
    yield
    binary_index.forget()
    query_vector.forget()


@pytest.fixture
def cat():
    memory = MemoryFactory(observation="The cat sat on the mat", service=None)
    MemoryFactory(observation="The dog ran far away", service=None)
    keyword_index.catch_up()
    return memory.pk


def answered(query=QUESTION):
    """The best hit and the state of semantic search."""
    found = recall(query, Filters())
    return found.hits[0].memory_id, found.trace.semantic


def test_a_model_that_disappears_while_running_and_comes_back(tiny, tmp_path, cat):
    backfill()
    assert answered() == (cat, "on")
    tiny.rename(tmp_path / "elsewhere")
    assert answered("the cat on the mat") == (cat, "off: the model tiny is not installed")
    assert answered() == (cat, "off: the model tiny is not installed")  # asked before, and its vector is kept
    (tmp_path / "elsewhere").rename(tiny)
    assert answered() == (cat, "on")


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
@pytest.mark.parametrize("damage", ["a bit", "cut short", "empty", "something else"])
def test_a_file_of_the_model_that_is_damaged_while_running(name, damage, tiny, cat):
    backfill()
    assert answered() == (cat, "on")
    raw = (tiny / name).read_bytes()
    broken = {
        "a bit": raw[:-1] + bytes([raw[-1] ^ 1]),
        "cut short": raw[: len(raw) // 2],
        "empty": b"",
        "something else": b"<html>Not found</html>",
    }
    (tiny / name).write_bytes(broken[damage])
    best, semantic = answered()
    assert best == cat
    assert semantic.startswith("off: ") and name in semantic
    (tiny / name).write_bytes(raw)
    assert answered() == (cat, "on")


def test_an_endpoint_that_answers_with_other_dimensions_than_before(endpoint, cat):
    backfill()
    assert answered() == (cat, "on")
    endpoint.dimensions = 5
    best, semantic = answered("a cat that sat on a mat")
    assert best == cat
    assert semantic.startswith("off: ") and "5" in semantic
    endpoint.dimensions = 4
    assert answered("a cat that sat on one mat") == (cat, "on")


@pytest.mark.parametrize(
    "answer",
    [
        (500, {"error": "no"}),
        (200, {"data": []}),
        (200, {"data": [{"index": 0, "embedding": []}]}),
        (200, {"data": [{"index": 0, "embedding": [float("nan")] * 4}]}),
        (200, "nothing of the kind"),
        (401, {"error": "key"}),
        (400, {"error": "too long"}),
    ],
)
def test_an_endpoint_that_goes_wrong_costs_the_meaning_and_not_the_answer(answer, endpoint, cat):
    backfill()
    endpoint.answer = lambda texts, model: answer
    best, semantic = answered()
    assert best == cat
    assert semantic.startswith("off: ")


@pytest.mark.parametrize(
    "stored",
    [b"", b"\x00" * 12, b"\x00" * 17, to_bytes(np.ones(5, dtype=np.float32)), to_bytes(np.full(4, np.nan, np.float32))],
    ids=["empty", "three numbers", "no whole number of them", "one too many", "not a number"],
)
def test_a_stored_vector_that_is_none_loses_its_memory_nothing_but_the_meaning(stored, endpoint, cat):
    backfill()
    Embedding.objects.filter(memory=cat).update(vector=stored)
    found = recall(QUESTION, Filters())
    assert found.hits[0].memory_id == cat
    assert found.trace.semantic == "on"
    assert found.hits[0].parts.cosine is None
    assert all(hit.score == hit.score for hit in found.hits)
