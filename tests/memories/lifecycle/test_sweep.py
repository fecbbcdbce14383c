"""Decay and expiry of all memories at once: `memories/lifecycle/sweep.py`, on the database of the run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from memories.lifecycle import rules
from memories.lifecycle.lock import writing
from memories.lifecycle.sweep import Swept, due, is_due, sweep
from memories.models import Change, Inactive, Memory, MemoryChange, Verdict
from memories.store import Provenance, Statement, remember
from memories.taxonomy import OPS
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)


def confirmed(days, **fields):
    """A memory last confirmed so many days before NOW; no decay was taken yet."""
    at = NOW - timedelta(days=days)
    return MemoryFactory(updated_at=at, created_at=at, **fields)


def now_of(memory):
    return Memory.objects.get(pk=memory.pk)


def test_after_15_days_a_memory_is_unchanged():
    memory = confirmed(15)
    assert sweep(NOW) == Swept()
    assert now_of(memory).confidence == 0.7
    assert not MemoryChange.objects.exists()


def test_after_44_days_two_steps_are_taken_and_the_row_says_so():
    memory, other = confirmed(44), confirmed(3)
    assert sweep(NOW) == Swept(decayed=1)

    after = now_of(memory)
    assert (after.confidence, after.active) == (0.5, True)
    assert after.updated_at == memory.updated_at
    assert after.decayed_until == NOW
    change = MemoryChange.objects.get()
    assert (change.memory_id, change.memory_uuid, change.kind, change.at) == (memory.pk, memory.uuid, "decayed", NOW)
    assert (change.actor, change.session_id, change.evidence) == ("system", None, {})
    assert change.before == {"confidence": 0.7, "decayed_until": None}
    assert change.after["confidence"] == 0.5
    assert datetime.fromisoformat(change.after["decayed_until"]) == NOW
    assert change.reason == "2 × 0.1 taken: not confirmed since 2026-04-18."
    assert now_of(other).confidence == 0.7


def test_a_0_4_at_44_days_is_0_2_and_inactive():
    memory = confirmed(44, confidence=0.4)
    assert sweep(NOW) == Swept(decayed=1, deactivated=1)
    after = now_of(memory)
    assert (after.confidence, after.active, after.inactive_reason) == (0.2, False, Inactive.DECAYED)
    change = MemoryChange.objects.get()
    assert change.before == {"confidence": 0.4, "decayed_until": None, "active": True, "inactive_reason": ""}
    assert change.after["active"] is False
    assert change.after["inactive_reason"] == "decayed"


def test_at_exactly_the_threshold_a_memory_stays_active():
    memory = confirmed(44, confidence=0.5)
    sweep(NOW)
    assert (now_of(memory).confidence, now_of(memory).active) == (0.3, True)


def test_a_hundred_sweeps_in_a_day_take_what_one_takes():
    memory = confirmed(44)
    first = sweep(NOW)
    rest = {sweep(NOW + timedelta(minutes=14 * number)) for number in range(1, 100)}
    assert (first, rest) == (Swept(decayed=1), {Swept()})
    assert now_of(memory).confidence == 0.5
    assert MemoryChange.objects.count() == 1


def test_sweeping_every_day_or_once_at_the_end_is_the_same():
    daily = confirmed(75, confidence=1.0)
    for day in range(75, 0, -1):
        sweep(NOW - timedelta(days=day))
    once = confirmed(75, confidence=1.0)
    sweep(NOW)
    assert now_of(once).confidence == 0.4
    assert now_of(daily).confidence == now_of(once).confidence
    assert now_of(daily).decayed_until == now_of(once).decayed_until


def test_decay_counts_from_where_it_was_taken_when_that_is_later_than_the_grace():
    memory = confirmed(60, confidence=0.7, decayed_until=NOW - timedelta(days=8))
    sweep(NOW)
    assert now_of(memory).confidence == 0.6
    assert now_of(memory).decayed_until == NOW - timedelta(days=1)


def test_confidence_ends_at_zero():
    memory = confirmed(1000, confidence=0.35)
    sweep(NOW)
    assert now_of(memory).confidence == 0.0


@pytest.mark.parametrize(
    "fields",
    [
        {"persistent": True},
        {"active": False, "inactive_reason": Inactive.OPERATOR},
        {"verdict": Verdict.HOLD},
        {"taxonomy": "agent", "category": "pattern"},
    ],
    ids=["persistent", "inactive", "held for review", "of a taxonomy that does not decay"],
)
def test_what_does_not_decay(fields):
    memory = confirmed(400, **fields)
    assert not is_due(NOW)
    assert sweep(NOW) == Swept()
    assert now_of(memory).confidence == 0.7


def test_expiry_ends_a_memory_at_its_time_and_not_before():
    memory = MemoryFactory(expires_at=NOW, updated_at=NOW, persistent=True)
    other = MemoryFactory(expires_at=NOW + timedelta(seconds=1), updated_at=NOW)
    assert sweep(NOW - timedelta(microseconds=1)) == Swept()
    assert sweep(NOW) == Swept(expired=1)
    after = now_of(memory)
    assert (after.active, after.inactive_reason, after.confidence) == (False, Inactive.EXPIRED, 0.7)
    assert now_of(other).active
    change = MemoryChange.objects.get()
    assert (change.kind, change.memory_id) == (Change.EXPIRED, memory.pk)
    assert change.before == {"active": True, "inactive_reason": ""}
    assert change.after == {"active": False, "inactive_reason": "expired"}
    assert sweep(NOW) == Swept()


def test_memories_of_a_project_expire_a_lifetime_of_their_type_after_they_were_made():
    project = ProjectFactory(default_expiry={"learning": 7, "warning": None})

    def made(category, days, of=project):
        said = Provenance("human", "ann", project_id=of.pk)
        statement = Statement(category, f"Fact of {category} {days} {of.pk}", taxonomy="project")
        return remember(statement, said, at=NOW - timedelta(days=days)).memory_id

    other = ProjectFactory()
    ended = [made("context", 30), made("learning", 7), made("warning", 90, other), made("learning", 180, other)]
    kept = [made("context", 29), made("learning", 6), made("warning", 900), made("pattern", 4000)]
    assert sweep(NOW) == Swept(expired=4)
    assert set(Memory.objects.filter(pk__in=ended).values_list("inactive_reason", flat=True)) == {"expired"}
    assert Memory.objects.filter(pk__in=kept, active=True).count() == len(kept)


def test_what_expired_does_not_decay_as_well():
    memory = confirmed(44, expires_at=NOW - timedelta(days=1))
    assert sweep(NOW) == Swept(expired=1)
    assert now_of(memory).confidence == 0.7


def test_what_is_due_is_changed_in_transactions_of_a_bounded_size(monkeypatch):
    monkeypatch.setattr("memories.lifecycle.sweep.BATCH", 7)
    due = [confirmed(44 + number) for number in range(16)]
    faded = [confirmed(44, confidence=0.4) for number in range(4)]
    ended = [confirmed(1, expires_at=NOW) for number in range(14)]
    fresh = confirmed(3)
    with CaptureQueriesContext(connection) as captured:
        assert sweep(NOW) == Swept(decayed=20, deactivated=4, expired=14)
    assert (
        sum(query["sql"].startswith("SAVEPOINT") for query in captured) == 6
    )  # 34 in batches of 7, and the telemetry record
    assert MemoryChange.objects.count() == 34
    assert {change.memory_id for change in MemoryChange.objects.all()} == {row.pk for row in due + faded + ended}
    assert now_of(fresh).confidence == 0.7
    assert sweep(NOW) == Swept()


moments = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
confidences = st.integers(0, 1_000_000).map(lambda value: value / 1_000_000)


@given(
    confidence=confidences,
    updated_at=moments,
    taken=st.none() | st.timedeltas(timedelta(days=-90), timedelta(days=400)),
    passed=st.timedeltas(timedelta(days=-5), timedelta(days=300))
    | st.integers(0, 40).map(lambda weeks: timedelta(days=30 + 7 * weeks))
    | st.integers(0, 40).map(lambda weeks: timedelta(days=30 + 7 * weeks, microseconds=-1)),
)
def test_the_sweep_and_the_pure_rule_agree(confidence, updated_at, taken, passed):
    Memory.objects.all().delete()
    decayed_until = None if taken is None else updated_at + taken
    memory = MemoryFactory(confidence=confidence, updated_at=updated_at, decayed_until=decayed_until)
    at = updated_at + passed
    expected = rules.decayed(confidence, updated_at, decayed_until, at, OPS.decay)
    sweep(at)
    after = now_of(memory)
    assert (after.confidence, after.decayed_until) == expected
    if expected != (confidence, decayed_until):
        assert after.active == rules.is_active(after.confidence, OPS)


def test_a_sweep_with_nothing_due_reads_an_index_only_and_takes_no_lock(django_assert_num_queries):
    MemoryFactory.create_batch(30, updated_at=NOW)
    with django_assert_num_queries(1) as captured:
        assert sweep(NOW) == Swept()
    assert captured[0]["sql"].lstrip("(").startswith("SELECT")


def test_what_was_confirmed_after_it_was_found_due_is_left_alone(monkeypatch):
    """Another process confirms one of the memories between the look and the lock."""
    known, other = confirmed(44), confirmed(44)

    def late():
        Memory.objects.filter(pk=known.pk).update(updated_at=NOW)
        return writing()

    monkeypatch.setattr("memories.lifecycle.sweep.writing", late)
    assert sweep(NOW) == Swept(decayed=1)
    assert (now_of(known).confidence, now_of(other).confidence) == (0.7, 0.5)


def test_among_many_memories_the_sweep_finds_the_due_ones_by_index():
    Memory.objects.bulk_create(MemoryFactory.build_batch(600, updated_at=NOW))
    confirmed(44)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories")
    plan = due(NOW).values_list("pk").explain()
    assert plan.count("memories_decay") >= 1
    assert "memories_expiry" in plan
    assert "Seq Scan" not in plan
    assert "SCAN memories" not in plan
