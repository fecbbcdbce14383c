"""Taking back a bulk action: `memories/lifecycle/undo.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.errors import Conflict, InvalidMemory, MemoryNotFound
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.bulk_write import BATCH
from memories.lifecycle.undo import UNDOABLE, restore, undo
from memories.models import Change, Inactive, Memory, MemoryChange
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
BEFORE = NOW - timedelta(days=10)
LATER = NOW + timedelta(minutes=1)
INACTIVE = {"active": False, "inactive_reason": Inactive.DECAYED, "confidence": 0.1, "expires_at": BEFORE}

CASES = [
    ("deactivate", {}, {}),
    ("reactivate", INACTIVE, {}),
    ("set_confidence", {}, {"confidence": 0.2}),
    ("set_confidence", INACTIVE, {"confidence": 0.9}),
    ("mark_persistent", {}, {}),
    ("unmark_persistent", {"persistent": True}, {}),
    ("merge", {}, {"observation": "All of them in one"}),
]


def memories(count, **fields):
    """Memories of which each has a confidence and a time of its own."""
    fields = {"created_at": BEFORE, "confidence": None} | fields
    return [
        MemoryFactory(
            **fields
            | {"confidence": fields["confidence"] or 0.5 + n % 50 / 100, "updated_at": BEFORE - timedelta(minutes=n)}
        )
        for n in range(count)
    ]


def chosen(rows):
    return Memory.objects.filter(pk__in=[row.pk for row in rows])


def values(rows):
    return list(chosen(rows).order_by("pk").values())


def run(name, rows, **params):
    return BULK_ACTIONS[name].run(chosen(rows), by="ann", at=NOW, **params)


@pytest.fixture(autouse=True)
def bystanders():
    """Memories that were not selected, some of them changed by the same person just before."""
    rows = memories(3)
    verbs.deactivate(rows[0], by="ann", at=NOW - timedelta(microseconds=1))
    verbs.deactivate(rows[1], by="bob", at=NOW)
    before, changes = values(rows), MemoryChange.objects.filter(memory__in=rows).count()
    yield
    assert values(rows) == before
    assert MemoryChange.objects.filter(memory__in=rows).count() == changes


@pytest.mark.parametrize(("name", "fields", "params"), CASES)
def test_every_column_is_as_it_was_and_the_history_tells_of_both(name, fields, params):
    rows = memories(4, **fields)
    before = values(rows)
    done = run(name, rows, **params)
    assert values(rows) != before
    undone = undo(done.change, by="bob", at=LATER)
    assert values(rows) == before
    assert (undone.back, undone.already, undone.changed_since, undone.deleted_since) == (4, 0, 0, 0)
    assert undone.message == "4 memories are as they were before."
    for row in rows:
        kinds = [(change.kind, change.actor) for change in row.changes.order_by("pk")]
        assert kinds[-1] == (Change.RESTORED, "bob")
        assert len(kinds) == 2


def test_every_action_but_deleting_says_how_it_is_taken_back_and_one_that_did_nothing_does_not():
    rows = memories(2)
    assert run("deactivate", rows).change
    assert run("deactivate", rows).change is None
    assert run("delete", rows).change is None


@pytest.mark.parametrize(("name", "fields", "params"), CASES)
def test_twice_is_once(name, fields, params):
    rows = memories(3, **fields)
    done = run(name, rows, **params)
    undo(done.change, by="ann")
    before, changes = values(rows), MemoryChange.objects.count()
    again = undo(done.change, by="bob")
    assert (again.back, again.already) == (0, 3)
    assert again.message == "3 memories are as they were before already."
    assert (values(rows), MemoryChange.objects.count()) == (before, changes)


def test_what_was_changed_or_deleted_since_is_left_alone_and_counted():
    rows = memories(5)
    done = run("deactivate", rows)
    verbs.edit(rows[0], by="bob", observation="Said anew")
    verbs.reactivate(rows[1], by="ann")
    verbs.delete(rows[2], by="bob")
    left = values(rows[:2])
    undone = undo(done.change, by="ann")
    assert values(rows[:2]) == left
    assert not Memory.objects.filter(pk=rows[2].pk).exists()
    assert chosen(rows[3:]).filter(active=True).count() == 2
    assert undone.message == (
        "2 memories are as they were before; 2 were changed since and left alone; 1 was deleted since and left alone."
    )


def test_what_was_done_after_the_undo_is_not_undone_by_a_second_one():
    rows = memories(2)
    done = run("deactivate", rows)
    undo(done.change, by="ann")
    verbs.deactivate(rows[0], by="bob")
    assert undo(done.change, by="ann").back == 0
    rows[0].refresh_from_db()
    assert not rows[0].active


@pytest.mark.parametrize("what", ["target", "other", "deleted"])
def test_a_merge_of_which_one_changed_since_stays_whole(what):
    rows = memories(3)
    done = run("merge", rows, target=rows[0].pk)
    if what == "deleted":
        verbs.delete(rows[1], by="bob")
    else:
        verbs.edit(rows[0] if what == "target" else rows[1], by="bob", observation="Said anew")
    before, changes = values(rows), MemoryChange.objects.count()
    with pytest.raises(Conflict, match=r"of its memories 1 (changed|deleted) since, and a merge goes back whole"):
        undo(done.change, by="ann")
    assert (values(rows), MemoryChange.objects.count()) == (before, changes)


def test_any_change_of_the_action_names_all_of_it():
    rows = memories(3)
    before = values(rows)
    run("merge", rows, target=rows[2].pk)
    undo(rows[1].changes.get(kind=Change.MERGED), by="ann")
    assert values(rows) == before


def test_a_link_to_what_is_gone_is_not_put_back():
    gone, row = memories(2)
    run("merge", [gone, row], target=gone.pk)
    done = BULK_ACTIONS["reactivate"].run(chosen([row]), by="ann", at=LATER)
    verbs.delete(gone, by="ann")
    undo(done.change, by="ann")
    row.refresh_from_db()
    assert (row.active, row.inactive_reason, row.superseded_by_id) == (False, Inactive.MERGED, None)


@pytest.mark.parametrize("kind", sorted(set(Change) - UNDOABLE))
def test_what_cannot_be_taken_back_says_so(kind):
    change = MemoryChange.objects.create(memory=MemoryFactory(), kind=kind)
    with pytest.raises(InvalidMemory, match=r"cannot be taken back here"):
        undo(change, by="ann")


def test_what_a_session_confirmed_is_taken_back_memory_by_memory_and_not_as_one_action():
    wrong, right = memories(2)
    session = SessionFactory()
    before = values([wrong])
    for row in (wrong, right):
        verbs.reinforce(row, by="session", at=NOW, session_id=session.pk)
    others = values([right])
    change = wrong.changes.get(kind=Change.REINFORCED)
    with pytest.raises(InvalidMemory, match=r"reinforced cannot be taken back here"):
        undo(change, by="ann")
    restore(wrong, change, by="ann", only_latest=True)
    assert (values([wrong]), values([right])) == (before, others)


def test_a_change_that_there_is_not():
    with pytest.raises(MemoryNotFound):
        undo(10**30, by="ann")


def test_the_number_of_queries_grows_with_batches_not_with_rows():
    def queries(count):
        rows = memories(count)
        done = run("set_confidence", rows, confidence=0.9)
        with CaptureQueriesContext(connection) as captured:
            undo(done.change, by="ann")
        MemoryChange.objects.filter(memory__in=rows).delete()
        return len(captured)

    assert queries(10) == queries(20)
    assert queries(200) <= queries(20) + 3  # SQLite takes 90 change rows in one INSERT
    assert BATCH > 200
