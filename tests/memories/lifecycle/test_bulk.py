"""What can be done to many memories at once: `memories/lifecycle/bulk.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.capture.statement import Provenance
from memories.errors import InvalidMemory, MemoryNotFound
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.bulk_write import BATCH
from memories.lifecycle.undo import undo
from memories.models import Change, Inactive, Memory, MemoryChange
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
BEFORE = NOW - timedelta(days=10)
BY = {"by": "operator", "at": NOW}


def memories(count, **fields):
    fields = {"updated_at": BEFORE, "created_at": BEFORE} | fields
    return MemoryFactory.create_batch(count, **fields)


def chosen(rows):
    return Memory.objects.filter(pk__in=[row.pk for row in rows])


def run(name, rows, **params):
    queryset = rows if hasattr(rows, "filter") else chosen(rows)
    return BULK_ACTIONS[name].run(queryset, **BY, **params)


@pytest.fixture(autouse=True)
def bystanders():
    """Memories that were not selected and must not change."""
    rows = memories(2, service="bystander") + memories(
        1, service="bystander", active=False, inactive_reason=Inactive.DECAYED, confidence=0.1
    )
    before = list(chosen(rows).order_by("pk").values())
    yield
    assert list(chosen(rows).order_by("pk").values()) == before
    assert not MemoryChange.objects.filter(memory__in=rows).exists()


def test_the_registry_names_every_action_what_it_needs_and_what_cannot_be_taken_back():
    assert list(BULK_ACTIONS) == [
        "approve",
        "reject",
        "confirm",
        "reassign",
        "deactivate",
        "reactivate",
        "promote",
        "renew",
        "extend",
        "set_confidence",
        "mark_persistent",
        "unmark_persistent",
        "merge",
        "delete",
    ]
    assert [name for name, action in BULK_ACTIONS.items() if action.confirm] == ["promote", "merge", "delete"]
    assert [param.name for param in BULK_ACTIONS["set_confidence"].params] == ["confidence"]
    assert [param.name for param in BULK_ACTIONS["merge"].params] == ["target", "observation"]


CASES = [
    ("deactivate", {}, {}, lambda row: verbs.deactivate(row, **BY)),
    (
        "reactivate",
        {"active": False, "inactive_reason": Inactive.DECAYED, "confidence": 0.2},
        {},
        lambda row: verbs.reactivate(row, **BY),
    ),
    ("set_confidence", {}, {"confidence": 1.5}, lambda row: verbs.set_confidence(row, 1.5, **BY)),
    ("set_confidence", {}, {"confidence": 0.1}, lambda row: verbs.set_confidence(row, 0.1, **BY)),
    ("mark_persistent", {}, {}, lambda row: verbs.mark_persistent(row, **BY)),
    ("unmark_persistent", {"persistent": True}, {}, lambda row: verbs.mark_persistent(row, False, **BY)),
]


@pytest.mark.parametrize(("name", "fields", "params", "verb"), CASES, ids=[case[0] for case in CASES])
def test_many_get_what_the_verb_gives_one(name, fields, params, verb):
    one, *rows = memories(4, **fields)
    result = run(name, rows, **params)
    assert (result.changed, result.unchanged) == (3, 0)
    told = verb(one)

    same = [field.attname for field in Memory._meta.concrete_fields]
    same = [column for column in same if column not in ("id", "uuid", "observation")]
    expected = Memory.objects.filter(pk=one.pk).values(*same).get()
    assert list(chosen(rows).values(*same)) == [expected] * 3
    for change in MemoryChange.objects.filter(memory__in=rows):
        assert (change.kind, change.before, change.after) == (told.kind, told.before, told.after)
        assert (change.actor, change.at) == ("operator", NOW)
    again = run(name, rows, **params)
    assert (again.changed, again.unchanged) == (0, 3)
    assert MemoryChange.objects.count() == 4


def test_messages_count_for_a_person():
    rows = memories(2)
    run("deactivate", rows[:1])
    assert run("deactivate", rows).message == "1 memory deactivated; 1 memory had nothing to change."
    assert run("set_confidence", memories(3), confidence=0.9).message == "3 memories set to 0.9."


def test_memories_in_different_states_each_get_their_own_row():
    active, faded, out = (
        *memories(1),
        *memories(1, active=False, inactive_reason=Inactive.DECAYED, confidence=0.1),
        *memories(1, active=False, inactive_reason=Inactive.OPERATOR, confidence=0.8),
    )
    result = run("reactivate", [active, faded, out])
    assert (result.changed, result.unchanged) == (2, 1)
    found = {row.pk: (row.active, row.confidence) for row in chosen([active, faded, out])}
    assert found == {active.pk: (True, 0.7), faded.pk: (True, 0.3), out.pk: (True, 0.8)}
    assert MemoryChange.objects.get(memory=faded).before["confidence"] == 0.1
    assert "confidence" not in MemoryChange.objects.get(memory=out).before


def test_a_selection_by_what_the_action_changes_is_taken_first():
    memories(BATCH // 2, service="many")
    result = run("deactivate", Memory.objects.filter(service="many", active=True))
    assert result.changed == BATCH // 2


@pytest.mark.parametrize("name", ["deactivate", "delete"])
def test_the_number_of_queries_grows_with_batches_not_with_rows(name):
    Memory.objects.bulk_create(MemoryFactory.build_batch(50, service="few"))
    Memory.objects.bulk_create(MemoryFactory.build_batch(500, service="many"))

    with CaptureQueriesContext(connection) as few:
        run(name, Memory.objects.filter(service="few"))
    with CaptureQueriesContext(connection) as many:
        run(name, Memory.objects.filter(service="many"))
    assert len(few) <= len(many) <= len(few) + 6  # SQLite takes 90 change rows in one INSERT


@pytest.mark.parametrize("params", [{}, {"confidence": float("nan")}, {"confidence": "much"}])
def test_a_confidence_that_is_none_is_refused_before_anything_changes(params):
    rows = memories(2)
    with pytest.raises(InvalidMemory, match="confidence"):
        run("set_confidence", rows, **params)
    assert set(chosen(rows).values_list("confidence", flat=True)) == {0.7}


def test_merging_into_the_chosen_one():
    target, *others = memories(4)
    Memory.objects.filter(pk=others[0].pk).update(confidence=0.9)
    result = run("merge", [target, *others], target=target.pk, observation="All in one")
    assert result.message == f"3 memories merged into memory {target.pk}."
    after = Memory.objects.get(pk=target.pk)
    assert (after.observation, after.confidence, after.merged_count) == ("All in one", 0.9, 3)
    assert set(chosen(others).values_list("active", "inactive_reason", "superseded_by")) == {
        (False, Inactive.MERGED, target.pk)
    }
    assert MemoryChange.objects.filter(kind=Change.MERGED).count() == 4
    evidence = MemoryChange.objects.get(memory=target).evidence
    assert evidence["count"] == 3
    assert [entry["id"] for entry in evidence["merged"]] == [other.pk for other in others]


def test_merging_takes_the_surest_active_one_when_none_is_named():
    low, high = *memories(1, confidence=0.5), *memories(1, confidence=0.9)
    run("merge", [low, high])
    assert Memory.objects.get(pk=low.pk).superseded_by_id == high.pk


def test_merging_what_does_not_belong_together_changes_nothing():
    rows = memories(2) + memories(1, service="caddy")
    with pytest.raises(InvalidMemory, match="differ in their service"):
        run("merge", rows)
    assert chosen(rows).filter(active=True).count() == 3
    with pytest.raises(InvalidMemory, match="nothing to merge"):
        run("merge", rows[:1])
    with pytest.raises(MemoryNotFound):
        run("merge", rows, target=999_999)
    assert not MemoryChange.objects.exists()


def test_deleting_keeps_every_history():
    rows = memories(3)
    run("deactivate", rows)
    result = run("delete", rows)
    assert (result.changed, result.message) == (3, "3 memories deleted.")
    assert not chosen(rows).exists()
    for gone in rows:
        kinds = MemoryChange.objects.filter(memory_uuid=gone.uuid).order_by("id").values_list("kind", flat=True)
        assert list(kinds) == [Change.DEACTIVATED, Change.DELETED]
    assert MemoryChange.objects.filter(kind=Change.DELETED, memory=None).count() == 3
    before = MemoryChange.objects.get(kind=Change.DELETED, memory_uuid=rows[0].uuid).before
    assert before["observation"] == rows[0].observation
    assert run("delete", rows).changed == 0


def by_ann(name, rows, **params):
    return BULK_ACTIONS[name].run(chosen(rows), by="ann", provenance=Provenance.typed_by("ann"), **params)


def test_rejecting_leaves_what_does_not_wait_and_is_undone():
    held, active = memories(2, verdict="hold"), memories(1)
    done = by_ann("reject", [*held, *active])
    assert done.message == "2 memories rejected; 1 memory had nothing to change."
    assert set(chosen(held).values_list("inactive_reason", flat=True)) == {Inactive.OPERATOR}
    assert {change.reason for change in MemoryChange.objects.filter(memory__in=held)} == {"Rejected in review."}
    assert chosen(active).get().active
    undo(done.change, by="bob")
    assert set(chosen(held).values_list("active", "inactive_reason")) == {(True, "")}


def test_a_person_confirms_many_as_one_and_what_is_held_stays():
    rows, held = memories(2, confidence=0.5), memories(1, verdict="hold")
    done = by_ann("confirm", [*rows, *held])
    assert done.message == "2 memories confirmed; 1 memory had nothing to change."
    assert set(chosen(rows).values_list("confidence", flat=True)) == {0.6}
    assert not chosen(rows).filter(confirmed_at=None).exists()
    undo(done.change, by="ann")
    assert set(chosen(rows).values_list("confidence", flat=True)) == {0.5}


def test_only_a_person_confirms():
    with pytest.raises(InvalidMemory, match="Only a person"):
        BULK_ACTIONS["confirm"].run(chosen(memories(1)), by="token x")


def test_service_and_category_are_changed_together_or_alone_and_taken_back():
    rows = memories(2, service="caddy", category="timing")
    done = by_ann("reassign", rows, service="general", category="behavior")
    assert done.message == "2 memories moved to service general and category behavior."
    assert set(chosen(rows).values_list("service", "category")) == {(None, "behavior")}
    by_ann("reassign", rows, service="nas")
    assert set(chosen(rows).values_list("service", "category")) == {("nas", "behavior")}


@pytest.mark.parametrize("params", [{}, {"category": "pattern"}, {"service": "two words"}])
def test_a_place_that_is_none_changes_nothing(params):
    rows = memories(2, service="caddy", category="timing")
    with pytest.raises(InvalidMemory):
        by_ann("reassign", rows, **params)
    assert set(chosen(rows).values_list("service", "category")) == {("caddy", "timing")}
