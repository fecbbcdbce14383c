"""A session with a task gets what its task speaks of first, within the same budget; without one, the surest."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.injection import relevant as relevant_module
from memories.injection.ops import build
from memories.injection.relevant import Task
from memories.lifecycle.sweep import sweep
from memories.models import Memory, Recalled
from tests.support.factories import MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def memories():
    sure = [
        MemoryFactory(service="plex", observation=f"Library scan number {n} is heavy", confidence=0.95)
        for n in range(9)
    ]
    asked = MemoryFactory(service="vpn", observation="The wg0 tunnel drops when the router restarts", confidence=0.6)
    return sure, asked


def small(task: Task | None = None, project_id: int | None = None):
    return build(budget=120, project_id=project_id, task=task)


def test_what_the_task_speaks_of_comes_before_what_is_surer(memories):
    _, asked = memories
    assert asked.observation not in small().text
    injection = small(Task("ALERT: tunnel wg0 is down"))
    assert injection.included[0]["id"] == asked.pk
    assert injection.included[0]["reason"].startswith("relevant to the task: score ")
    assert {entry["reason"] for entry in injection.included[1:]} == {"by confidence"}
    assert injection.tokens <= 120
    assert asked.observation in injection.text


@pytest.mark.parametrize("task", [None, Task(""), Task("  \n")])
def test_without_a_text_the_block_is_the_same_to_the_byte(memories, task):
    plain = small()
    injection = small(task)
    assert (injection.sha256, injection.included) == (plain.sha256, plain.included)
    assert {entry["reason"] for entry in injection.included} == {""}


def test_a_text_that_speaks_of_nothing_known_leaves_the_order_of_confidence(memories):
    assert small(Task("zebra quagga")).sha256 == small().sha256


def test_a_task_brings_nothing_doubtful_that_no_person_approved(memories):
    doubtful = MemoryFactory(service="vpn", observation="The wg0 tunnel is down on Sundays", confidence=0.45)
    assert doubtful.observation not in small(Task("wg0 tunnel is down on Sundays")).text
    Memory.objects.filter(pk=doubtful.pk).update(approved_at=timezone.now())
    assert small(Task("wg0 tunnel is down on Sundays")).included[0]["id"] == doubtful.pk


def test_what_a_task_brings_takes_no_more_than_its_share(memories):
    MemoryFactory.create_batch(20, service="vpn", observation="Peers of the wg0 tunnel time out", confidence=0.55)
    injection = build(budget=300, task=Task("wg0 tunnel peers"))
    brought = [e for e in injection.included if e["reason"].startswith("relevant")]
    assert brought
    lines = sum(len(f"- [{e['category']}] {e['observation']} (confidence: 0.55)\n") for e in brought)
    assert lines / 4 <= 0.4 * 300
    # The rest is filled by confidence: nothing less sure than what was left out.
    rest = [e["confidence"] for e in injection.included if e["reason"] == "by confidence"]
    assert rest[:9] == [0.95] * 9


def test_a_preview_is_the_same_to_the_byte_and_is_not_logged(memories):
    text = "ALERT: tunnel wg0 is down"
    shown = small(Task(text, is_preview=True))
    assert not Recalled.objects.exists()
    assert small(Task(text)).sha256 == shown.sha256 != small().sha256


def test_a_preview_is_the_same_when_decay_is_due(memories):
    text, later = "ALERT: tunnel wg0 is down", timezone.now() + timedelta(days=44)
    shown = build(budget=120, at=later, task=Task(text, is_preview=True))
    sweep(later)
    assert build(budget=120, at=later, task=Task(text)).sha256 == shown.sha256


def test_no_memory_is_in_twice(memories):
    injection = build(budget=5_000, task=Task("wg0 tunnel, library scan"))
    ids = [entry["id"] for entry in injection.included]
    assert len(ids) == len(set(ids)) == 10
    assert injection.counts["eligible"] == 10


def test_a_task_does_not_bring_what_is_held_inactive_unsure_or_of_another_project(memories):
    text = "The wg0 tunnel needs a key"
    for values in ({"verdict": "hold"}, {"active": False}, {"confidence": 0.2}, {"project": ProjectFactory()}):
        MemoryFactory(observation=text, **values)
    MemoryFactory(observation=text, taxonomy="knowledge", category="operations")
    injection = build(budget=5_000, task=Task("wg0 tunnel key"))
    assert text not in injection.text
    assert injection.counts["included"] == 10


def test_a_recall_that_fails_stops_nothing_and_the_receipt_says_why(memories, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError("the disk is gone")

    monkeypatch.setattr(relevant_module, "recall", broken)
    injection = small(Task("wg0 tunnel"))
    assert injection.sha256 == small().sha256
    assert {entry["reason"] for entry in injection.included} == {
        "by confidence (recall failed: OSError: the disk is gone)"
    }


def test_the_same_task_gives_the_same_bytes(memories):
    assert small(Task("wg0 tunnel")).sha256 == small(Task("wg0 tunnel")).sha256


def test_the_recall_is_recorded_with_its_session(memories):
    session = SessionFactory()
    small(Task("wg0 tunnel", None, session.pk))
    row = Recalled.objects.get()
    assert (row.surface, row.session_id) == ("injection", session.pk)
