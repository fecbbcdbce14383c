"""Vectors of a bench's texts, kept by content in the data folder: a run that broke off embeds nothing twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from memories.embedding import Embedder, Vectors, content_hash, from_bytes, to_bytes

BATCH = 32

Progress = Callable[[int, int], None]


def embedded(embedder: Embedder, texts: Sequence[str], folder: Path, progress: Progress | None = None) -> Vectors:
    """Vectors of `texts`, (len(texts), dimensions); those made are kept in `folder` batch by batch."""
    folder.mkdir(parents=True, exist_ok=True)
    hashes = [content_hash(text) for text in texts]
    with closing(sqlite3.connect(folder / "vectors.sqlite3")) as kept:
        kept.execute("CREATE TABLE IF NOT EXISTS vectors (model, hash, vector, PRIMARY KEY (model, hash))")
        found: dict[str, Vectors] = {
            key: from_bytes(raw, embedder.dimensions)
            for key, raw in kept.execute("SELECT hash, vector FROM vectors WHERE model = ?", [embedder.name])
        }
        missing = list({key: text for key, text in zip(hashes, texts, strict=True) if key not in found}.items())
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            made = embedder.embed([text for _, text in batch])
            for (key, _), vector in zip(batch, made, strict=True):
                found[key] = vector
                kept.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", [embedder.name, key, to_bytes(vector)])
            kept.commit()
            if progress:
                progress(start + len(batch), len(missing))
    return np.stack([found[key] for key in hashes])
