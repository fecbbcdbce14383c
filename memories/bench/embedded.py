"""Vectors of a bench's texts, kept by content in the data folder: a run that broke off embeds nothing twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from memories.embedding import Embedder, Vectors, content_hash, from_bytes, to_bytes
from memories.embedding.base import STORED

BATCH = 32
LOOKED_UP = 500

Progress = Callable[[int, int], None]


def embedded(embedder: Embedder, texts: Sequence[str], folder: Path, progress: Progress | None = None) -> Vectors:
    """Vectors of `texts`, (len(texts), dimensions); those made are kept in `folder` batch by batch."""
    hashes = [content_hash(text) for text in texts]
    with closing(_open(folder)) as kept:
        found = _kept(kept, embedder, hashes)
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


def _open(folder: Path) -> sqlite3.Connection:
    """The file of kept vectors; one that is broken is begun anew."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vectors.sqlite3"
    make = "CREATE TABLE IF NOT EXISTS vectors (model, hash, vector, PRIMARY KEY (model, hash))"
    kept = sqlite3.connect(path)
    try:
        kept.execute(make)
    except sqlite3.OperationalError:  # busy, full, not writable: nothing that deleting would mend
        kept.close()
        raise
    except sqlite3.DatabaseError:
        kept.close()
        path.unlink()
        kept = sqlite3.connect(path)
        kept.execute(make)
    return kept


def _kept(kept: sqlite3.Connection, embedder: Embedder, hashes: Sequence[str]) -> dict[str, Vectors]:
    """Those of these vectors that were made before; what is of another length is made anew."""
    found: dict[str, Vectors] = {}
    wanted = list(dict.fromkeys(hashes))
    for start in range(0, len(wanted), LOOKED_UP):
        part = wanted[start : start + LOOKED_UP]
        marks = ", ".join("?" * len(part))
        rows = kept.execute(
            f"SELECT hash, vector FROM vectors WHERE model = ? AND hash IN ({marks})",  # noqa: S608
            [embedder.name, *part],
        )
        for key, raw in rows:
            if len(raw) == embedder.dimensions * STORED.itemsize:
                found[key] = from_bytes(raw, embedder.dimensions)
    return found
