"""A person's word on what a recall brought: right or wrong. Kept as a row of the operator's own evaluation set.

Knows no request; a mark changes no memory and no ranking.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User

from memories.asking import Question, by_person, filters_of
from memories.models import RecallMark
from memories.recall import record
from memories.recall.record import marks_of
from memories.recall.values import InvalidRecall

__all__ = ["mark", "marks_of"]


def mark(question: Question, memory_id: int, vote: str, *, by: User, at: datetime | None = None) -> RecallMark | None:
    """Mark one hit of a question `right` or `wrong`, or with an empty vote take the mark back.

    The last word counts: one mark a query and memory. Returns the mark, None when there is none now. Raises
    MemoryNotFound, and InvalidRecall for another vote or a question without words.
    """
    if not question.query.strip():
        raise InvalidRecall("A mark needs the query it is about.")
    if not vote:
        record.unmark(question.query, memory_id)
        return None
    filters = filters_of(by_person(by.get_username()), question)
    return record.mark(question.query, memory_id, vote, by=by, filters=filters, at=at)
