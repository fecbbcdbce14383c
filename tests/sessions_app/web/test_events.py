"""`/events`: who sees it, what it shows, how it is narrowed, paged and exported, what a poll brings."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.models import Event
from tests.sessions_app.people import HTMX, person
from tests.support.factories import AgentFactory, EventFactory, SessionFactory

pytestmark = pytest.mark.django_db

LIST = "/events"
ROWS = "/events/rows"


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


def html_of(client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


def listed(client, query: str = "") -> list[int]:
    return [int(pk) for pk in re.findall(r'<tr id="event-(\d+)" data-row', html_of(client, LIST + query))]


def polling(html: str) -> str | None:
    found = re.search(r'id="events-poll" hidden hx-get="([^"]+)"', html)
    return found and found[1].replace("&amp;", "&")


def to(html: str, rel: str) -> str | None:
    found = re.search(rf'href="([^"]+)" rel="{rel}"', html)
    return found and unescape(found[1])


# -- who ---------------------------------------------------------------------------------------------------------


# -- the list ----------------------------------------------------------------------------------------------------


def test_a_row_shows_level_service_message_and_leads_to_its_session(viewer):
    session = SessionFactory(agent=AgentFactory(slug="watch"))
    at = timezone.now() - timedelta(hours=3)
    EventFactory(
        level="critical", service="jellyfin", message="Does <b>not</b> answer.", session=session, created_at=at
    )
    EventFactory(service=None, session=None)
    html = html_of(viewer, LIST)
    for text in ('aria-label="critical"', "jellyfin", "Does &lt;b&gt;not&lt;/b&gt; answer.", ">3 hours ago</time>"):
        assert text in html
    title = 'title="Does &lt;b&gt;not&lt;/b&gt; answer."'
    assert f'href="/sessions/{session.pk}" {title} data-open>Does &lt;b&gt;not' in html
    assert f'<td class="cell-session is-number">#{session.pk}</td>' in html
    assert '<td class="cell-agent">watch</td>' in html
    assert '<td class="cell-service">general</td>' in html
    assert "2 events</p>" in html


def test_without_events_it_says_where_they_come_from(viewer):
    html = html_of(viewer, LIST)
    assert "No events yet." in html
    assert '<a href="/sessions">the sessions</a>' in html


def test_when_nothing_matches_it_leads_back_to_all_events(viewer):
    EventFactory()
    assert 'No event matches. <a href="/events">Show all events</a>' in html_of(viewer, f"{LIST}?service=caddy")


# -- filters -----------------------------------------------------------------------------------------------------


def test_each_filter_narrows_the_list_and_stays_in_the_form(viewer):
    old = timezone.now() - timedelta(days=3)
    wanted = EventFactory(level="warning", service="jellyfin", created_at=old)
    other = EventFactory(level="info", service=None)
    day = f"{timezone.now() - timedelta(days=2):%Y-%m-%dT%H:%M}"
    assert listed(viewer, "?level=warning") == [wanted.pk]
    assert listed(viewer, "?service=jellyfin") == [wanted.pk]
    assert listed(viewer, "?service=general") == [other.pk]
    assert listed(viewer, f"?session={wanted.session_id}") == [wanted.pk]
    assert listed(viewer, "?age=day") == [other.pk]
    assert listed(viewer, "?age=week") == [other.pk, wanted.pk]
    assert listed(viewer, f"?until={day}") == [wanted.pk]
    assert listed(viewer, f"?since={day}") == [other.pk]
    assert listed(viewer, "?level=warning&service=general") == []
    assert listed(viewer, "?level=&service=&since=") == [other.pk, wanted.pk]
    for query in ("level=warning", "service=jellyfin", "service=general", "age=day"):
        assert f'<option value="{query.split("=")[1]}" selected>' in html_of(viewer, f"{LIST}?{query}"), query


def test_the_services_that_have_events_are_offered_and_any_other_can_be_asked_for(viewer):
    EventFactory(service="jellyfin")
    html = html_of(viewer, f"{LIST}?service=caddy")
    for name in ("jellyfin", "general"):
        assert f'<option value="{name}">{name}</option>' in html
    assert '<option value="caddy" selected>caddy</option>' in html


@pytest.mark.parametrize(
    "query", ["level=odd", "session=x", "session=99999999999999999999", "age=odd", "since=soon", "service=%00"]
)
def test_a_value_that_cannot_be_read_is_said_at_its_field_and_shows_no_rows(viewer, query):
    EventFactory()
    html = html_of(viewer, f"{LIST}?{query}")
    assert 'class="errorlist"' in html
    assert "<tr id=" not in html
    assert polling(html) is None
    assert viewer.get(f"{ROWS}?{query}", headers=HTMX).status_code == 400


# -- pages -------------------------------------------------------------------------------------------------------


# -- what all lists share ------------------------------------------------------------------------------------------


def test_the_views_have_their_counts_and_one_is_the_current_one(viewer):
    for level in ("critical", "warning", "warning", "info"):
        EventFactory(level=level)
    html = html_of(viewer, f"{LIST}?level=warning")
    assert '<a href="/events">All <b>4</b></a>' in html
    assert '<a href="/events?level=critical">Critical <b>1</b></a>' in html
    assert '<a href="/events?level=warning" aria-current="true">Warning <b>2</b></a>' in html


def test_the_text_of_the_bar_becomes_filters_and_words(viewer):
    response = viewer.get(LIST, {"q": "level:warning service:caddy very slow"})
    assert (response.status_code, response["Location"]) == (302, "/events?level=warning&service=caddy&text=very+slow")
    html = html_of(viewer, f"{LIST}?level=warning&service=caddy")
    assert 'href="/events?service=caddy" aria-label="Remove the filter level"' in html
    EventFactory()
    html = html_of(viewer, f"{LIST}?q=levle:warning")
    assert "There is no filter levle:. Did you mean level:?" in html
    assert "<tr id=" not in html


def test_words_are_found_in_the_message_of_the_newest_events_and_the_page_says_so(viewer, monkeypatch):
    at = timezone.now()
    ages = {"The disk is slow.": 4, "Slow, the disk.": 3, "A slow network.": 2, "All quiet.": 1}
    found = {text: EventFactory(message=text, created_at=at - timedelta(hours=age)) for text, age in ages.items()}
    both = [found["Slow, the disk."].pk, found["The disk is slow."].pk]
    assert listed(viewer, "?text=disk+SLOW") == both
    monkeypatch.setattr("sessions_app.queries.filters.SEARCHED", 3)
    assert listed(viewer, "?text=disk+slow") == both[:1]
    assert listed(viewer, f"?text=disk+slow&until={at - timedelta(hours=2.5):%Y-%m-%dT%H:%M:%S}") == both
    assert "1 event that matches among the newest 10,000 that the other" in html_of(viewer, f"{LIST}?text=network")


def test_columns_and_size_are_chosen_and_the_poll_keeps_them(viewer):
    old = EventFactory.create_batch(30)
    given = {"column": ["service", "when"], "size": "25", "query": "level=info"}
    assert viewer.post("/lists/events/columns", given)["Location"] == "/events?level=info"
    html = html_of(viewer, LIST)
    assert "cell-service" in html
    assert "cell-agent" not in html
    assert len(listed(viewer)) == 25
    new = EventFactory()
    news = html_of(viewer, polling(html), **HTMX)
    assert f'id="event-{new.pk}"' in news
    assert "cell-agent" not in news
    assert f'<tr id="event-{old[5].pk}" hx-swap-oob="delete">' in news


# -- polling -----------------------------------------------------------------------------------------------------


def test_a_poll_brings_nothing_while_nothing_was_written_and_looks_at_events_once(viewer):
    EventFactory.create_batch(3)
    address = polling(html_of(viewer, LIST))
    with CaptureQueriesContext(connection) as queries:
        response = viewer.get(address, headers=HTMX)
    assert (response.status_code, response.content) == (204, b"")
    assert len([query for query in queries if "FROM events" in query["sql"]]) == 1


def test_the_page_does_not_grow_while_it_is_open(viewer):
    events = EventFactory.create_batch(50)
    address = polling(html_of(viewer, LIST))
    EventFactory()
    html = html_of(viewer, address, **HTMX)
    assert f'<tr id="event-{events[0].pk}" hx-swap-oob="delete">' in html


def test_a_row_that_another_writer_finished_late_is_not_lost(viewer):
    first, late, last = EventFactory.create_batch(3)
    address = polling(html_of(viewer, LIST)).replace(f"-{late.pk}-", "-")  # it had not been there yet
    assert f"-{late.pk}-" not in address
    EventFactory()
    assert f'afterend:#event-{last.pk}"><tr id="event-{late.pk}"' in html_of(viewer, address, **HTMX)
    assert f'<tr id="event-{first.pk}"' not in html_of(viewer, address, **HTMX)


def test_a_poll_keeps_the_filters(viewer):
    EventFactory(level="warning")
    address = polling(html_of(viewer, f"{LIST}?level=warning"))
    info = EventFactory(level="info")
    html = html_of(viewer, address, **HTMX)
    assert f'id="event-{info.pk}"' not in html
    assert viewer.get(polling(html), headers=HTMX).status_code == 204
    EventFactory(level="warning")
    assert "2 events that match" in html_of(viewer, address, **HTMX)


def test_new_rows_are_held_back_when_asked_and_the_button_brings_them(viewer):
    old = EventFactory.create_batch(50)
    address = polling(html_of(viewer, LIST + "?level=info"))
    new = EventFactory.create_batch(2)
    html = html_of(viewer, f"{address}&hold=1", **HTMX)
    assert "<tr" not in html  # none is inserted, and none of those pushed off leaves
    assert "2 new</button>" in html
    assert viewer.get(f"{polling(html)}&hold=1", headers=HTMX).status_code == 204
    Event.objects.filter(pk=old[0].pk).delete()
    EventFactory()
    html = html_of(viewer, f"{polling(html)}&hold=1", **HTMX)
    assert "3 new</button>" in html
    assert f'<tr id="event-{old[0].pk}" hx-swap-oob="delete">' in html
    button = unescape(re.search(r'id="events-held-show" hx-get="([^"]+)"', html)[1])
    assert "level=info" in button
    html = html_of(viewer, button, **HTMX)
    assert all(f'<tr id="event-{event.pk}" data-row' in html for event in new)
    assert "</button>" not in html
