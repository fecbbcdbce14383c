"""Back to any earlier state: `lifecycle/restore.roll_back`, and what the page shows of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.errors import Conflict, InvalidMemory, MemoryNotFound
from memories.history.timeline import compared
from memories.lifecycle import verbs
from memories.lifecycle.undo import restore, roll_back
from memories.models import Change, Inactive, Memory, MemoryChange, Verdict
from memories.store import Provenance, Statement, remember
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LONG_AGO = NOW - timedelta(days=50)


@pytest.fixture
def memory() -> Memory:
    """Written, edited twice, deactivated."""
    said = Provenance(source="human", actor="ann", channel="human")
    made = remember(Statement(category="timing", text="Takes 60 s", service="caddy"), said, at=LONG_AGO)
    row = Memory.objects.get(pk=made.memory_id)
    verbs.edit(row, by="bob", at=LONG_AGO, observation="Takes 70 s", confidence=0.9, tags=["slow"])
    verbs.edit(row, by="bob", at=LONG_AGO, service="nginx", category="behavior")
    verbs.deactivate(row, by="bob", at=LONG_AGO)
    MemoryFactory(observation="Another one")
    return row


def changes(memory: Memory) -> list[MemoryChange]:
    return list(memory.changes.order_by("pk"))


def columns(memory: Memory) -> tuple:
    memory.refresh_from_db()
    return (memory.observation, memory.confidence, memory.service, memory.category, memory.tags, memory.active)


def test_to_its_first_state_in_one_change_that_counts_as_a_confirmation(memory):
    others = list(Memory.objects.exclude(pk=memory.pk).values())
    change = roll_back(memory, changes(memory)[0], by="ann", at=NOW, reason="It was right.")
    assert columns(memory) == ("Takes 60 s", 0.7, "caddy", "timing", [], True)
    assert memory.updated_at == NOW
    assert (change.kind, change.actor, change.reason) == (Change.RESTORED, "ann", "It was right.")
    assert change.before["observation"] == "Takes 70 s"
    assert change.evidence == {"to_change": changes(memory)[0].pk}
    assert memory.changes.count() == 5
    assert list(Memory.objects.exclude(pk=memory.pk).values()) == others


def test_to_a_state_in_between_and_forwards_again(memory):
    first, second, third, last = changes(memory)
    roll_back(memory, second, by="ann", at=NOW)
    assert columns(memory) == ("Takes 70 s", 0.9, "caddy", "timing", ["slow"], True)
    roll_back(memory, last, by="ann", at=NOW)
    assert columns(memory) == ("Takes 70 s", 0.9, "nginx", "behavior", ["slow"], False)
    assert memory.inactive_reason == Inactive.OPERATOR
    roll_back(memory, third, by="ann", at=NOW)
    assert columns(memory)[-1] is True
    assert first.pk < third.pk


def test_to_the_state_it_is_in_writes_nothing(memory):
    assert roll_back(memory, changes(memory)[-1], by="ann") is None
    assert memory.changes.count() == 4


def test_what_decayed_since_comes_back_with_a_new_grace(memory):
    row = MemoryFactory(confidence=0.3, updated_at=LONG_AGO, decayed_until=LONG_AGO + timedelta(days=44))
    at = LONG_AGO + timedelta(days=44)
    verbs.edit(row, by="ann", at=LONG_AGO, tags=["x"])
    first = row.changes.get()
    before = {"confidence": 0.5, "decayed_until": None}
    after = {"confidence": 0.3, "decayed_until": at.isoformat()}
    MemoryChange.objects.create(memory=row, memory_uuid=row.uuid, kind="decayed", before=before, after=after, at=at)
    roll_back(row, first, by="ann", at=NOW)
    row.refresh_from_db()
    assert (row.confidence, row.updated_at, row.decayed_until) == (0.5, NOW, None)


def test_it_can_be_undone(memory):
    was = columns(memory)
    change = roll_back(memory, changes(memory)[0], by="ann", at=NOW)
    restore(memory, change, by="ann", only_latest=True)
    assert columns(memory) == was


def test_one_that_changed_since_it_was_looked_at_is_refused(memory):
    seen = changes(memory)[-1].pk
    verbs.reactivate(memory, by="bob")
    with pytest.raises(Conflict) as refused:
        roll_back(memory, changes(memory)[0], by="ann", expected_change=seen)
    assert refused.value.change.kind == Change.REACTIVATED
    assert memory.changes.count() == 5
    assert columns(memory)[0] == "Takes 70 s"


def test_a_state_in_a_memory_that_is_deleted_cannot_be_had_again(memory):
    verbs.reactivate(memory, by="ann")
    verbs.edit(memory, by="ann", service="jellyfin", category="timing")
    into = MemoryFactory(observation="Everything about it")
    verbs.merge(into, [memory], by="ann")
    merged = memory.changes.order_by("pk").last()
    memory.refresh_from_db()
    verbs.reactivate(memory, by="ann")
    verbs.delete(into, by="ann")
    with pytest.raises(InvalidMemory, match=f"part of memory {into.pk}, which is deleted"):
        roll_back(memory, merged, by="ann")
    assert "which is deleted" in compared(Memory.objects.get(pk=memory.pk), merged.pk).refused
    before_it = memory.changes.order_by("pk").filter(pk__lt=merged.pk).last()
    roll_back(memory, before_it, by="ann")
    memory.refresh_from_db()
    assert (memory.active, memory.superseded_by_id) == (True, None)


def test_a_project_that_is_gone_is_named(memory):
    first = changes(memory)[0]
    before, after = {"project_id": 4711}, {"project_id": None}
    MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind="edited", before=before, after=after)
    with pytest.raises(InvalidMemory, match="project 4711, which is gone"):
        roll_back(memory, first, by="ann")


def test_an_end_that_has_passed_is_taken_off_or_the_next_sweep_would_end_it_again(memory):
    row = MemoryFactory()
    verbs.edit(row, by="ann", expires_at=NOW - timedelta(days=1))
    with_end = row.changes.get()
    verbs.deactivate(row, by="ann")
    roll_back(row, with_end, by="ann", at=NOW)
    row.refresh_from_db()
    assert (row.active, row.expires_at) == (True, None)


def test_back_to_being_held_it_waits_for_review_again():
    row = MemoryFactory(verdict=Verdict.HOLD, verdict_reason="looks odd")
    verbs.edit(row, by="ann", observation="Plain words")
    held = row.changes.get()
    verbs.approve(row, by="ann")
    roll_back(row, held, by="ann")
    row.refresh_from_db()
    assert (row.verdict, row.approved_at) == (Verdict.HOLD, None)


@pytest.mark.parametrize("which", ["another's", "none"])
def test_a_change_of_another_memory_is_not_found(memory, which):
    other = MemoryFactory()
    verbs.deactivate(other, by="ann")
    with pytest.raises(MemoryNotFound):
        roll_back(memory, other.changes.get().pk if which == "another's" else 4711, by="ann")


def test_what_differs_is_shown_word_by_word_and_column_by_column(memory):
    shown = compared(Memory.objects.get(pk=memory.pk), changes(memory)[0].pk)
    assert [(piece.kind, piece.text) for piece in shown.text] == [
        ("same", "Takes "),
        ("gone", "60"),
        ("new", "70"),
        ("same", " s"),
    ]
    moved = {move.name: (move.before, move.after) for move in shown.moved}
    assert moved["confidence"] == (0.7, 0.9)
    assert moved["service"] == ("caddy", "nginx")
    assert moved["active"] == (True, False)
    assert shown.refused == ""
    assert compared(Memory.objects.get(pk=memory.pk), changes(memory)[-1].pk).refused == "It is in this state now."
