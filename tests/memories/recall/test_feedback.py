"""A mark: one word a question and memory, the last one counts, and it can be taken back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memories.errors import MemoryNotFound
from memories.models import RecallMark
from memories.recall import InvalidRecall
from memories.recall.feedback import mark, marks_of
from memories.recall.service import Question
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 11, 22, 7, 0, tzinfo=UTC)


def test_a_mark_keeps_the_question_with_what_narrowed_it(operator):
    memory = MemoryFactory()
    question = Question("what breaks?", service="nas", tags=("a", "b"), as_of=AT, limit=5)
    row = mark(question, memory.pk, "right", by=operator, at=AT)
    assert row == RecallMark.objects.get()
    assert (row.query, row.memory, row.vote, row.by, row.at) == ("what breaks?", memory, "right", operator, AT)
    kept = {"project": "any", "agent": "*", "services": ["nas"], "tags": ["a", "b"], "as_of": AT.isoformat()}
    assert row.filters == kept
    assert marks_of("what breaks? ") == {memory.pk: "right"}
    assert marks_of("what else?") == {}


def test_the_last_word_counts_and_nothing_takes_it_back(operator):
    memory, other = MemoryFactory(), MemoryFactory()
    mark(Question("q"), memory.pk, "right", by=operator)
    mark(Question("q"), other.pk, "right", by=operator)
    mark(Question("q"), memory.pk, "wrong", by=operator)
    assert marks_of("q") == {memory.pk: "wrong", other.pk: "right"}
    assert mark(Question("q"), memory.pk, "", by=operator) is None
    assert marks_of("q") == {other.pk: "right"}


def test_what_cannot_be_marked_is_said(operator):
    with pytest.raises(MemoryNotFound):
        mark(Question("q"), 999, "right", by=operator)
    with pytest.raises(InvalidRecall, match="vote is 'maybe'"):
        mark(Question("q"), MemoryFactory().pk, "maybe", by=operator)
    with pytest.raises(InvalidRecall, match="needs the query"):
        mark(Question(" "), MemoryFactory().pk, "right", by=operator)
    assert not RecallMark.objects.exists()


def test_a_long_question_can_be_marked_too(operator):
    memory = MemoryFactory()
    mark(Question("word " * 2000), memory.pk, "right", by=operator)
    assert marks_of("word " * 2000) == {memory.pk: "right"}
