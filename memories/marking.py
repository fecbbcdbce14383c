"""A person's word on what a recall brought: right or wrong. Kept as a row of the operator's own evaluation set.

Knows no request; a mark changes no memory and no ranking.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from memories.asking import Question
from memories.errors import InvalidMemory, MemoryNotFound
from memories.models import Memory, RecallMark, RecallVote


def query_key(query: str) -> str:
    """What makes two queries the same here: the SHA-256 (hexadecimal) of the words as they were asked."""
    return hashlib.sha256(query.strip().encode("utf-8", "surrogatepass")).hexdigest()


def marks_of(query: str) -> dict[int, str]:
    """By memory, how the hits of this query were marked."""
    return dict(RecallMark.objects.filter(query_key=query_key(query)).values_list("memory", "vote"))


def mark(question: Question, memory_id: int, vote: str, *, by: Any, at: datetime | None = None) -> RecallMark | None:
    """Mark one hit of a question `right` or `wrong`, or with an empty vote take the mark back.

    The last word counts: one mark a query and memory. `by` is a user. Returns the mark, None when there is none
    now. Raises MemoryNotFound, and InvalidMemory for another vote or a question without words.
    """
    query = question.query.strip()
    if not query:
        raise InvalidMemory("A mark needs the query it is about.")
    if vote not in ("", *RecallVote.values):
        raise InvalidMemory(
            f"vote is {vote!r}; allowed are {', '.join(RecallVote.values)}, or nothing to take it back."
        )
    rows = RecallMark.objects.filter(query_key=query_key(query), memory=memory_id)
    if not vote:
        rows.delete()
        return None
    with transaction.atomic():
        if not Memory.objects.filter(pk=memory_id).exists():
            raise MemoryNotFound(f"There is no memory {memory_id}.", "It was deleted meanwhile.")
        row, _ = RecallMark.objects.update_or_create(
            query_key=query_key(query),
            memory_id=memory_id,
            defaults={
                "query": query,
                "filters": filters_told(question),
                "vote": vote,
                "by": by,
                "at": at or timezone.now(),
            },
        )
    return row


def filters_told(question: Question) -> dict[str, Any]:
    """What narrowed the question, by name, as JSON takes it; what was not given is left out."""
    told = {name: value for name, value in asdict(question).items() if value and name not in ("query", "limit")}
    if question.as_of is not None:
        told["as_of"] = question.as_of.isoformat()
    return told | ({"tags": list(question.tags)} if question.tags else {})
