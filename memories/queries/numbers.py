"""The numbers of memories that several pages show: what each counts is said here alone.

What waits on the desk, with the disagreements, is counted by `memories.desk.counts`.
"""

from __future__ import annotations

from claudeops.lib.capped import Count, count_of
from memories.models import Memory
from memories.queries.filters import with_status


def held() -> Count:
    """Count the memories that the gate holds for review, and that nobody has rejected."""
    return count_of(Memory.objects.awaiting_review())


def unconfirmed() -> Count:
    """Count the active memories that CLAUDEOPS_TRUST keeps out of prompts."""
    return count_of(Memory.objects.unconfirmed())


def waiting() -> Count:
    """Count the memories that wait for a person: held and unconfirmed ones, each from its own index."""
    return held() + unconfirmed()


def memories(status: str) -> Count:
    """Count the memories of a status of the list's filter."""
    return count_of(with_status(Memory.objects.all(), status))
