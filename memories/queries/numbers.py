"""The numbers of memories and disagreements that several pages show: what each counts is said here alone."""

from __future__ import annotations

from claudeops.lib.capped import Count, count_of
from memories.models import Memory
from memories.queries.filters import with_status
from memories.queries.inbox import open_questions


def held() -> Count:
    """Count the memories that the gate holds for review, and that nobody has rejected."""
    return count_of(Memory.objects.awaiting_review())


def unconfirmed() -> Count:
    """Count the active memories that CLAUDEOPS_TRUST keeps out of prompts."""
    return count_of(Memory.objects.unconfirmed())


def waiting() -> Count:
    """Count the memories that wait for a person: held and unconfirmed ones, each from its own index."""
    return held() + unconfirmed()


def disagreements(kind: str = "") -> Count:
    """Count the open pairs of memories, of one kind or of all."""
    return count_of(open_questions(kind))


def memories(status: str) -> Count:
    """Count the memories of a status of the list's filter."""
    return count_of(with_status(Memory.objects.all(), status))
