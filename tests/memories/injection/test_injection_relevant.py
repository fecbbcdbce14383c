"""A session with a task gets what its task speaks of first, within the same budget; without one, the surest."""

from __future__ import annotations

import pytest

from memories.injection import relevant as relevant_module
from memories.injection.ops import build
from memories.injection.relevant import Task
from memories.models import Recalled
from tests.factories import MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def memories():
    sure = [
        MemoryFactory(service="plex", observation=f"Library scan number {n} is heavy", confidence=0.95)
        for n in range(9)
    ]
    asked = MemoryFactory(service="vpn", observation="The wg0 tunnel drops when the router restarts", confidence=0.4)
    return sure, asked


def small(task: Task | None = None, project_id: int | None = None):
    return build(budget=90, project_id=project_id, task=task)


def test_what_the_task_speaks_of_comes_before_what_is_surer(memories):
    _, asked = memories
    assert asked.observation not in small().text
    injection = small(Task("ALERT: tunnel wg0 is down"))
    assert injection.included[0]["id"] == asked.pk
    assert injection.included[0]["reason"].startswith("relevant to the task: score ")
    assert {entry["reason"] for entry in injection.included[1:]} == {"by confidence"}
    assert injection.tokens <= 90
    assert asked.observation in injection.text


@pytest.mark.parametrize("task", [None, Task(""), Task("  \n")])
def test_without_a_text_the_block_is_the_same_to_the_byte(memories, task):
    plain = small()
    injection = small(task)
    assert (injection.sha256, injection.included) == (plain.sha256, plain.included)
    assert {entry["reason"] for entry in injection.included} == {""}


def test_a_text_that_speaks_of_nothing_known_leaves_the_order_of_confidence(memories):
    assert small(Task("zebra quagga")).sha256 == small().sha256


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
