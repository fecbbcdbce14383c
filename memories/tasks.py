"""What the queue's workers call for the memories. Thin: each does one domain verb and returns nothing."""

from __future__ import annotations

from memories.embedding.backfill import backfill
from memories.embedding.install import install_if_missing
from memories.lifecycle.sweep import sweep as sweep_memories
from memories.recall import index, pgvector_index, record


def sweep() -> None:
    """Take what time takes: decay and expiry, up to now."""
    sweep_memories()


def embed() -> None:
    """Install the model if it is missing, make missing vectors, and maintain PostgreSQL's index of them."""
    install_if_missing()
    backfill()
    pgvector_index.keep()


def keep_recall() -> None:
    """Fill the full-text index with what was written, and count what was recalled."""
    index.catch_up()
    record.count()
