"""The histogram above the list: it counts what the list shows, whatever is brushed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.models import Session, Status
from tests.sessions_app.people import HTMX, person
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 18, 8, 42, tzinfo=UTC)


@pytest.fixture(autouse=True)
def now(monkeypatch):
    monkeypatch.setattr(timezone, "now", lambda: NOW)


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


@pytest.fixture
def agent():
    agent = AgentFactory(slug="watch")
    for n in range(60):
        at = NOW - timedelta(minutes=35 * n * (1 + n // 20))
        status = [Status.COMPLETED, Status.FAILED, Status.TIMED_OUT, Status.STOPPED][n % 4]
        SessionFactory(agent=agent if n % 3 else None, status=status, ended_at=at, queued_at=at)
    SessionFactory(agent=agent, status=Status.RUNNING, queued_at=NOW)
    return agent


def shown(client, query=""):
    """(how many bars there are, {address of a bar that is not empty: its numbers})."""
    html = client.get(f"/sessions{query}").content.decode()
    rows = re.findall(r'<a id="behind-hours-\d+" href="([^"]+)">[^<]+</a></th>((?:\s*<td>[^<]+</td>)+)', html)
    found = {unescape(url): [int(cell) for cell in re.findall(r"<td>(\d+)</td>", cells)] for url, cells in rows}
    return html.count("data-span="), found


def listed(client, url):
    html = client.get(url).content.decode()
    return int(re.search(r'id="sessions-count">\s*([\d,]+) session', html)[1])


@pytest.mark.parametrize(
    ("query", "bars"),
    [
        ("", 24),
        ("?status=went_wrong", 24),
        ("?agent=watch", 24),
        ("?age=week&agent=watch&status=failed", 26),
        ("?age=month", 30),
    ],
)
def test_each_bar_leads_to_as_many_sessions_as_it_shows(viewer, agent, query, bars):
    number, found = shown(viewer, query)
    assert number == bars
    assert found
    for url, numbers in found.items():
        assert listed(viewer, url) == sum(numbers), url
        for part in query.lstrip("?").split("&"):
            assert part in url


def test_what_is_brushed_changes_no_bar_and_is_marked(viewer, agent):
    everything = shown(viewer, "?agent=watch")[1]
    span = "2026-11-18T02:00Z..2026-11-18T05:00Z"
    number, found = shown(viewer, f"?agent=watch&ended={span}")
    assert (number, found) == (24, everything)
    html = viewer.get(f"/sessions?agent=watch&ended={span}").content.decode()
    assert '<rect class="brushed" x="272.0" width="48.0"' in html
    within = [sum(numbers) for url, numbers in everything.items() if re.search(r"-18T0[234]:00Z\.\.", url)]
    assert listed(viewer, f"/sessions?agent=watch&ended={span}") == sum(within) > 0


def test_its_range_is_the_shortest_in_which_the_selection_begins(viewer):
    for since, bars in (
        ("2026-11-17T10:00Z", 24),
        ("2026-11-16T10:00Z", 26),
        ("2026-10-30T10:00Z", 30),
        ("2026-09-01", 90),
    ):
        assert shown(viewer, f"?ended={since}..")[0] == bars


def test_there_is_none_above_sessions_that_have_not_ended(viewer, agent):
    for query in ("?status=running", "?status=unfinished", "?status=nonsense", "?ended=nonsense"):
        assert 'id="hours"' not in viewer.get(f"/sessions{query}").content.decode()


def test_its_poll_brings_it_again_when_it_has_changed(viewer, agent):
    html = viewer.get("/sessions?status=failed").content.decode()
    poll = unescape(re.search(r'hx-get="(/sessions/hours[^"]+)"', html)[1])
    assert viewer.get(poll, headers=HTMX).status_code == 204
    Session.objects.filter(status=Status.RUNNING).update(status=Status.FAILED, ended_at=NOW)
    answer = viewer.get(poll, headers=HTMX)
    assert answer.status_code == 200
    again = unescape(re.search(r'hx-get="(/sessions/hours[^"]+)"', answer.content.decode())[1])
    assert again != poll
    assert "/sessions?status=failed&amp;ended=" in answer.content.decode()
    assert viewer.get(again, headers=HTMX).status_code == 204


def test_it_asks_once_however_many_there_are(viewer, agent):
    def asked(query: str) -> int:
        with CaptureQueriesContext(connection) as found:
            viewer.get(f"/sessions/hours{query}", headers=HTMX)
        return len(found)

    few = [asked(query) for query in ("", "?agent=watch")]
    SessionFactory.create_batch(20, agent=agent, status=Status.FAILED, ended_at=NOW)
    assert [asked(query) for query in ("", "?agent=watch")] == few
    assert few[0] <= 4


def test_only_those_who_may_see_sessions_get_it(client, stranger):
    client.force_login(stranger)
    assert client.get("/sessions/hours").status_code == 403
