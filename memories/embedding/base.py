"""What an embedder is, for everything that asks one. Knows neither a model's files nor the database."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memories.errors import MemoriesError

Vectors = NDArray[np.float32]

STORED = np.dtype("<f4")
"""How a vector's numbers lie in the database, whatever the machine."""


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

        Raises SemanticOff when the model cannot be asked, TextRefused when it does not take one of the texts.
        """
        ...


class SemanticOff(MemoriesError):
    """No vectors now: `reason` says why, in words for a person. Whoever gets it goes on with keywords and says so."""

    code = "semantic_search_off"

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(f"semantic search is off: {reason}", fix)
        self.reason = reason


class TextRefused(MemoriesError):
    """The model answered, but does not take this text (too long, say); another text may be fine."""

    code = "text_refused"


class HasText(Protocol):
    """A memory, or a candidate for one."""

    @property
    def observation(self) -> str: ...

    @property
    def service(self) -> str | None: ...


def embedded_text(memory: HasText) -> str:
    """What is embedded of a memory: its observation, with the service in front as words where it is not named."""
    service = memory.service or ""
    words = " ".join(service.replace("_", " ").replace("-", " ").split())
    said = memory.observation.lower()
    if not words or words.lower() in said or service.lower() in said:
        return memory.observation
    return f"{words}: {memory.observation}"


def content_hash(text: str) -> str:
    """The SHA-256 (hex) of an embedded text: equal means there is nothing to embed anew."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def to_bytes(vector: Vectors) -> bytes:
    """A vector as it is stored."""
    return np.ascontiguousarray(vector, dtype=STORED).tobytes()


def from_bytes(raw: bytes | memoryview, dimensions: int) -> Vectors:
    """A stored vector. Raises ValueError when it is not of so many dimensions."""
    if len(raw) != dimensions * STORED.itemsize:
        raise ValueError(f"a stored vector has {len(raw) / STORED.itemsize:g} dimensions, not {dimensions}")
    return np.frombuffer(raw, dtype=STORED).astype(np.float32, copy=False)


def normalised(vectors: Vectors) -> Vectors:
    """The rows of `vectors` at length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)
