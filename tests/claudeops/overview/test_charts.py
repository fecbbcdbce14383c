"""The overview's charts: the range is in the address, every number is a link to a list of exactly so many."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.core.cache import cache
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.features.overview import changes, charts
from claudeops.lib import periods
from memories.models import MemoryChange
from memories.queries.filters import MemoryChangeFilterSet
from sessions_app.models import Session, Status, Trigger
from sessions_app.queries.filters import EventFilterSet, SessionFilterSet
from tests.sessions_app.people import HTMX, person
from tests.support.factories import EventFactory, MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db
FILTERS = {"/sessions": SessionFilterSet, "/events": EventFilterSet, "/memories/changes": MemoryChangeFilterSet}
NOW = datetime(2026, 11, 18, 8, 42, tzinfo=UTC)


@pytest.fixture
def now(monkeypatch):
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    return NOW


@pytest.fixture
def signed_in(client, db):
    client.force_login(person("operator"))
    return client


@pytest.fixture
def history(now):
    """Sessions and events of 100 days, each an hour and a half after the one before at first, then further apart."""
    statuses = [Status.COMPLETED, Status.FAILED, Status.ESCALATED, Status.TIMED_OUT, Status.STOPPED, Status.LOST]
    for n in range(40):
        at = now - timedelta(hours=1.5) * n * (1 + n)
        SessionFactory(status=statuses[n % 6], ended_at=at, queued_at=at, cost_usd=Decimal("0.25"))
        EventFactory(session=None, level=["info", "warning", "critical"][n % 3], created_at=at)
    SessionFactory(status=Status.RUNNING, started_at=now, cost_usd=Decimal("0.5"))
    SessionFactory(status=Status.COMPLETED, trigger=Trigger.IMPORT, ended_at=now, cost_usd=9)


def piece(client, range_name=""):
    html = client.get("/" + (f"?range={range_name}" if range_name else "")).content.decode()
    return html[html.index('<div id="piece-charts">') : html.index('<div id="piece-agents">')]


def listed(client, url, *, opened=True):
    """How many rows the list at `url` has; the page is `opened`, too."""
    path, _, query = url.partition("?")
    given, filters = QueryDict(query), FILTERS[path]
    assert not opened or client.get(url).status_code == 200
    found = filters(given)
    assert found.is_valid(), found.errors
    return found.qs.count()


@pytest.mark.parametrize("name", periods.RANGES)
def test_each_number_leads_to_a_list_of_exactly_so_many(signed_in, history, name):
    html = piece(signed_in, name)
    for page in ("sessions", "events"):
        figure = re.search(rf'id="chart-{page}-all" href="([^"]+)">([\d,]+)<', html)
        assert listed(signed_in, unescape(figure[1])) == int(figure[2]) > 0
        kinds = re.findall(rf'id="chart-{page}-\w+" href="([^"]+)">([\d,]+) \w+<', html)
        assert sum(int(number) for _, number in kinds) == int(figure[2])
        for url, number in kinds:
            assert listed(signed_in, unescape(url)) == int(number)
        bars = re.findall(rf'<a id="behind-{page}-\d+" href="([^"]+)">[^<]+</a></th>((?:\s*<td>[^<]+</td>)+)', html)
        assert bars
        for place, (url, cells) in enumerate(bars):
            assert listed(signed_in, unescape(url), opened=place == 0) == sum(
                map(int, re.findall(r"<td>(\d+)</td>", cells))
            )


@pytest.mark.parametrize("name", periods.RANGES)
def test_each_number_and_bar_of_the_memories_leads_to_a_list_of_exactly_so_many_changes(signed_in, now, name):
    kinds = ["created", "reinforced", "backed", "contradicted", "expired", "edited"]
    for n in range(48):
        MemoryChange.objects.create(kind=kinds[n % 6], at=now - timedelta(hours=1.5) * n * (1 + n % 40))
    for active in (False, True):  # only a decay that ends its memory lets it fade
        MemoryChange.objects.create(kind="decayed", at=now, after={"confidence": 0.2, "active": active})
    html = piece(signed_in, name)
    totals = re.findall(r'id="chart-changes-(\w+)" href="([^"]+)"><b>([\d,]+)<', html)
    assert [line for line, _, _ in totals] == list(charts.CHANGES)
    bars = re.findall(r'<a href="(/memories/changes[^"]+)" tabindex="-1"><title>[^<]+: (\d+) (\w+)<', html)
    for line, url, number in totals:
        assert listed(signed_in, unescape(url)) == int(number) > 0
        assert sum(int(part) for _, part, kind in bars if kind == line) == int(number)
    for place, (url, number, _) in enumerate(bars):
        assert listed(signed_in, unescape(url), opened=place == 0) == int(number)


def test_the_range_is_in_the_address_and_the_poll_asks_for_the_same(signed_in, now):
    for name, label in (("24h", "24 h"), ("90d", "90 d")):
        html = signed_in.get(f"/?range={name}").content.decode()
        assert re.search(rf'aria-current="true">{label}</a>', html)
        poll = unescape(re.search(r'hx-get="(/overview/fragment[^"]+)"', html)[1])
        assert ("range=90d" in poll) == (name == "90d")
        assert signed_in.get(poll, headers=HTMX).status_code == 204
        EventFactory(session=None, created_at=now)
        answer = signed_in.get(poll, headers=HTMX).content.decode()
        assert 'id="piece-charts"' in answer
        assert ("range=90d" in answer) == (name == "90d")
    assert b'aria-current="true">24 h</a>' in signed_in.get("/?range=nonsense").content


def test_what_failed_in_24_hours_is_the_same_number_everywhere(signed_in, history):
    html = signed_in.get("/").content.decode()
    [strip] = re.findall(r'id="figure-failed" href="([^"]+)"[^>]*>.*?<b>(\d+)', html, re.DOTALL)
    [legend] = re.findall(r'id="chart-sessions-failed" href="([^"]+)">(\d+)', html)
    assert unescape(strip[0]) == unescape(legend[0]) == "/sessions?status=went_wrong&ended=24h"
    assert strip[1] == legend[1] == str(listed(signed_in, unescape(strip[0])))


def test_the_numbers_are_there_as_json(signed_in, history):
    MemoryChange.objects.create(kind="created", at=NOW)
    MemoryChange.objects.create(kind="expired", at=NOW)
    MemoryChange.objects.create(kind="created", at=NOW - timedelta(hours=30))
    found = signed_in.get("/overview/charts.json?range=24h").json()
    assert (found["range"], found["since"], len(found["parts"])) == ("24h", "2026-11-17T09:00:00+00:00", 24)
    assert found["parts"][-1] == {
        "since": "2026-11-18T08:00:00+00:00",
        "until": "2026-11-18T09:00:00+00:00",
        "sessions": {"completed": 2},
        "paid_usd": "0.250000",
        "events": {"info": 1},
        "memories": {"faded": 1, "learned": 1},
    }
    assert found["memories_before"] == {"learned": 1, "confirmed": 0, "contradicted": 0, "faded": 0}
    assert found["today"]["spent_usd"] == "1.000000"  # two that have ended, and the one that runs
    assert signed_in.get("/overview/charts.json?range=1y").status_code == 400


def test_only_those_who_may_see_the_page_get_its_numbers(client, stranger):
    assert client.get("/overview/charts.json").status_code in (302, 403)
    client.force_login(stranger)
    assert client.get("/overview/charts.json").status_code == 403


def test_times_are_in_the_zone_of_the_person(signed_in, now):
    SessionFactory(ended_at=now)
    signed_in.cookies["zone"] = "Asia/Tokyo"
    assert "Wed 18 Nov, 17:00 to 18:00: 1 completed" in piece(signed_in)
    EventFactory(session=None, created_at=datetime(2026, 11, 17, 15, tzinfo=UTC))
    assert "Wed 18 Nov: 1 info" in piece(signed_in, "30d")


def test_a_shorter_day_before_is_compared_with_the_same_hours(now):
    for day in range(1, 5):
        for hour, cost in ((2, 1), (20, 2)):
            SessionFactory(ended_at=NOW - timedelta(days=day) + timedelta(hours=hour - 8), cost_usd=cost)
    SessionFactory(ended_at=NOW - timedelta(hours=2), cost_usd=3)
    found = charts.read(periods.RANGES["24h"], Decimal(3), NOW)
    assert found.expected.amount == pytest.approx(5)
    assert found.expected.basis == "median of the same hours of 4 days"


@pytest.mark.parametrize("name", periods.RANGES)
def test_a_range_is_read_in_the_same_few_queries_whatever_there_is(now, name):
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            charts.draw(charts.read(periods.RANGES[name], Decimal(0), NOW))
        return len(asked)

    few = queries()
    for n in range(30):
        SessionFactory(ended_at=NOW - timedelta(hours=n), status=Status.FAILED)
        EventFactory(session=None, created_at=NOW - timedelta(hours=n))
    assert Session.objects.count() == 30
    assert queries() == few <= 6


def test_charts_are_drawn_once_for_equal_numbers_and_never_shown_for_others(signed_in, history, settings):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "charts"}}
    cache.clear()

    def drawn() -> bool:
        return "overview/_charts.html" in [one.name for one in signed_in.get("/?range=90d").templates]

    def events() -> int:
        return int(re.search(r'id="chart-events-all" href="[^"]+">(\d+)<', piece(signed_in, "90d"))[1])

    assert drawn()
    assert not drawn()
    before = events()
    EventFactory(session=None, created_at=NOW)
    changes.forget()
    assert events() == before + 1
    MemoryFactory()
    changes.forget()
    assert re.search(r'id="chart-memories-all" href="[^"]+">1<', piece(signed_in, "90d"))
    signed_in.cookies["zone"] = "Asia/Tokyo"
    assert drawn()
    assert not drawn()
    cache.clear()
