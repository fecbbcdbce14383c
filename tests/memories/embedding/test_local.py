"""The local model: its vectors, and the files that it refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from memories.embedding.base import SemanticOff
from memories.embedding.local import MINILM, TOKENIZER, WEIGHTS, LocalEmbedder
from tests.memories.embedding import graph
from tests.memories.embedding.tiny import HIDDEN, WORDS, computed, random_weights, spec_of, write_model

TEXTS = ["the cat sat on the mat", "dog", "jellyfin takes far away seconds to start", "", "unheard words only"]


@pytest.fixture
def embedder(tmp_path):
    return LocalEmbedder(tmp_path, write_model(tmp_path))


def ids_of(text: str) -> list[int]:
    return [2, *[WORDS.index(word) if word in WORDS else 1 for word in text.split()], 3]


def test_the_vectors_are_what_the_formulas_give(embedder):
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.dimensions) == (len(TEXTS), HIDDEN)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.allclose(vector, computed(random_weights(), ids_of(text)), atol=1e-5), text


def test_a_vector_does_not_depend_on_what_else_is_in_the_batch(embedder, monkeypatch):
    monkeypatch.setattr("memories.embedding.local.MOST_TOKENS", 20)
    texts = TEXTS * 7
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert np.allclose(embedder.embed(texts), alone, atol=1e-6)


def test_nothing_is_asked_and_nothing_is_answered(embedder):
    assert embedder.embed([]).shape == (0, HIDDEN)


def test_a_long_text_is_read_as_far_as_the_model_goes(embedder):
    assert np.array_equal(*embedder.embed(["cat " * 10 + "dog " * 90, "cat " * 10 + "far " * 3]))


def test_half_a_character_is_no_reason_to_stop(embedder):
    assert np.isfinite(embedder.embed(["cat \ud83d"])).all()


def test_several_threads_may_ask_at_once(embedder):
    expected = embedder.embed(TEXTS)
    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(lambda _: embedder.embed(TEXTS), range(40)):
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_a_file_that_is_not_the_published_one_is_named_and_not_used(tmp_path, name):
    spec = write_model(tmp_path)
    path = tmp_path / name
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)
    with pytest.raises(SemanticOff) as off:
        LocalEmbedder(tmp_path, spec)
    assert str(path) in off.value.reason
    assert spec.sha256[name] in off.value.reason
    assert "embeddings install" in off.value.fix


def test_a_file_that_is_not_there_is_named(tmp_path):
    spec = write_model(tmp_path)
    (tmp_path / TOKENIZER).unlink()
    with pytest.raises(SemanticOff, match=r"tokenizer\.json cannot be read \(No such file or directory\)"):
        LocalEmbedder(tmp_path, spec)


def test_weights_that_the_graph_was_not_written_for_are_refused(tmp_path):
    spec = write_model(tmp_path / "model")
    weights = tmp_path / "model" / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-4])
    with pytest.raises(SemanticOff, match="cannot be loaded"):
        LocalEmbedder(tmp_path / "model", spec_of(tmp_path / "model"))
    assert spec.identity != spec_of(tmp_path / "model").identity


def test_a_tokenizer_that_is_none_is_refused(tmp_path):
    write_model(tmp_path)
    (tmp_path / TOKENIZER).write_text('{"version": "1.0"}')
    with pytest.raises(SemanticOff, match="cannot be loaded"):
        LocalEmbedder(tmp_path, spec_of(tmp_path))


# By the official files, computed with numpy in float64 from the formulas (as `tiny.computed` does).
REFERENCE = {
    "The cat sat on the mat": [0.1304018, -0.0118701, -0.028117, 0.0512387, -0.0559745],
    "Jellyfin takes 60s to start after a restart": [0.0098339, -0.0655275, 0.0199594, -0.0311376, -0.0089843],
    "wg0: no route to host 10.8.0.1 (2.1.330) — ping 🐈": [-0.0156042, 0.007917, 0.0643601, 0.0799843, 0.0017947],
    "word " * 400: [-0.0081237, -0.095586, -0.0386731, 0.049662, -0.0437937],
}


def test_the_official_model_gives_the_reference_vectors(real_model):
    embedder = LocalEmbedder(real_model, MINILM.as_published)
    assert embedder.name == f"{MINILM.name}@53aa51172d14"
    vectors = embedder.embed(list(REFERENCE))
    assert vectors.shape == (len(REFERENCE), 384)
    for vector, expected in zip(vectors, REFERENCE.values(), strict=True):
        assert np.allclose(vector[:5], expected, atol=2e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_the_graph_in_the_repository_is_the_one_that_is_written_for_the_official_weights(real_model):
    assert MINILM.graph.read_bytes() == graph.encoder(real_model / WEIGHTS)


def test_the_official_model_knows_what_is_near(real_model):
    embed = LocalEmbedder(real_model, MINILM.as_published).embed
    said, again, other = embed(
        [
            "Jellyfin takes 60s to start after a restart",
            "Jellyfin is up a minute after it was restarted",
            "The cat sat on the mat",
        ]
    )
    assert said @ again == pytest.approx(0.8582195, abs=1e-5)
    assert said @ other == pytest.approx(0.0049161, abs=1e-5)


def test_the_bytes_of_the_official_model_are_near_its_floats_and_a_vector_does_not_depend_on_its_batch(real_model):
    floats, quantised = (LocalEmbedder(real_model, one) for one in (MINILM.as_published, MINILM))
    assert quantised.name == f"{floats.name}-int8"
    texts = [text for text in REFERENCE for _ in range(2)]
    vectors = quantised.embed(texts)
    assert ((vectors * floats.embed(texts)).sum(axis=1) > 0.975).all()
    assert np.array_equal(vectors, np.concatenate([quantised.embed([text]) for text in texts]))


def test_other_weights_are_another_model(tmp_path):
    one, two = write_model(tmp_path / "one"), write_model(tmp_path / "two", random_weights(2))
    assert LocalEmbedder(tmp_path / "one", one).name != LocalEmbedder(tmp_path / "two", two).name
    assert replace(one, name="other").identity != one.identity
