"""The operator's own evaluation set: what was answered in the inbox, as pairs. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memories.models import LABELS, Answer, Disagreement


def settled_pairs() -> Iterator[dict[str, Any]]:
    """One pair for each answered question, the oldest first, with both texts as they were when it was asked."""
    for row in Disagreement.objects.answered().order_by("pk").iterator(500):
        yield {
            "id": f"settled-{row.pk}",
            "known": row.older_text,
            "new": row.newer_text,
            "relation": LABELS[Answer(row.answer)],
            "service": row.service or None,
            "category": row.category or None,
        }
