"""The confidence of a memory over time, from the rows of its changes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.history.confidence import confidence_history_of
from memories.lifecycle import verbs
from memories.lifecycle.sweep import sweep
from memories.models import Change, Memory, MemoryChange
from memories.store import Provenance, Statement, remember
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def say(text: str, days: float) -> int:
    said = Provenance(source="run", actor="agent:watch", session_id=SessionFactory().pk, at=NOW - timedelta(days=days))
    return remember(Statement("timing", text, "caddy"), said).memory_id


def drawn(pk: int) -> tuple[list[tuple[int, float]], list[tuple[str, float]]]:
    """The line as (days ago, confidence), and the marks as (kind, confidence)."""
    found = confidence_history_of(Memory.objects.get(pk=pk), at=NOW)
    line = [(round((NOW - point.at) / timedelta(days=1)), point.confidence) for point in found.past]
    return line, [(mark.kind, mark.confidence) for mark in found.marks]


def test_the_line_is_the_history_and_ends_at_the_present_confidence():
    pk = say("Takes 60 s to start", 60)
    say("It takes 60s to start", 50)
    sweep(NOW)
    line, marks = drawn(pk)
    assert line == [(60, 0.7), (50, 0.8), (13, 0.7), (6, 0.6)]
    assert marks == [("created", 0.7), ("reinforced", 0.8), ("decayed", 0.6)]
    assert Memory.objects.get(pk=pk).confidence == 0.6


def test_logs_that_were_read_late_stand_at_their_time():
    pk = say("Takes 60 s to start", 20)
    for days in (3, 9, 15):  # the latest log was read first
        say("It takes 60s to start", days)
    line, marks = drawn(pk)
    assert line == [(20, 0.7), (15, 0.8), (9, 0.9), (3, 1.0)]
    assert [confidence for _, confidence in marks] == [0.7, 0.8, 0.9, 1.0]
    assert Memory.objects.get(pk=pk).confidence == 1.0


def test_a_log_from_before_its_creation_begins_the_line():
    pk = say("Takes 60 s to start", 5)
    say("It takes 60s to start", 9)
    line, _ = drawn(pk)
    assert line[0][0] == 9
    assert line[-1][1] == Memory.objects.get(pk=pk).confidence


def test_of_a_memory_without_changes_it_is_what_it_is():
    memory = MemoryFactory(confidence=0.4, created_at=NOW - timedelta(days=3))
    assert drawn(memory.pk) == ([(3, 0.4)], [])


def test_changes_that_cannot_be_read_move_nothing():
    memory = MemoryFactory(confidence=0.4, created_at=NOW - timedelta(days=3))
    for before in ([], {"confidence": "x"}, {"confidence": None}, {"decayed_until": 5}):
        MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind=Change.EDITED, before=before, at=NOW)
    line, marks = drawn(memory.pk)
    assert line == [(3, 0.4)]
    assert len(marks) == 4


def test_nothing_of_the_past_lies_after_now():
    memory = MemoryFactory(confidence=0.5)
    verbs.set_confidence(memory, 0.9, by="ann", at=NOW + timedelta(days=2))
    found = confidence_history_of(memory, at=NOW)
    assert all(point.at <= NOW for point in found.past)
    assert all(mark.at <= NOW for mark in found.marks)
    assert found.past[-1].confidence == 0.9
