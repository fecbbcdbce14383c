"""The interface of an embedder and the format of a stored vector. Knows neither files nor the database."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memories.errors import MemoriesError

Vectors = NDArray[np.float32]

STORED = np.dtype("<f4")
"""The byte order and type of a vector's numbers in the database, on any machine."""


class Embedder(Protocol):
    """Turns texts into vectors. May be called from several threads at once."""

    @property
    def name(self) -> str:
        """The identity of model and revision; vectors of different names must never be compared."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of `texts`: float32 of shape (len(texts), dimensions), each of length 1.

        Raises SemanticOff when the model cannot answer, TextRefused when it refuses one of the texts.
        """
        ...


class SemanticOff(MemoriesError):
    """There are no vectors now; `reason` says why, for people. The caller continues with keywords and says so."""

    code = "semantic_search_off"

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(f"semantic search is off: {reason}", fix)
        self.reason = reason


class TextRefused(MemoriesError):
    """The model works but refuses this text, which may be too long; another text may be accepted."""

    code = "text_refused"


class HasText(Protocol):
    @property
    def observation(self) -> str: ...

    @property
    def service(self) -> str | None: ...


def embedded_text(memory: HasText) -> str:
    """Return the text to embed: the observation, prefixed with the service unless it names it."""
    service = memory.service or ""
    words = " ".join(service.replace("_", " ").replace("-", " ").split())
    text = memory.observation.lower()
    if not words or words.lower() in text or service.lower() in text:
        return memory.observation
    return f"{words}: {memory.observation}"


def content_hash(text: str) -> str:
    """Return the SHA-256 (hex) of an embedded text: an equal hash means that the stored vector is current."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def to_bytes(vector: Vectors) -> bytes:
    return np.ascontiguousarray(vector, dtype=STORED).tobytes()


def from_bytes(raw: bytes | memoryview, dimensions: int) -> Vectors:
    """Return the vector of stored bytes. Raises ValueError when it does not have `dimensions` numbers."""
    if len(raw) != dimensions * STORED.itemsize:
        raise ValueError(f"a stored vector has {len(raw) / STORED.itemsize:g} dimensions, not {dimensions}")
    return np.frombuffer(raw, dtype=STORED).astype(np.float32, copy=False)


def normalised(vectors: Vectors) -> Vectors:
    """Scale the rows of `vectors` to length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)
