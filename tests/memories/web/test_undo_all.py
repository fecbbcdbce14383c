"""Undoing several actions at once: each by its own conditions, the latest first, and what is left alone is said."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from memories.capture.statement import Provenance
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.models import Memory, MemoryChange
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

UNDO = "/memories/undo"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def client(client, operator):
    client.force_login(operator)
    return client


def approved(pk: int) -> str:
    """Approve a held memory, and return the address of its undo."""
    change = verbs.approve(pk, by="operator")
    return reverse("memory-undo", args=[pk, change.pk])


def held(count: int) -> list[Memory]:
    return [MemoryFactory(verdict="hold", verdict_reason="It reads like an instruction.") for _ in range(count)]


def test_four_approvals_are_undone_by_one_request_and_again_changes_nothing(client):
    addresses = [approved(memory.pk) for memory in held(4)]
    answer = client.post(UNDO, {"undo": addresses}, headers=HTMX)
    assert "4 changes are undone." in answer.content.decode()
    assert answer.headers["HX-Trigger"] == "wake"
    assert Memory.objects.filter(verdict="hold").count() == 4
    changes = MemoryChange.objects.count()
    client.post(UNDO, {"undo": addresses}, headers=HTMX)
    assert MemoryChange.objects.count() == changes


def test_two_edits_of_one_memory_are_undone_in_their_order(client):
    memory = MemoryFactory(observation="First")
    addresses = [
        reverse("memory-undo", args=[memory.pk, verbs.edit(memory.pk, by="operator", observation=text).pk])
        for text in ("Second", "Third")
    ]
    client.post(UNDO, {"undo": addresses[1]})
    client.post(UNDO, {"undo": addresses[0]})
    memory.refresh_from_db()
    assert memory.observation == "Second"  # the undo of the second edit is a change of its own, so the first one stays


def test_what_somebody_changed_since_is_left_alone_and_said(client):
    one, other = held(2)
    addresses = [approved(one.pk), approved(other.pk)]
    verbs.edit(other.pk, by="bob", observation="Bob knows better")
    html = client.post(UNDO, {"undo": addresses}, headers=HTMX).content.decode()
    assert "1 change is undone." in html
    assert f"Memory {other.pk} was changed meanwhile." in html
    assert "toast-warning" in html
    assert Memory.objects.get(pk=one.pk).verdict == "hold"
    assert Memory.objects.get(pk=other.pk).observation == "Bob knows better"


def test_a_bulk_action_and_a_decision_of_the_inbox_are_undone_in_the_same_way(client):
    bulk, inbox = MemoryFactory(), MemoryFactory(verdict="hold", verdict_reason="x")
    done = BULK_ACTIONS["deactivate"].run(Memory.objects.filter(pk=bulk.pk), by="operator")
    said = Provenance.typed_by("operator")
    decided = BULK_ACTIONS["approve"].run(Memory.objects.filter(pk=inbox.pk), by="operator", provenance=said)
    addresses = [
        reverse("memories-undo", args=[done.change]) + "?status=active",
        reverse("inbox-undo", args=["held", str(decided.change)]),
    ]
    assert "2 changes are undone." in client.post(UNDO, {"undo": addresses}, headers=HTMX).content.decode()
    assert Memory.objects.get(pk=bulk.pk).active
    assert Memory.objects.get(pk=inbox.pk).verdict == "hold"


@pytest.mark.parametrize("address", ["", "/", "/logout", "//evil.example/memories/1/undo/1", "http://[", "x" * 5000])
def test_an_address_that_undoes_nothing_is_refused_in_words(client, address):
    html = client.post(UNDO, {"undo": address}, headers=HTMX).content.decode()
    assert "There is nothing to undo at" in html
    assert not MemoryChange.objects.exists()


def test_it_takes_a_person_who_may_change_memories(client, django_user_model):
    (memory,) = held(1)
    address = approved(memory.pk)
    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.groups.add(Group.objects.get(name="viewer"))
    client.force_login(viewer)
    assert client.post(UNDO, {"undo": address}).status_code == 403
    assert Memory.objects.get(pk=memory.pk).verdict == "allow"
    assert client.get(UNDO).status_code == 405
