"""What the front page asks for every few seconds: nothing while nothing changes, else the parts that did."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from claudeops.features.overview import changes
from claudeops.lib.change_token import CSRF
from memories.models import MemoryChange
from sessions_app.models import Agent, LogEntry, Session, Status, WorkerHeartbeat
from sessions_app.queue import tasks
from tests.claudeops.front import FRAGMENT, HTMX, figure, front
from tests.support.factories import AgentFactory, CooldownActionFactory, EventFactory, MemoryFactory, SessionFactory


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def seen(html: str) -> str:
    found = re.search(r'hx-get="/overview/fragment\?seen=([^"]+)"', html)
    assert found
    return found.group(1)


def poll(client: Client, token: str) -> Any:
    return client.get(f"{FRAGMENT}?seen={token}", headers=HTMX)


def pieces(html: str) -> set[str]:
    """Return the parts of the page that an answer replaces."""
    return set(re.findall(r'<div id="piece-(\w+)"[^>]* hx-swap-oob="true"', html))


@pytest.fixture
def still(monkeypatch):
    """A clock that stands at half past, an hour ago: what time alone moves is not what these tests are about.

    Rows made without a time get the real one, which is later: whoever asks what happened up to now must name one.
    """
    at = timezone.now().replace(second=30, microsecond=0) - timedelta(hours=1)
    monkeypatch.setattr(timezone, "now", lambda: at)
    return at


def test_the_page_asks_for_the_fragment_and_gets_nothing_while_nothing_changes(signed_in, still):
    EventFactory()
    first = seen(front(signed_in))
    response = poll(signed_in, first)
    assert (response.status_code, response.content) == (204, b"")
    memory = MemoryFactory()
    MemoryChange.objects.create(memory=memory, kind="created")
    response = poll(signed_in, first)
    assert response.status_code == 200
    html = response.content.decode()
    assert "<html" not in html
    assert seen(html) != first
    assert pieces(html) == {"charts"}
    assert figure(" ".join(html.split()), "memories") == "1"
    assert poll(signed_in, seen(html)).status_code == 204


@pytest.fixture
def cached(settings):
    """The cache of production, which the settings of the suite switch off."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "overview"}}
    yield cache
    cache.clear()


def test_an_unchanged_poll_only_looks_up_who_is_asking(signed_in, cached):
    EventFactory()
    SessionFactory(status=Status.RUNNING)
    token = seen(front(signed_in))
    with CaptureQueriesContext(connection) as captured:
        assert poll(signed_in, token).status_code == 204
    who_asks = ("django_session", "auth_user", "auth_permission")
    assert not [query["sql"] for query in captured if not any(table in query["sql"] for table in who_asks)]


def test_what_has_changed_is_read_after_five_seconds_for_every_browser(signed_in, cached):
    token = seen(front(signed_in))
    MemoryFactory()
    assert poll(signed_in, token).status_code == 204
    assert changes.SECONDS == 5
    changes.forget()  # as the cache does when they are that old
    assert poll(signed_in, token).status_code == 200


@pytest.mark.parametrize(
    ("what", "brings"),
    [
        ("claimed", {"running", "agents"}),
        ("said", {"running"}),
        ("failed", {"needs", "charts", "running", "failed", "agents"}),
        ("held", {"running"}),
        ("beat", set()),
        ("silent", {"health"}),
        ("scheduled", {"agents"}),
        ("reported", {"needs"}),
        ("restarted", {"health"}),
        ("waiting", {"health"}),
    ],
)
def test_a_change_brings_the_parts_that_show_it_and_no_others(signed_in, still, what, brings):
    minute = timedelta(minutes=1)
    agent = AgentFactory(schedule_kind="interval", next_run_at=still + minute)
    runs = SessionFactory(agent=agent, status=Status.QUEUED, queued_at=still - minute)
    if what in ("said", "failed"):
        Session.objects.filter(pk=runs.pk).update(status=Status.RUNNING, started_at=still - minute)
    worker = WorkerHeartbeat.objects.create(host="nuc-1", cluster="default", pid=1, beat_at=still)
    CooldownActionFactory(session=None, service="caddy", created_at=still - minute)
    EventFactory(session=None)
    token = seen(front(signed_in))
    if what == "claimed":
        Session.objects.filter(pk=runs.pk).update(status=Status.RUNNING, started_at=still, heartbeat_at=still)
    elif what == "said":
        LogEntry.objects.create(session=runs, seq=1, at=still, kind="text", text="A line", offset=0)
        Session.objects.filter(pk=runs.pk).update(ingest_offset=10)
    elif what == "failed":
        Session.objects.filter(pk=runs.pk).update(status=Status.FAILED, ended_at=still, status_reason="Broken.")
    elif what == "held":
        Session.objects.filter(pk=runs.pk).update(hold_reason="It is Sunday.")
    elif what in ("beat", "silent"):
        WorkerHeartbeat.objects.filter(pk=worker.pk).update(
            beat_at=still - timedelta(seconds=15 if what == "beat" else 90)
        )
    elif what == "scheduled":
        Agent.objects.filter(pk=agent.pk).update(next_run_at=still + 5 * minute)
    elif what == "reported":
        EventFactory(session=None, level="critical")
    elif what == "restarted":
        CooldownActionFactory(session=None, service="caddy", created_at=still - minute)
    elif what == "waiting":
        tasks.send(tasks.REAP, host="nuc-1")
        OrmQ.objects.update(lock=still - minute)
    response = poll(signed_in, token)
    if not brings:
        assert response.status_code == 204
        return
    html = response.content.decode()
    assert pieces(html) >= brings
    assert pieces(html) - brings <= {"health"}, "running sessions are followed, or not"


def test_an_event_of_the_24th_hour_leaves_the_figures_with_the_next_hour_and_ages_are_sent_once_a_minute(
    signed_in, still, monkeypatch
):
    hour = still.replace(minute=0, second=0)
    EventFactory(created_at=hour - timedelta(hours=23), session=None, level="critical")
    EventFactory(created_at=hour - timedelta(hours=23, seconds=1), session=None, level="critical")
    monkeypatch.setattr(timezone, "now", lambda: hour + timedelta(minutes=59, seconds=20))
    html = front(signed_in)
    assert "1 critical, 0 warning in 24" in " ".join(html.split())
    monkeypatch.setattr(timezone, "now", lambda: hour + timedelta(minutes=59, seconds=59))
    assert poll(signed_in, seen(html)).status_code == 204
    monkeypatch.setattr(timezone, "now", lambda: hour + timedelta(hours=1))
    answer = poll(signed_in, seen(html)).content.decode()
    assert "0 critical, 0 warning in 24" in " ".join(answer.split())
    monkeypatch.setattr(timezone, "now", lambda: hour + timedelta(hours=1, seconds=59))
    assert poll(signed_in, seen(answer)).status_code == 204
    monkeypatch.setattr(timezone, "now", lambda: hour + timedelta(hours=1, seconds=60))
    assert poll(signed_in, seen(answer)).status_code == 200


def test_a_fragment_asked_for_without_a_word_of_what_is_shown_is_all_of_it(signed_in, still):
    EventFactory()
    response = signed_in.get(FRAGMENT, headers=HTMX)
    assert (response["HX-Retarget"], response["HX-Reswap"]) == ("#overview", "outerHTML")
    whole, again = (CSRF.sub("", " ".join(html.split())) for html in (response.content.decode(), front(signed_in)))
    assert whole in again
    for nonsense in ("x", "-" * 8, "%00", "a-b-c-d-e-f-g-h", "9" * 5000):
        assert poll(signed_in, nonsense).status_code == 200
