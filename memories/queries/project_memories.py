"""A page of a project's memories by offset, newest first, and how many match. Reads only; knows no request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.db.models import Q, QuerySet

from memories.capture.fields import checked_tags
from memories.models import Change, Memory, MemoryChange, ProjectTag, Verdict
from memories.models.memory import MemoryQuerySet

TOLD = Q(active=True, verdict=Verdict.ALLOW)
"""What counts as active here: a held memory is told to nobody until it is approved."""

WORD = re.compile(r"[A-Za-z0-9_]+")
"""A tag of these characters is in `project_tags` in lower case."""


def narrowed(
    rows: MemoryQuerySet,
    project_id: int,
    *,
    category: str | None = None,
    active: bool | None = True,
    tags: Sequence[str] = (),
) -> MemoryQuerySet:
    """Filter `rows`, which are of this project, by category, by whether they are active (None: either) and by tags.

    They have any of the tags; of one word, whatever its case. Raises InvalidMemory for tags that none can have.
    """
    if active is not None:
        rows = rows.filter(TOLD) if active else rows.exclude(TOLD)
    if category is not None:
        rows = rows.filter(category=category)
    wanted = checked_tags(tags)
    if not wanted:
        return rows
    names = [tag.lower() if WORD.fullmatch(tag) else tag for tag in wanted]
    tagged = ProjectTag.objects.filter(project_id=project_id, kind__in=(0, 1), tag__in=names)
    return rows.filter(pk__in=tagged.values("memory_id"))


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
        page_ids = list(ids.order_by("-pk")[offset : offset + length])
    else:
        page_ids = list(ids.order_by("pk")[rest : rest + length])
    shown = Memory.objects.filter(pk__in=page_ids).select_related("approved_by").order_by("-pk")
    return list(shown), total


def approvers(memories: Sequence[Memory]) -> dict[int, str]:
    """Return by id who approved each of `memories`: an account, or the token that the history names."""
    by_id = {row.pk: str(row.approved_by) for row in memories if row.approved_by is not None}
    others = [row.pk for row in memories if row.approved_at is not None and row.approved_by is None]
    if others:
        changes = MemoryChange.objects.filter(memory__in=others, kind=Change.APPROVED).order_by("pk")
        by_id |= {pk: actor for pk, actor in changes.values_list("memory_id", "actor") if pk is not None}
    return by_id
