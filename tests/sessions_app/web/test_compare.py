"""`/sessions/{id}/compare`: with what it compares, what differs, what it costs."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.models import InjectionReceipt, LogEntry, Session, Status
from sessions_app.queries.compare import SHOWN, memories_of, sides_of, tools_of
from tests.sessions_app.people import person
from tests.support.factories import AgentFactory, EventFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


def calls(session: Session, *texts: str) -> None:
    for seq, text in enumerate(texts, start=1):
        LogEntry.objects.create(session=session, seq=seq, at=timezone.now(), kind="tool_use", text=text, offset=seq)


def told(session: Session, **memories: str) -> None:
    entry = {"uuid": "x", "service": None, "category": "timing", "confidence": 0.9, "reason": ""}
    included = [entry | {"id": int(name[1:]), "observation": text} for name, text in memories.items()]
    InjectionReceipt.objects.create(session=session, sha256="a" * 64, budget=2000, tokens=1, included=included)


@pytest.fixture
def pair():
    """A failed session and the good run before it."""
    agent, now = AgentFactory(slug="watch"), timezone.now()
    good = SessionFactory(
        agent=agent,
        queued_at=now - timedelta(hours=2),
        duration_ms=60_000,
        num_turns=5,
        cost_usd=Decimal("0.02"),
        prompt="You observe.\nLook at jellyfin for 60 s.\nReport.",
        summary="All well",
    )
    SessionFactory(agent=agent, queued_at=now - timedelta(hours=1), status=Status.FAILED)
    SessionFactory(queued_at=now - timedelta(minutes=30))
    bad = SessionFactory(
        agent=agent,
        queued_at=now,
        status=Status.FAILED,
        status_reason="The session reached its limit of turns.",
        duration_ms=180_000,
        num_turns=20,
        cost_usd=Decimal("0.02"),
        prompt="You observe.\nLook at jellyfin for 90 s.\nReport.",
    )
    return bad, good


def compared(client, one: Session, query: str = "", status: int = 200) -> str:
    response = client.get(f"/sessions/{one.pk}/compare{query}")
    assert response.status_code == status
    return response.content.decode()


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_it_compares_with_the_last_good_run_of_the_agent_before_it(viewer, pair):
    bad, good = pair
    html = compared(viewer, bad)
    assert f"Session {bad.pk} beside the last good run, session {good.pk}" in html
    assert "Duration 3 min 3 times 1 min" in words(html)
    assert "Turns 20 4 times 5" in words(html)
    assert "Cost $0.02 $0.02" in words(html)
    assert f'id="compare-link" href="/sessions/{bad.pk}/compare"' in viewer.get(f"/sessions/{bad.pk}").content.decode()


def test_it_compares_with_any_other_and_says_what_is_none(viewer, pair):
    bad, good = pair
    assert f"Session {good.pk} beside session {bad.pk}" in compared(viewer, good, f"?with={bad.pk}")
    for number in (good.pk, 0, -1, 10**30, "x", bad.pk + 1000):
        html = compared(viewer, good, f"?with={number}", status=422)
        assert 'id="compare-error"' in html
    assert "was completed before it" in compared(viewer, good)
    assert viewer.get("/sessions/4711/compare").status_code == 404


def test_what_of_the_prompt_differs_is_marked_word_by_word(viewer, pair):
    html = compared(viewer, pair[0])
    assert "Look at jellyfin for <del>60</del> s." in html
    assert "Look at jellyfin for <ins>90</ins> s." in html


def test_memories_calls_and_events_that_one_alone_has_are_listed(viewer, pair):
    bad, good = pair
    told(bad, m1="Both know", m2="Only <b>bad</b> knows")
    told(good, m1="Both know", m3="Only good knows")
    calls(bad, 'Bash: {"command": "restic check 17"}', 'Bash: {"command": "sleep 60"}', 'Bash: {"command": "sleep 90"}')
    calls(good, 'Bash: {"command": "restic check 18"}', 'Read: {"file_path": "/etc/hosts"}')
    EventFactory(session=bad, level="warning", service="restic", message="Locked since 05:34")
    EventFactory(session=good, level="info", service=None, message="All well")
    html = compared(viewer, bad)
    gone = [words(row) for row in re.findall(r'<li class="is-gone">.*?</li>', html, re.DOTALL)]
    new = [words(row) for row in re.findall(r'<li class="is-new">.*?</li>', html, re.DOTALL)]
    assert [row.partition(": ")[2] for row in gone][:3] == [
        "Read: {&quot;file_path&quot;: &quot;/etc/hosts&quot;}",
        "info · general: All well",
        "Only good knows",
    ]
    assert [row.partition(": ")[2] for row in new][:3] == [
        "Bash: {&quot;command&quot;: &quot;sleep 60&quot;} 2 times",
        "warning · restic: Locked since 05:34",
        "Only &lt;b&gt;bad&lt;/b&gt; knows",
    ]
    assert "Bash 3 instead of 1 Read 0 instead of 1" in words(html)
    assert "1 in both" in words(html)


def test_a_pruned_log_is_said_and_not_taken_for_a_session_without_calls(viewer, pair):
    bad, good = pair
    Session.objects.filter(pk=good.pk).update(stats={"tool_calls": 7})
    calls(bad, "Bash: ls")
    assert f"The log of session {good.pk} was pruned" in compared(viewer, bad)


def test_the_number_of_queries_does_not_depend_on_what_they_did(viewer, pair):
    bad, _ = pair
    compared(viewer, bad)
    with CaptureQueriesContext(connection) as few:
        compared(viewer, bad)
    for session in pair:
        told(session, **{f"m{n + session.pk}": f"Memory {n}" for n in range(10)})
        calls(session, *(f"Bash: {session.pk} {n}" for n in range(10)))
        for _ in range(10):
            EventFactory(session=session)
    with CaptureQueriesContext(connection) as many:
        compared(viewer, bad)
    assert len(few) == len(many)


def test_nobody_sees_it_signed_out(client, pair):
    assert client.get(f"/sessions/{pair[0].pk}/compare").status_code == 302


def test_sides_have_what_one_alone_has_with_its_number_and_cut():
    sides = sides_of(["a 1", "a 2", "b"], ["b", "c", "c", "c"])
    assert (sides.one.rows, sides.other.rows, sides.same) == ([("a 1", 2)], [("c", 3)], 1)
    long = sides_of([f"call {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(SHOWN + 5)], [])
    assert (len(long.one.rows), long.one.more) == (SHOWN, 5)


def test_tools_are_counted_where_they_differ_the_largest_difference_first():
    assert tools_of(["Bash: a", "Bash: b", "Read: x"], ["Read: y", "Grep: z"]) == [("Bash", 2, 0), ("Grep", 0, 1)]


def test_receipts_are_compared_by_memory():
    found = memories_of([{"id": 1, "observation": "a"}], [{"id": 1, "observation": "b"}, {"id": 2, "observation": "c"}])
    assert ([row.pk for row in found.one], [row.pk for row in found.other], found.same) == ([], [2], 1)
