"""`store.remember()` for what a person typed: stored as given, past gate and matching, or refused with the reason."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memories.errors import InvalidMemory
from memories.models import Inactive, Memory, MemoryChange
from memories.store import Provenance, Statement, remember
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)


def human():
    return Provenance(source="human", actor="operator", channel="human")


def timing(observation, **fields):
    return Statement("timing", observation, "jellyfin", **fields)


def reads(memory_id):
    memory = Memory.objects.get(pk=memory_id)
    return memory.confidence, memory.active, memory.inactive_reason


def test_a_person_s_memory_is_stored_as_given_past_gate_and_matching():
    old = MemoryFactory(
        service="caddy", category="dependency", observation="Must be started after WireGuard", confidence=0.8
    )
    unlike = "Can be started independently of WireGuard; password=hunter2"
    candidate = Statement("dependency", unlike, "caddy", confidence=0.9, tags=("a", "a"))
    remembered = remember(candidate, human(), at=NOW)
    memory = Memory.objects.get(pk=remembered.memory_id)
    assert (memory.confidence, memory.session_id, memory.tier, memory.source) == (0.9, None, 0, "human")
    assert (memory.tags, memory.verdict) == (["a"], "allow")
    assert reads(old.pk) == (0.8, True, "")
    change = MemoryChange.objects.get()
    assert (change.actor, change.session_id, change.candidate_key) == ("operator", None, None)


@pytest.mark.parametrize(("given", "stored"), [(None, 0.7), (1.5, 1.0), (-3, 0.0), (0.123456789, 0.123457), (0.2, 0.2)])
def test_a_person_s_confidence_is_clamped(given, stored):
    remembered = remember(timing("Slow on Mondays", confidence=given), human(), at=NOW)
    assert reads(remembered.memory_id) == (stored, stored >= 0.3, "" if stored >= 0.3 else Inactive.LOWERED)


def test_a_person_cannot_say_the_very_same_twice():
    first = remember(timing("Slow on Mondays"), human(), at=NOW)
    with pytest.raises(InvalidMemory, match=f"Memory {first.memory_id} says exactly this already"):
        remember(timing("slow  on mondays"), human(), at=NOW)
    Memory.objects.update(active=False, inactive_reason=Inactive.OPERATOR)
    assert remember(timing("Slow on Mondays"), human(), at=NOW).outcome == "created"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: Statement("misc", "Some text"), "category is 'misc'; ops memories have timing, dependency, behavior"),
        (lambda: Statement("timing", "Some text", "my service"), "service is 'my service'; allowed is one word"),
        (lambda: Statement("timing", "Some text", "x" * 65), "at most 64 characters"),
        (lambda: Statement("timing", " \n\t "), "observation is empty"),
        (lambda: Statement("timing", "x" * 10_001), "observation has 10,001 characters; at most 10,000"),
        (
            lambda: Statement("timing", "Some text", confidence=float("nan")),
            "confidence is nan; allowed is a number from 0",
        ),
        (lambda: Statement("timing", "Some text", taxonomy="other"), "taxonomy is 'other'; allowed are ops, project"),
        (lambda: Statement("timing", "Some text", tags=("x" * 51,)), "tags: at most 20, each of at most 50"),
    ],
)
def test_what_cannot_be_stored_is_named_and_refused(given, message):
    with pytest.raises(InvalidMemory, match=message):
        remember(given(), human(), at=NOW)
    assert not Memory.objects.exists()


def test_a_refusal_spoils_nothing_of_the_transaction_around_it():
    remember(timing("Slow on Mondays"), human(), at=NOW)
    with pytest.raises(InvalidMemory):
        remember(timing("Slow on Mondays"), human(), at=NOW)
    agent = Provenance(source="run", actor="agent:watcher", session_id=SessionFactory().pk, tier=1, channel="text")
    assert remember(Statement("behavior", "Restarts itself at night", "jellyfin"), agent, at=NOW).outcome == "created"
