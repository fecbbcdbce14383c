"""Export the operator's evaluation sets: answered disagreements as pairs, marked hits as queries. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memories.models import LABELS, Answer, Disagreement, Memory, Project, RecallMark, RecallVote
from memories.models.change import JUDGE
from memories.recall import trust

READ_AT_ONCE = 500


def answered_pairs() -> Iterator[dict[str, Any]]:
    """Yield a pair for each disagreement that a person answered, oldest first, with both texts as they were then."""
    rows = Disagreement.objects.answered().exclude(by__startswith=JUDGE).order_by("pk")
    for row in rows.iterator(READ_AT_ONCE):
        yield {
            "id": f"settled-{row.pk}",
            "known": row.older_text,
            "new": row.newer_text,
            "relation": LABELS[Answer(row.answer)],
            "service": row.service or None,
            "category": row.category or None,
        }


def memory_lines() -> Iterator[dict[str, Any]]:
    """Yield every memory that an operator's recall may return, by id."""
    rows = Memory.objects.active().allowed().select_related("project").order_by("pk")
    for row in rows.iterator(READ_AT_ONCE):
        if _is_recallable(row):
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


def marked_queries() -> tuple[list[dict[str, Any]], int]:
    """Return (queries with a hit marked right, oldest mark first; how many marked queries are left out)."""
    slugs = dict(Project.objects.values_list("pk", "slug"))
    by_key: dict[str, dict[str, Any]] = {}
    for mark in RecallMark.objects.select_related("memory").order_by("at", "pk").iterator(READ_AT_ONCE):
        row = by_key.setdefault(
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
        if _is_recallable(mark.memory):
            row["relevant" if mark.vote == RecallVote.RIGHT else "wrong"].append(str(mark.memory.uuid))
    queries = [row for row in by_key.values() if row["relevant"]]
    return queries, len(by_key) - len(queries)


def _is_recallable(row: Memory) -> bool:
    return not trust.objection(
        row.observation, active=row.active, verdict=row.verdict, taxonomy=row.taxonomy, stale=row.stale_at is not None
    )
