"""What the queue's workers call for the memories. Thin: each does one domain verb and returns nothing."""

from __future__ import annotations

from memories.lifecycle.sweep import sweep as sweep_memories


def sweep() -> None:
    """Take what time takes: decay and expiry, up to now."""
    sweep_memories()
