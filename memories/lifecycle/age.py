"""A memory's row as the rules of ageing look at it."""

from __future__ import annotations

from memories.lifecycle.rules import Age
from memories.models import Memory, Verdict
from memories.taxonomy import TAXONOMIES


def age_of(memory: Memory) -> Age:
    return Age(
        taxonomy=TAXONOMIES[memory.taxonomy],
        category=memory.category,
        confidence=memory.confidence,
        active=memory.active,
        inactive_reason=memory.inactive_reason,
        held=memory.verdict == Verdict.HOLD,
        persistent=memory.persistent,
        updated_at=memory.updated_at,
        decayed_until=memory.decayed_until,
        expires_at=memory.expires_at,
    )
