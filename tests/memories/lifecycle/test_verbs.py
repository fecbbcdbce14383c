"""What can be done to one memory: `memories/lifecycle/verbs.py` and `merge.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memories.errors import InvalidMemory, MemoryNotFound
from memories.lifecycle import verbs
from memories.lifecycle.sweep import sweep
from memories.models import Change, Inactive, Memory, MemoryChange, Verdict
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
BEFORE = NOW - timedelta(days=10)
BY = {"by": "operator", "at": NOW}


def memory(**fields):
    return MemoryFactory(**({"updated_at": BEFORE, "created_at": BEFORE} | fields))


def row(memory):
    return Memory.objects.get(pk=memory.pk)


def state(memory):
    found = row(memory)
    return found.confidence, found.active, found.inactive_reason


@pytest.fixture
def bystander():
    """Another memory, which must not change."""
    other = memory(service="caddy", persistent=True)
    before = Memory.objects.filter(pk=other.pk).values().get()
    yield
    assert Memory.objects.filter(pk=other.pk).values().get() == before


pytestmark = [pytestmark, pytest.mark.usefixtures("bystander")]


# edit


def test_new_text_keeps_the_confidence_and_is_fresh():
    known = memory(confidence=0.4)
    change = verbs.edit(known, observation="Takes\n90s to start", reason="measured", **BY)
    after = row(known)
    assert (after.observation, after.confidence, after.updated_at) == ("Takes 90s to start", 0.4, NOW)
    assert (known.observation, known.updated_at) == (after.observation, NOW)
    assert (change.kind, change.actor, change.reason, change.at) == (Change.EDITED, "operator", "measured", NOW)
    assert change.before == {
        "observation": change.before["observation"],
        "updated_at": BEFORE.isoformat(),
        "trust": "session",
    }
    assert change.after == {"observation": "Takes 90s to start", "updated_at": NOW.isoformat(), "trust": "imported"}
    assert MemoryChange.objects.get() == change


@pytest.mark.parametrize("value", [1.5, 7, 1.0])
def test_too_high_a_confidence_is_one(value):
    known = memory()
    verbs.edit(known, confidence=value, **BY)
    assert state(known) == (1.0, True, "")


@pytest.mark.parametrize("inactive_reason", [Inactive.DECAYED, Inactive.OPERATOR, Inactive.LOWERED])
def test_raising_an_inactive_memory_to_the_threshold_brings_it_back(inactive_reason):
    known = memory(confidence=0.2, active=False, inactive_reason=inactive_reason)
    verbs.edit(known, confidence=0.29, **BY)
    assert state(known) == (0.29, False, inactive_reason)
    change = verbs.edit(known, confidence=0.3, **BY)
    assert state(known) == (0.3, True, "")
    assert change.before["active"] is False
    assert change.after["active"] is True


def test_lowering_below_the_threshold_deactivates():
    known = memory()
    verbs.set_confidence(known, 0.29, **BY)
    assert state(known) == (0.29, False, Inactive.LOWERED)


def test_lowering_a_memory_that_was_taken_out_does_not_bring_it_back():
    known = memory(confidence=0.9, active=False, inactive_reason=Inactive.OPERATOR)
    verbs.set_confidence(known, 0.6, **BY)
    assert state(known) == (0.6, False, Inactive.OPERATOR)


def test_a_merged_memory_stays_merged_whatever_its_confidence():
    known = memory(confidence=0.4, active=False, inactive_reason=Inactive.MERGED)
    verbs.set_confidence(known, 0.9, **BY)
    assert state(known) == (0.9, False, Inactive.MERGED)


def test_a_raised_memory_does_not_decay_for_the_time_it_was_away():
    known = memory(
        confidence=0.2,
        active=False,
        inactive_reason=Inactive.DECAYED,
        updated_at=NOW - timedelta(days=400),
        decayed_until=NOW - timedelta(days=365),
    )
    verbs.set_confidence(known, 0.8, **BY)
    sweep(NOW + timedelta(days=36))
    assert state(known) == (0.8, True, "")


def test_several_fields_are_one_change():
    known = memory()
    change = verbs.edit(known, service="Caddy", category="behavior", tags=["a", "b", "a", ""], persistent=True, **BY)
    after = row(known)
    assert (after.service, after.category, after.tags, after.persistent) == ("caddy", "behavior", ["a", "b"], True)
    assert set(change.after) == {"service", "category", "tags", "persistent", "updated_at"}


def test_an_edit_that_changes_nothing_writes_nothing():
    known = memory(observation="Same")
    assert verbs.edit(known, observation=" Same ", service="jellyfin", confidence=0.7, **BY) is None
    assert row(known).updated_at == BEFORE
    assert not MemoryChange.objects.exists()


def test_general_takes_the_service_away():
    known = memory()
    verbs.edit(known, service="general", **BY)
    assert row(known).service is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"observation": " "}, "observation is empty"),
        ({"category": "misc"}, "category is 'misc'; ops memories have timing"),
        ({"service": "a b"}, "service is 'a b'; allowed is one word"),
        ({"confidence": float("nan")}, "confidence is nan; allowed is a number from 0 to 1"),
        ({"tags": ["x"] * 3 + ["y" * 51]}, "tags: at most 20"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_changes(fields, message):
    known = memory()
    with pytest.raises(InvalidMemory, match=message):
        verbs.edit(known, observation="This is not stored either", **BY) and verbs.edit(known, **fields, **BY)
    with pytest.raises(InvalidMemory, match=message):
        verbs.edit(known, **({"observation": "Not stored"} | fields), **BY)
    assert row(known).observation == "This is not stored either"


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        verbs.edit(memory(), observation="x", by="operator", at=datetime(2026, 1, 1))


def test_what_does_not_exist_is_not_found():
    for verb in (verbs.deactivate, verbs.reactivate, verbs.reinforce, verbs.approve, verbs.delete):
        with pytest.raises(MemoryNotFound, match=r"There is no memory 999999\."):
            verb(999_999, **BY)


# taking out, bringing back


def test_deactivating_says_who_and_why_and_is_done_once():
    known = memory()
    change = verbs.deactivate(known.pk, reason="wrong host", **BY)
    assert state(known) == (0.7, False, Inactive.OPERATOR)
    assert row(known).updated_at == BEFORE
    assert (change.kind, change.reason) == (Change.DEACTIVATED, "wrong host")
    assert change.before == {"active": True, "inactive_reason": ""}
    assert change.after == {"active": False, "inactive_reason": "operator"}
    assert verbs.deactivate(known, **BY) is None


def test_deactivating_a_faded_memory_makes_it_a_person_s_word():
    known = memory(confidence=0.2, active=False, inactive_reason=Inactive.DECAYED)
    verbs.deactivate(known, **BY)
    assert state(known) == (0.2, False, Inactive.OPERATOR)


def test_reactivating_gives_the_confidence_an_active_memory_needs():
    faded = memory(confidence=0.1, active=False, inactive_reason=Inactive.DECAYED)
    out = memory(confidence=0.9, active=False, inactive_reason=Inactive.OPERATOR)
    verbs.reactivate(faded, **BY)
    verbs.reactivate(out, **BY)
    assert (state(faded), state(out)) == ((0.3, True, ""), (0.9, True, ""))
    assert row(faded).updated_at == NOW
    assert verbs.reactivate(faded, **BY) is None


def test_reactivating_an_expired_memory_takes_its_end_away():
    known = memory(active=False, inactive_reason=Inactive.EXPIRED, expires_at=BEFORE)
    verbs.reactivate(known, **BY)
    sweep(NOW)
    assert (row(known).active, row(known).expires_at) == (True, None)


def test_persistence_and_the_time_it_lasted():
    known = memory(updated_at=NOW - timedelta(days=200))
    change = verbs.mark_persistent(known, **BY)
    assert (change.kind, change.after) == (Change.PERSISTENT_SET, {"persistent": True})
    assert verbs.mark_persistent(known, **BY) is None
    verbs.mark_persistent(known, False, **BY)
    sweep(NOW + timedelta(days=6))
    assert state(known) == (0.7, True, "")
    sweep(NOW + timedelta(days=7))
    assert state(known) == (0.6, True, "")


def test_approving_lets_a_held_memory_be_used(operator):
    known = memory(verdict=Verdict.HOLD, verdict_reason="too long")
    change = verbs.approve(known, by="operator", at=NOW)
    after = row(known)
    assert (after.verdict, after.approved_by, after.approved_at) == (Verdict.ALLOW, operator, NOW)
    assert after.updated_at == NOW
    assert change.kind == Change.APPROVED
    assert verbs.approve(known, **BY) is None


def test_approving_in_the_name_of_nobody_known_still_says_when():
    known = memory(verdict=Verdict.HOLD)
    verbs.approve(known, by="cron", at=NOW)
    assert (row(known).verdict, row(known).approved_by, row(known).approved_at) == (Verdict.ALLOW, None, NOW)


def test_contradicting_leaves_the_date_and_stops_at_zero():
    known = memory(confidence=0.1)
    verbs.contradict(known, **BY)
    assert state(known) == (0.0, False, Inactive.CONTRADICTED)
    assert row(known).updated_at == BEFORE


# merge


def test_merging_makes_one_of_several():
    target, first, second = memory(observation="A"), memory(observation="B", confidence=0.9), memory(observation="C")
    change = verbs.merge(target, [first, second.pk], reason="the same", **BY)
    after = row(target)
    assert (after.observation, after.confidence, after.merged_count, after.updated_at) == ("A", 0.9, 2, NOW)
    merged = [{"id": first.pk, "observation": "B"}, {"id": second.pk, "observation": "C"}]
    assert change.evidence == {"merged": merged, "count": 2}
    for other in (first, second):
        assert (row(other).active, row(other).inactive_reason) == (False, Inactive.MERGED)
        assert row(other).superseded_by_id == target.pk
        told = MemoryChange.objects.get(memory=other)
        assert (told.kind, told.evidence, told.reason) == (Change.MERGED, {"into": target.pk}, "the same")
    assert MemoryChange.objects.count() == 3


def test_merging_can_give_a_better_text():
    target, other = memory(), memory()
    verbs.merge(target, [other], observation="Both in one sentence", **BY)
    assert row(target).observation == "Both in one sentence"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"service": "caddy"}, r"differ in their service \(jellyfin, caddy\)"),
        ({"service": None}, r"differ in their service \(jellyfin, none\)"),
        ({"category": "behavior"}, r"differ in their category \(timing, behavior\)"),
        ({"taxonomy": "agent"}, r"differ in their taxonomy \(ops, agent\)"),
        ({"active": False, "inactive_reason": Inactive.MERGED}, "was merged already"),
    ],
)
def test_what_does_not_belong_together_is_not_merged(fields, message):
    target, other, fine = memory(), memory(**fields), memory()
    with pytest.raises(InvalidMemory, match=message):
        verbs.merge(target, [fine, other], **BY)
    assert row(fine).active
    assert not MemoryChange.objects.exists()


def test_memories_of_two_projects_are_not_merged():
    with pytest.raises(InvalidMemory, match="differ in their project"):
        verbs.merge(memory(), [memory(project=ProjectFactory())], **BY)


def test_merging_needs_an_active_target_others_and_not_itself():
    target = memory()
    with pytest.raises(InvalidMemory, match="nothing to merge"):
        verbs.merge(target, [], **BY)
    with pytest.raises(InvalidMemory, match="cannot be merged into itself"):
        verbs.merge(target, [target], **BY)
    out = memory(active=False, inactive_reason=Inactive.OPERATOR)
    with pytest.raises(InvalidMemory, match=f"Memory {out.pk} is inactive"):
        verbs.merge(out, [target], **BY)


# delete


def test_deleting_keeps_the_history_and_the_whole_memory_in_it():
    known = memory(observation="Gone soon")
    child = memory(active=False, inactive_reason=Inactive.MERGED, superseded_by=known)
    verbs.edit(known, observation="Gone now", **BY)
    change = verbs.delete(known.pk, reason="a test", **BY)
    assert not Memory.objects.filter(pk=known.pk).exists()
    assert row(child).superseded_by is None
    history = list(MemoryChange.objects.filter(memory_uuid=known.uuid).order_by("id"))
    assert [told.kind for told in history] == [Change.EDITED, Change.DELETED]
    assert [told.memory_id for told in history] == [None, None]
    assert history[-1] == change
    assert change.after == {}
    assert change.before["id"] == known.pk
    assert change.before["observation"] == "Gone now"
    assert change.before["uuid"] == str(known.uuid)
    assert set(change.before) == {field.attname for field in Memory._meta.concrete_fields}
