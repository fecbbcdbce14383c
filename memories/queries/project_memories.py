"""A page of a project's memories by offset, newest first, and how many match. Reads only; knows no request."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection
from django.db.models import BooleanField, Func, Q, QuerySet, Value

from memories.capture.fields import checked_tags
from memories.models import Change, Memory, MemoryChange, Verdict
from memories.models.memory import MemoryQuerySet

TOLD = Q(active=True, verdict=Verdict.ALLOW)
"""What counts as active here: a held memory is told to nobody until it is approved."""

TAGGED = "EXISTS (SELECT 1 FROM json_each(memories.tags) WHERE json_each.value IN (%(expressions)s))"
"""On SQLite."""


def narrowed(
    rows: MemoryQuerySet, *, category: str | None = None, active: bool | None = True, tags: Sequence[str] = ()
) -> MemoryQuerySet:
    """Filter by category, by whether it is active (None: either) and by tags (any of them). Raises InvalidMemory."""
    if active is not None:
        rows = rows.filter(TOLD) if active else rows.exclude(TOLD)
    if category is not None:
        rows = rows.filter(category=category)
    wanted = checked_tags(tags)
    if not wanted:
        return rows
    if connection.vendor == "postgresql":
        return rows.filter(tags__has_any_keys=wanted)
    return rows.filter(Func(*map(Value, wanted), template=TAGGED, output_field=BooleanField()))


def page_at(rows: QuerySet[Memory], *, limit: int, offset: int) -> tuple[list[Memory], int]:
    """Return the memories from `offset` on, newest first, and how many there are.

    The total and the ids come from an index alone; the page is counted from the nearer end, so that no offset skips
    more than half of what matches.
    """
    total = rows.order_by().count()
    length = min(limit, total - offset)
    if length <= 0:
        return [], total
    ids = rows.values_list("pk", flat=True)
    rest = total - offset - length
    if offset <= rest:
        found = list(ids.order_by("-pk")[offset : offset + length])
    else:
        found = list(ids.order_by("pk")[rest : rest + length])
    shown = Memory.objects.filter(pk__in=found).select_related("approved_by").order_by("-pk")
    return list(shown), total


def approvers(memories: Sequence[Memory]) -> dict[int, str]:
    """Return by id who approved each of `memories`: an account, or the token that the history names."""
    found = {row.pk: str(row.approved_by) for row in memories if row.approved_by is not None}
    others = [row.pk for row in memories if row.approved_at is not None and row.approved_by is None]
    if others:
        changes = MemoryChange.objects.filter(memory__in=others, kind=Change.APPROVED).order_by("pk")
        found |= {pk: actor for pk, actor in changes.values_list("memory_id", "actor") if pk is not None}
    return found
