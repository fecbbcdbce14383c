"""The cache of vectors that evaluations share."""

from __future__ import annotations

from tests.benchmarks.evaluation.vectors import embed_cached
from tests.support.embedders import WordEmbedder


def test_a_text_is_embedded_once(tmp_path):
    class Counting(WordEmbedder):
        texts = 0

        def embed(self, texts):
            self.texts += len(texts)
            return super().embed(texts)

    embedder = Counting()
    first = embed_cached(embedder, ["a", "b", "a"], tmp_path)
    again = embed_cached(embedder, ["b", "c"], tmp_path)
    assert embedder.texts == 3
    assert (first[1] == again[0]).all()


def test_a_damaged_cache_is_begun_anew_and_vectors_of_another_length_are_made_again(tmp_path):
    embedder = WordEmbedder()
    first = embed_cached(embedder, ["a"], tmp_path)
    (tmp_path / "vectors.sqlite3").write_bytes(b"not a database" * 100)
    assert (embed_cached(embedder, ["a"], tmp_path) == first).all()
    assert embed_cached(WordEmbedder(64), ["a"], tmp_path).shape == (1, 64)
