"""The operator's own evaluation set: the hits of recalls that were marked, as queries and the memories they ask of.

Reads only. What a recall would not return (held for review, inactive, too short) is not handed out either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memories.models import Memory, Project, RecallMark, RecallVote
from memories.recall import trust

READ_AT_ONCE = 500


@dataclass(slots=True)
class Marked:
    """A set as it was exported; `left_out` are queries none of whose right hits may be recalled now."""

    queries: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0


def recallable() -> Iterator[dict[str, Any]]:
    """Every memory that an operator's recall may return, as a line of a set, by id."""
    rows = Memory.objects.active().allowed().select_related("project").order_by("pk")
    for row in rows.iterator(READ_AT_ONCE):
        if _may_be_recalled(row):
            yield {
                "id": str(row.uuid),
                "text": row.observation,
                "service": row.service,
                "category": row.category,
                "project": row.project.slug if row.project else None,
                "created_at": row.created_at.isoformat(),
                "updated_at": row.updated_at.isoformat(),
                "sequence": row.sequence or None,
                "position": row.position,
            }


def marked() -> Marked:
    """The queries with a hit that was marked right, the oldest mark first, with what was marked `wrong` beside.

    `project` and `as_of` are the question's; what else narrowed it is no part of a set, so it is asked of all.
    """
    slugs = dict(Project.objects.values_list("pk", "slug"))
    found: dict[str, dict[str, Any]] = {}
    for mark in RecallMark.objects.select_related("memory").order_by("at", "pk").iterator(READ_AT_ONCE):
        row = found.setdefault(
            mark.query_key,
            {
                "id": f"marked-{mark.pk}",
                "query": mark.query,
                "relevant": [],
                "wrong": [],
                "project": slugs.get(mark.filters.get("project")),
                "as_of": mark.filters.get("as_of"),
            },
        )
        if _may_be_recalled(mark.memory):
            row["relevant" if mark.vote == RecallVote.RIGHT else "wrong"].append(str(mark.memory.uuid))
    queries = [row for row in found.values() if row["relevant"]]
    return Marked(queries, len(found) - len(queries))


def _may_be_recalled(row: Memory) -> bool:
    return not trust.objection(
        row.observation, active=row.active, verdict=row.verdict, taxonomy=row.taxonomy, stale=row.stale_at is not None
    )
