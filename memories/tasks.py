"""What the queue's workers call for the memories. Thin: each does one domain verb and returns nothing."""

from __future__ import annotations

from memories.embedding.install import install_if_missing
from memories.embedding.sweep import sweep as sweep_embeddings
from memories.lifecycle.sweep import sweep as sweep_memories
from memories.recall import keyword_index, log, pgvector


def sweep() -> None:
    """Take what time takes: decay and expiry, up to now."""
    sweep_memories()


def embed() -> None:
    """Bring the model when it is missing, make the vectors that are, and keep PostgreSQL's index of them."""
    install_if_missing()
    sweep_embeddings()
    pgvector.ensure()


def keep_recall() -> None:
    """Fill the full-text index with what was written, and count what was recalled."""
    keyword_index.catch_up()
    log.count()
