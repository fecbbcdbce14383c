"""Store relevance judgements: an operator marks a hit as right or wrong. They change no memory and no ranking."""

from __future__ import annotations

import hashlib
from datetime import datetime

from django.contrib.auth.models import User

from memories.errors import MemoryNotFound
from memories.models import Memory, RecallMark, RecallVote, to_utc
from memories.recall.filters import InvalidRecall
from memories.recall.log import logged_query
from memories.recall.service import Question, by_person, filters_of


def mark(question: Question, memory_id: int, vote: str, *, by: User, at: datetime | None = None) -> RecallMark | None:
    """Mark a hit; an empty vote removes the mark. Raises MemoryNotFound, InvalidRecall (other vote, empty query)."""
    if not question.query.strip():
        raise InvalidRecall("A mark needs the query it is about.")
    text = logged_query(question.query)
    if not vote:
        RecallMark.objects.filter(query_key=query_key(text), memory_id=memory_id).delete()
        return None
    filters = filters_of(by_person(by.get_username()), question)
    if vote not in RecallVote.values:
        raise InvalidRecall(f"vote is {vote!r}; allowed are {', '.join(RecallVote.values)}.")
    if not Memory.objects.filter(pk=memory_id).exists():
        raise MemoryNotFound(f"There is no memory {memory_id}.", "`manage.py memory list` shows what there is.")
    values = {"query": text, "vote": vote, "by": by, "at": to_utc(at), "filters": filters.as_dict()}
    return RecallMark.objects.update_or_create(query_key=query_key(text), memory_id=memory_id, defaults=values)[0]


def marks_of(query: str) -> dict[int, str]:
    """Return the votes on the hits of a query, by memory."""
    return dict(RecallMark.objects.filter(query_key=query_key(query)).values_list("memory", "vote"))


def query_key(query: str) -> str:
    """Return the SHA-256 (hexadecimal) of the query as it is logged: the identity of a query for marks."""
    return hashlib.sha256(logged_query(query).encode()).hexdigest()
