"""The model in bytes: near the floats, the same in any batch, and not used where it is not near."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from memories.embedding.base import SemanticOff
from memories.embedding.bytewise import Bytewise
from memories.embedding.local import MINILM, LocalEmbedder
from tests.memories.embedding.test_local import REFERENCE, TEXTS, ids_of
from tests.memories.embedding.tiny import HIDDEN, computed, random_weights, write_model

LOUD = (1, 5)


@pytest.fixture
def floats(tmp_path):
    return LocalEmbedder(tmp_path / "floats", write_model(tmp_path / "floats"))


def in_bytes(folder, tensors=None, **given) -> LocalEmbedder:
    return LocalEmbedder(folder, write_model(folder, tensors, bytewise=Bytewise(**given)))


@pytest.mark.parametrize("loud", [(), LOUD])
def test_the_vectors_are_near_what_the_formulas_give_and_not_the_same(tmp_path, floats, loud):
    vectors = in_bytes(tmp_path / "bytes", loud=loud).embed(TEXTS)
    for text, vector, exact in zip(TEXTS, vectors, floats.embed(TEXTS), strict=True):
        assert vector @ computed(random_weights(), ids_of(text)) > 0.998, text
        assert not np.allclose(vector, exact, atol=1e-6), text


def test_a_vector_does_not_depend_on_what_else_is_in_the_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("memories.embedding.local.MOST_TOKENS", 20)
    embedder = in_bytes(tmp_path)
    texts = TEXTS * 7
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert np.allclose(embedder.embed(texts), alone, atol=1e-6)


def test_where_the_probe_gives_something_else_the_floats_answer_and_it_is_said(tmp_path, floats, caplog):
    expected = tuple(float(number) for number in floats.embed([TEXTS[0]])[0])
    with caplog.at_level(logging.WARNING):
        right = in_bytes(tmp_path / "right", probe=TEXTS[0], expected=expected, near=0.05)
        assert not caplog.records
        wrong = in_bytes(tmp_path / "wrong", probe=TEXTS[0], expected=expected[::-1], near=0.05)
    assert "tiny in bytes does not give what it should here" in caplog.text
    assert np.array_equal(wrong.embed(TEXTS), floats.embed(TEXTS))
    assert not np.array_equal(right.embed(TEXTS), floats.embed(TEXTS))


def test_tensors_that_do_not_fit_each_other_are_refused(tmp_path):
    weights = random_weights()
    weights["encoder.layer.0.output.dense.weight"] = np.zeros((HIDDEN, 3), dtype=np.float32)
    with pytest.raises(SemanticOff, match="cannot be"):
        in_bytes(tmp_path, weights, probe=TEXTS[0]).embed(TEXTS)


def test_the_official_model_in_bytes_is_near_its_floats_and_has_the_same_identity(real_model, caplog):
    with caplog.at_level(logging.WARNING):
        embedder = LocalEmbedder(real_model)
    assert not caplog.records
    exact = LocalEmbedder(real_model, replace(MINILM, bytewise=None))
    assert embedder.name == exact.name == f"{MINILM.name}@53aa51172d14"
    texts = [*REFERENCE, "wg0", "", "why did the nightly backup of the media host fail?"]
    near = (embedder.embed(texts) * exact.embed(texts)).sum(1)
    assert near.min() > 0.995
    assert near.mean() > 0.998

    loud = LocalEmbedder(real_model, replace(MINILM, bytewise=replace(MINILM.bytewise, loud=())))
    assert (loud.embed(texts) * exact.embed(texts)).sum(1).mean() < near.mean() - 0.0005
