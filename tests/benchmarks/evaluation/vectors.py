"""Cache vectors in a folder, by model and text, so that a repeated evaluation embeds nothing twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from memories.embedding import Embedder, Vectors, content_hash, from_bytes, to_bytes

BATCH = 32

Progress = Callable[[int, int], None]
"""Called with (done, total)."""


def embed_cached(embedder: Embedder, texts: Sequence[str], folder: Path, progress: Progress | None = None) -> Vectors:
    """Return vectors of `texts`, shape (len(texts), dimensions), stored batch by batch. Raises SemanticOff."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        cache = _open(folder / "vectors.sqlite3")
    except sqlite3.OperationalError:  # locked or not writable: deleting the file would not help
        raise
    except sqlite3.DatabaseError:  # not a database
        (folder / "vectors.sqlite3").unlink()
        cache = _open(folder / "vectors.sqlite3")
    with closing(cache):
        found: dict[str, Vectors] = {}
        for text in dict.fromkeys(texts):
            row = cache.execute(
                "SELECT vector FROM vectors WHERE model = ? AND hash = ?", [embedder.name, content_hash(text)]
            ).fetchone()
            if row and len(row[0]) == embedder.dimensions * np.dtype("<f4").itemsize:
                found[text] = from_bytes(row[0], embedder.dimensions)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            made = dict(zip(batch, embedder.embed(batch), strict=True))
            cache.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                [(embedder.name, content_hash(text), to_bytes(vector)) for text, vector in made.items()],
            )
            cache.commit()
            found |= made
            if progress:
                progress(start + len(batch), len(missing))
    return np.stack([found[text] for text in texts])


def _open(path: Path) -> sqlite3.Connection:
    cache = sqlite3.connect(path)
    try:
        cache.execute("CREATE TABLE IF NOT EXISTS vectors (model, hash, vector, PRIMARY KEY (model, hash))")
    except sqlite3.DatabaseError:
        cache.close()
        raise
    return cache
