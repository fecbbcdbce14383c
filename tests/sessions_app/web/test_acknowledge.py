"""Events are open until a person acknowledges them: on the row, in bulk, on the session's page; undone, reopened."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.utils import timezone

from sessions_app.events import acknowledgement
from sessions_app.models import Event
from tests.sessions_app.people import HTMX, person
from tests.support.factories import EventFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client):
    client.force_login(person("operator"))
    return client


def opened() -> set[int]:
    return {event.pk for event in Event.objects.all() if event.is_open}


def test_a_warning_is_acknowledged_once_and_information_needs_nobody():
    one, info = EventFactory(level="warning"), EventFactory(level="info")
    at = timezone.now()
    assert acknowledgement.acknowledge(Event.objects.all(), by="anna", at=at) == 1
    assert acknowledgement.acknowledge(Event.objects.all(), by="bert", at=at + timedelta(seconds=1)) == 0
    one.refresh_from_db()
    info.refresh_from_db()
    assert (one.acknowledged_by, one.acknowledged_at, info.acknowledged_at) == ("anna", at, None)


def test_a_row_is_acknowledged_with_an_undo_that_takes_back_that_alone(operator):
    before, one = EventFactory(level="critical"), EventFactory(level="critical")
    acknowledgement.acknowledge(Event.objects.filter(pk=before.pk), by="anna", at=timezone.now())
    answer = operator.post("/events/acknowledge", {"id": one.pk}, headers=HTMX)
    assert "1 event is acknowledged." in answer.content.decode()
    assert opened() == set()
    undo = unescape(re.search(r'"(/events/undo/[^"]+)"', answer.content.decode())[1])
    assert "1 event is open again." in operator.post(undo, headers=HTMX).content.decode()
    assert opened() == {one.pk}
    assert "They were changed since." in operator.post(undo, headers=HTMX).content.decode()
    operator.post("/events/reopen", {"id": before.pk})
    assert opened() == {before.pk, one.pk}


def test_all_that_match_are_those_that_the_page_has_shown(operator):
    shown = EventFactory.create_batch(3, level="warning")
    html = operator.get("/events?level=warning").content.decode()
    address = unescape(re.search(r'action="(/events/bulk/[^"]+)"', html)[1])
    new, other = EventFactory(level="warning"), EventFactory(level="critical")
    answer = operator.post(address, {"action": "acknowledge", "all_matching": "1"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/events?level=warning")
    assert opened() == {new.pk, other.pk}
    operator.post("/events/bulk/0", {"action": "reopen", "id": [event.pk for event in shown]})
    assert len(opened()) == 5


def test_an_open_page_is_told_what_was_acknowledged_and_what_was_opened_again(operator):
    one, other = EventFactory(level="critical"), EventFactory(level="critical")
    for verb, word in (("acknowledge", "Reopen"), ("reopen", "Acknowledge")):
        html = operator.get("/events").content.decode()
        poll = unescape(re.search(r'id="events-poll" hidden hx-get="([^"]+)"', html)[1])
        assert operator.get(poll, headers=HTMX).status_code == 204
        operator.post(f"/events/{verb}", {"id": one.pk})
        answer = operator.get(poll, headers=HTMX).content.decode()
        assert f'<tr id="event-{one.pk}" data-row="{one.pk}" hx-swap-oob="true">' in answer
        assert f"{word} event {one.pk}" in answer
        assert f'id="event-{other.pk}"' not in answer


def test_the_strip_counts_open_critical_events_of_any_age_and_leads_to_them(operator):
    EventFactory(level="critical", created_at=timezone.now() - timedelta(days=40))
    known = EventFactory(level="critical")
    acknowledgement.acknowledge(Event.objects.filter(pk=known.pk), by="anna", at=timezone.now())
    html = operator.get("/").content.decode()
    [url, number] = re.search(r'id="figure-critical" href="([^"]+)".*?<b>(\d+)', html, re.DOTALL).groups()
    listed = operator.get(unescape(url)).content.decode()
    assert int(number) == len(re.findall(r'<tr id="event-', listed)) == 1


def test_the_session_of_an_event_offers_it_and_leads_back_there(operator):
    event = EventFactory(level="critical")
    html = operator.get(f"/sessions/{event.session_id}?tab=events").content.decode()
    assert f"Acknowledge event {event.pk}" in html
    answer = operator.post("/events/acknowledge", {"id": event.pk, "session": event.session_id})
    assert answer.headers["Location"] == f"/sessions/{event.session_id}?tab=events"
    assert "acknowledged by" in operator.get(answer.headers["Location"]).content.decode()


def test_a_viewer_is_offered_nothing_and_refused(client):
    event = EventFactory(level="critical")
    client.force_login(person("viewer"))
    assert "Acknowledge event" not in client.get("/events").content.decode()
    for address in (
        "/events/acknowledge",
        "/events/reopen",
        "/events/bulk/9",
        "/events/undo/2026-11-24T08:00:00+00:00",
    ):
        assert client.post(address, {"id": event.pk, "action": "acknowledge"}).status_code == 403
    assert opened() == {event.pk}


def test_what_cannot_be_read_changes_nothing(operator):
    event = EventFactory(level="critical")
    assert operator.post("/events/bulk/9", {"id": event.pk, "action": "delete"}).status_code == 400
    assert operator.post("/events/undo/yesterday").status_code == 400
    assert opened() == {event.pk}


def test_open_critical_events_are_counted_by_an_index_of_their_own():
    rows = Event.objects.filter(acknowledgement.OPEN, level="critical").order_by()
    if connection.vendor == "sqlite":
        assert "events_open_of_level" in rows.explain()
