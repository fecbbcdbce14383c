"""Turn texts into vectors: `current()` returns the embedder or raises SemanticOff. Must not import recall."""

from __future__ import annotations

from memories.embedding.base import (
    Embedder,
    SemanticOff,
    TextRefused,
    Vectors,
    content_hash,
    embedded_text,
    from_bytes,
    to_bytes,
)
from memories.embedding.state import (
    Answering,
    active_model,
    current,
    current_with_answering,
    off_reason,
    pending_count,
    reset,
    wanted,
)

__all__ = [
    "Answering",
    "Embedder",
    "SemanticOff",
    "TextRefused",
    "Vectors",
    "active_model",
    "content_hash",
    "current",
    "current_with_answering",
    "embedded_text",
    "from_bytes",
    "off_reason",
    "pending_count",
    "reset",
    "to_bytes",
    "wanted",
]
