"""The front page: what runs, what failed, what runs next, and figures that are what their lists count."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.features.overview import figures
from claudeops.lib import capped
from memories.lifecycle import disagreements
from memories.models import EmbeddingModel, MemoryChange, ModelState
from sessions_app.models import LogEntry, Session, Status, Trigger, WorkerHeartbeat, WorkerRun
from tests.claudeops.front import figure, front, piece
from tests.sessions_app.people import person
from tests.support.factories import AgentFactory, CooldownActionFactory, EventFactory, MemoryFactory, SessionFactory


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def test_it_says_why_semantic_search_is_off_while_it_is(signed_in, settings, tmp_path):
    settings.CLAUDEOPS_EMBEDDINGS, settings.CLAUDEOPS_MODELS_DIR = "local", tmp_path
    assert "Semantic search is off: the model all-MiniLM-L6-v2 is not installed. Search uses keywords only." in (
        front(signed_in)
    )
    settings.CLAUDEOPS_EMBEDDINGS = "endpoint"
    EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4, state=ModelState.ACTIVE)
    assert "emantic search" not in front(signed_in)


def test_it_counts_what_runs_waits_is_known_and_was_reported(signed_in):
    now = timezone.now()
    SessionFactory(status=Status.RUNNING, started_at=now, cost_usd=Decimal("0.25"))
    SessionFactory.create_batch(2, status=Status.QUEUED, hold_reason="Agent watch is busy with session 1.")
    SessionFactory(status=Status.COMPLETED, ended_at=now, cost_usd=Decimal("1.25"))
    SessionFactory(status=Status.COMPLETED, ended_at=now - timedelta(days=2), cost_usd=Decimal("9"))
    MemoryFactory.create_batch(3)
    MemoryFactory(active=False)
    MemoryFactory(verdict="hold")
    EventFactory(level="critical")
    EventFactory(level="warning", created_at=now - timedelta(hours=30))
    CooldownActionFactory.create_batch(2, service="caddy")
    html = front(signed_in)
    expected = {
        "running": "1",
        "queued": "2",
        "week": "$10.25",
        "cooldowns": "1",
        "memories": "3",
        "inactive": "1",
        "waiting": "1",
        "critical": "1",
    }
    assert {name: figure(html, name) for name in expected} == expected
    assert re.search(r'id="chart-cost-all" href="/sessions\?spent=today">\$1.50</a>', html)
    assert "limit $20.00" in html
    assert html.count("Agent watch is busy with session 1.") == 2
    assert "0 warning in 24" in html


def test_it_says_what_failed_last_and_why_newest_first(signed_in, monkeypatch):
    now = timezone.now()
    for hours, status in ((3, Status.TIMED_OUT), (1, Status.FAILED), (2, Status.LOST)):
        at = now - timedelta(hours=hours)
        SessionFactory(status=status, status_reason=f"Because of {status}.", queued_at=at, ended_at=at)
    SessionFactory(status=Status.STOPPED, status_reason="Stopped by operator.", ended_at=now)
    SessionFactory(status="failed", status_reason="Because of failed.", ended_at=timezone.now() - timedelta(hours=9))
    html = piece(front(signed_in), "failed")
    assert "2 times" in html
    SessionFactory.create_batch(3, status="lost", status_reason="Because of lost.", ended_at=now - timedelta(hours=4))
    monkeypatch.setattr(figures, "FAILED_READ", 3)
    assert "3+ times" in piece(front(signed_in), "failed")
    places = [html.index(f"Because of {status}.") for status in ("failed", "lost", "timed_out")]
    assert places == sorted(places)
    assert "Stopped by operator." not in html


def test_an_empty_house_says_that_nothing_is_there_and_what_to_do(signed_in):
    html = front(signed_in)
    for words in (
        "No session is running.",
        "The queue is empty.",
        "No session has failed.",
        "No agents yet.",
        "Nothing has happened yet.",
        "No worker serves this queue. Start <code>manage.py runworker</code> (or <code>up</code>).",
    ):
        assert words in html
    assert 'href="/admin/sessions_app/agent/add/"' in html


def test_a_viewer_of_an_empty_house_is_offered_nothing_that_is_refused(client, db):
    client.force_login(person("viewer"))
    html = front(client)
    assert "No agents yet." in html
    for url in {unescape(url) for url in re.findall(r'<a[^>]+href="(/[^"]*)"', html)}:
        assert client.get(url).status_code == 200, url
    assert "agent/add" not in html
    assert "Run a session" not in html


def test_what_runs_is_shown_with_its_tier_and_the_last_line_it_wrote(signed_in):
    session = SessionFactory(status=Status.RUNNING, tier=2, started_at=timezone.now() - timedelta(minutes=3))
    for seq, text in enumerate(("The first line", "docker ps", "Up 3 hours <healthy>"), start=1):
        LogEntry.objects.create(session=session, seq=seq, at=timezone.now(), kind="text", text=text, offset=seq)
    html = front(signed_in)
    assert re.search(r"tier 2 · since <time[^>]+>3 minutes ago</time>", html)
    assert "Up 3 hours &lt;healthy&gt;" in html
    assert "docker ps" not in html


def test_the_last_seven_days_are_summed_without_imported_logs(signed_in):
    now = timezone.now()
    SessionFactory(ended_at=now - timedelta(days=6), cost_usd=Decimal("2.50"), num_turns=40)
    SessionFactory(ended_at=now, cost_usd=Decimal("1"), num_turns=2)
    SessionFactory(ended_at=now - timedelta(days=8), cost_usd=Decimal("9"), num_turns=500)
    SessionFactory(ended_at=now, cost_usd=Decimal("9"), num_turns=500, trigger="import")
    html = front(signed_in)
    assert (figure(html, "week"), figure(html, "turns")) == ("$3.50", "42")


LISTED = {
    **dict.fromkeys(("running", "queued", "failed"), r'id="sessions-count">\s*([\d,+]+) session'),
    **dict.fromkeys(("memories", "waiting", "inactive"), r'id="memories-count">\s*(?:\d+ of )?([\d,+]+) memor'),
    "critical": r'id="events-count">\s*([\d,+]+) event',
    "disagreements": r'view=disagreements"[^>]*>Disagreements <b>([^<]+)<',
    "week": r'id="sessions-cost">([^<]+)<',
    "turns": r'id="sessions-turns">([^<]+)<',
    "lost": r"([\d,]+) worker run",
    "cooldowns": r'id="cooldowns-count">([^<]+)<',
}
"""The count that the list linked by a figure shows."""


@pytest.fixture
def lived_in():
    """Create rows such that every figure counts something, and other rows that it must not count."""
    now = timezone.now()
    SessionFactory(status=Status.RUNNING, cost_usd=Decimal("0.11"), num_turns=3)
    SessionFactory.create_batch(2, status=Status.QUEUED)
    SessionFactory(status=Status.FAILED, ended_at=now, cost_usd=Decimal("1.2345"), num_turns=1200)
    SessionFactory(ended_at=now - timedelta(days=3), queued_at=now - timedelta(days=12), cost_usd=Decimal("3.1"))
    SessionFactory(ended_at=now - timedelta(days=9), cost_usd=Decimal("50"), num_turns=70)
    SessionFactory(ended_at=now, trigger=Trigger.IMPORT, cost_usd=Decimal("70"), num_turns=9)
    MemoryFactory.create_batch(4)
    MemoryFactory.create_batch(3, active=False)
    MemoryFactory(verdict="hold")
    MemoryFactory(verdict="hold", active=False)
    for n, level in enumerate(("info", "warning", "critical"), start=1):
        EventFactory.create_batch(n, level=level, session=None)
        EventFactory(level=level, created_at=now - timedelta(days=3))
    for service in ("caddy", "jellyfin"):
        CooldownActionFactory.create_batch(2, service=service)
    CooldownActionFactory(service="jellyfin", action="redeployment")
    CooldownActionFactory(service="paperless")
    for ending, age in (("lost", 1), ("lost", 23), ("lost", 25), ("stopped", 1)):
        WorkerRun.objects.create(host="nas", pid=1, ending=ending, ended_at=now - timedelta(hours=age))
    WorkerRun.objects.create(host="nas", pid=2)
    disagreements.note(MemoryFactory(), MemoryFactory(), "contradiction")
    disagreements.note(MemoryFactory(), MemoryFactory(), "duplicate")


@pytest.mark.parametrize("name", LISTED)
def test_a_figure_is_what_the_list_it_leads_to_counts(signed_in, lived_in, name):
    html = front(signed_in)
    link = re.search(rf'id="(?:figure-{name}|chart-{name}-all)" href="([^"]+)"', html)
    assert link
    listed = signed_in.get(unescape(link.group(1))).content.decode()
    said = re.search(LISTED[name], listed)
    assert said, listed
    assert figure(html, name) == said.group(1)
    assert figure(html, name) not in ("0", "$0.00")


def test_every_figure_is_held_to_its_list_and_every_link_leads_somewhere(signed_in, lived_in):
    html = front(signed_in)
    assert set(re.findall(r'id="figure-(\w+)"', html)) == {*LISTED, "workers", "silence"} - {"memories"}
    for url in {unescape(url) for url in re.findall(r'<a[^>]+href="(/[^"]*)"', html)}:
        assert signed_in.get(url).status_code == 200, url


def test_a_count_beyond_what_is_counted_is_the_same_in_the_list(signed_in, monkeypatch):
    monkeypatch.setattr(capped, "CAP", 2)
    MemoryFactory.create_batch(4)
    html = front(signed_in)
    assert figure(html, "memories") == "2+"
    assert re.search(LISTED["memories"], signed_in.get("/memories?status=active").content.decode())[1] == "2+"


def test_its_queries_are_the_same_with_twice_the_rows_and_none_counts_without_a_limit(signed_in):
    def queries(rows: int) -> list[str]:
        for _ in range(rows):
            for status in Status.values:
                SessionFactory(status=status, agent=AgentFactory(schedule_kind="interval", next_run_at=timezone.now()))
            MemoryChange.objects.create(memory=MemoryFactory(), kind="created")
            EventFactory()
            CooldownActionFactory.create_batch(2, service=f"service-{Session.objects.count()}")
            WorkerHeartbeat.objects.create(host=f"host-{Session.objects.count()}", cluster="default", pid=1)
        with CaptureQueriesContext(connection) as captured:
            front(signed_in)
        return [query["sql"] for query in captured]

    queries(1)
    few, many = queries(9), queries(10)
    assert len(few) == len(many) <= 86
    for table in ("sessions", "memories"):
        counts = [count for sql in many for count in sql.replace('"', "").split("COUNT(")[1:]]
        counting = [count for count in counts if f"FROM {table} " in count]
        assert counting
        assert all("LIMIT" in count for count in counting), counting


def test_the_demo_is_marked_on_every_page(signed_in, settings):
    assert "demo-banner" not in front(signed_in)
    settings.CLAUDEOPS_DEMO = True
    for url in ("/", "/admin/", "/admin/memories/memory/"):
        assert b"demo-banner" in signed_in.get(url).content


@pytest.mark.parametrize(("asked_for", "then"), [("/events?level=info", "/events?level=info"), ("//example.org", "/")])
def test_the_note_on_the_demo_is_hidden_until_one_signs_in_again(signed_in, settings, asked_for, then):
    settings.CLAUDEOPS_DEMO = True
    response = signed_in.post("/demo/hide", {"next": asked_for})
    assert (response.status_code, response.headers["Location"]) == (302, then)
    for url in ("/", "/admin/"):
        assert b"demo-banner" not in signed_in.get(url).content
    other = Client()
    other.force_login(get_user_model().objects.get())
    assert b"demo-banner" in other.get("/").content
    assert signed_in.get("/demo/hide").status_code == 405
    assert Client().post("/demo/hide").url.startswith("/login")


def test_what_waits_for_a_person_is_counted_with_the_trust_that_makes_it_wait(db, settings):
    MemoryFactory(provisional="credentials", exposure="outside")
    MemoryFactory(verdict="hold")
    found = figures.read(timezone.now())
    assert (found.trust, found.memories["waiting"].value) == ("guarded", 2)
    settings.CLAUDEOPS_TRUST = "strict"
    MemoryFactory()
    found = figures.read(timezone.now())
    assert (found.trust, found.memories["waiting"].value) == ("strict", 3)
