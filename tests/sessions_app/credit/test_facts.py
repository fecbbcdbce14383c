"""The four facts of a receipt, and where they are shown."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import Recalled
from sessions_app.credit.facts import Fact, facts_of, uses_of
from sessions_app.credit.notes import note
from sessions_app.credit.outcome import settle
from sessions_app.models import How, Session, Status, UsedMemory
from sessions_app.runner.launch import inject
from tests.sessions_app.people import person
from tests.support.factories import MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db


def a_told_session(count: int = 2) -> tuple[Session, list[int]]:
    """A completed session with `count` memories in its prompt, one more from a recall; it used two."""
    project = ProjectFactory()
    for _ in range(count):
        MemoryFactory(project=project)
    session = SessionFactory(project=project, started_at=timezone.now(), ended_at=timezone.now())
    inject(session, at=timezone.now())
    found = MemoryFactory(project=project)
    Recalled.objects.create(query="x", hits=[[found.pk, 0.9]], surface="mcp", session=session)
    ids = sorted({*(entry["id"] for entry in session.receipt.included), found.pk})
    note(session.pk, {ids[0]: How.NAMED, found.pk: How.QUOTED})
    settle(session.pk)
    return session, ids


def test_each_memory_has_its_four_facts():
    session, (first, second, found) = a_told_session()
    facts = facts_of(session)
    assert list(facts.by_memory.values()) == [
        Fact(first, True, "named", True),
        Fact(second, True),
        Fact(found, False, "quoted", True),
    ]
    assert (facts.shown, facts.injected, facts.used, facts.helped) == (3, 2, 2, 2)


def test_as_many_queries_for_20_memories_as_for_10():
    counts = []
    for count in (10, 20):
        session, _ = a_told_session(count)
        with CaptureQueriesContext(connection) as captured:
            facts_of(session)
        counts.append(len(captured))
    assert counts == [4, 4]


def test_a_memory_says_how_often_it_was_used_and_helped():
    memory = MemoryFactory()
    assert uses_of(memory.pk).words == "No session used it."
    for helped in (True, True, False, None):
        session = SessionFactory()
        UsedMemory.objects.create(session=session, memory_id=memory.pk, how=How.NAMED, helped=helped)
    assert uses_of(memory.pk).words == "Used 4 times: helped 2, did not help 1, not known 1."


def test_the_pages_of_session_and_memory_show_them():
    session, (first, _, found) = a_told_session()
    client = Client()
    client.force_login(person("viewer"))
    html = client.get(f"/sessions/{session.pk}?tab=injected").content.decode()
    for words in (">3</strong> shown", ">2</strong> injected", ">2</strong> used", ">2</strong> helped"):
        assert words in html
    assert "used: named" in html
    assert "Shown by its recalls alone: 1" in html
    assert f"memory {found}</a>" in html
    assert "Used once: helped 1, did not help 0." in client.get(f"/memories/{first}").content.decode()


def test_the_command_and_the_document_of_a_session_say_them():
    session, (first, second, found) = a_told_session()
    out = StringIO()
    call_command("session", "show", str(session.pk), stdout=out)
    assert "Memories: 3 shown, 2 injected, 2 used, 2 helped" in out.getvalue()
    assert f"memory {first} used (named in its text); it helped" in out.getvalue()
    out = StringIO()
    call_command("session", "show", str(session.pk), "--json", stdout=out)
    shown = json.loads(out.getvalue())["result"]["shown"]
    assert [one["memory_id"] for one in shown] == [first, second, found]
    assert shown[2] == {"memory_id": found, "injected": False, "how": "quoted", "helped": True}


def test_a_stopped_session_says_neither():
    session = SessionFactory(status=Status.STOPPED)
    note(session.pk, {5: How.NAMED})
    settle(session.pk)
    assert facts_of(session).by_memory == {5: Fact(5, False, "named", None)}
