"""What the queue's workers call for the memories. Thin: each does one domain verb and returns nothing."""

from __future__ import annotations

from memories.embedding.install import install_if_missing
from memories.embedding.sweep import sweep as sweep_embeddings
from memories.lifecycle.sweep import sweep as sweep_memories


def sweep() -> None:
    """Take what time takes: decay and expiry, up to now."""
    sweep_memories()


def embed() -> None:
    """Bring the model when it is missing, and make the vectors that are."""
    install_if_missing()
    sweep_embeddings()
