"""An embedder for tests: texts with the same words have the same direction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
import pytest

from memories import embedding
from memories.embedding import Answering, Embedder, SemanticOff, Vectors, embedded_text, state, to_bytes
from memories.models import Embedding, EmbeddingModel, Memory, PendingEmbedding

MEANINGS = {"tunnel": "vpn", "wireguard": "vpn", "jams": "stuck", "printer": "paper"}
MEANINGS |= {"slow": "takes", "sluggish": "takes"}


class WordEmbedder:
    """Each word has its own direction; words of MEANINGS share one. Deterministic on any machine."""

    name = "words@test"

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.broken = False

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.broken:
            raise SemanticOff("the model's file is gone")
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> Vectors:
        vector = np.zeros(self.dimensions)
        for word in re.findall(r"\w+", text.lower()):
            seed = hashlib.sha256(MEANINGS.get(word, word).encode()).digest()
            vector += np.random.default_rng(int.from_bytes(seed[:8], "big")).standard_normal(self.dimensions)
        length = np.linalg.norm(vector)
        return np.asarray(vector / length if length else vector, dtype=np.float32)


def answer_by(monkeypatch: pytest.MonkeyPatch, embedder: Embedder) -> None:
    """Let this embedder embed queries, whatever the settings and the model that answers."""

    def current_with_answering() -> tuple[Embedder, Answering]:
        found = state.answering()
        if found is None:
            raise SemanticOff("there are no vectors yet")
        return embedder, found

    monkeypatch.setattr(embedding, "current_with_answering", current_with_answering)


def active_model(embedder: WordEmbedder) -> EmbeddingModel:
    return EmbeddingModel.objects.create(name=embedder.name, dimensions=embedder.dimensions, state="active")


def embed_all(embedder: WordEmbedder, model: EmbeddingModel) -> None:
    """Give every memory without a vector one, as a worker's backfill would."""
    waiting = Memory.objects.exclude(embeddings__model=model)
    rows = [
        Embedding(model=model, memory=row, vector=to_bytes(embedder.embed([embedded_text(row)])[0]), content_hash="-")
        for row in waiting
    ]
    Embedding.objects.bulk_create(rows)
    PendingEmbedding.objects.filter(model=model).delete()
