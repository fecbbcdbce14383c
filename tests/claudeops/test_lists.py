"""What each list has from `ListView`: who sees it, orders and pages, the bar, exports, the poll where it has one."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from claudeops import urls
from claudeops.lib.list_view import view as list_views
from claudeops.lib.list_view.keyset import ordered
from claudeops.lib.list_view.view import LISTS, ListView
from memories.lifecycle import verbs
from memories.models import Decision, JournalEntry, JournalFile, MemoryChange, Project, TelemetryRecord
from tests.sessions_app.people import HTMX, person
from tests.support.factories import EventFactory, MemoryFactory, ProjectFactory, SessionFactory, TranscriptFactory

pytestmark = pytest.mark.django_db


def a_memory(n: int, at: datetime) -> Any:
    """A poll of memories is told by their changes."""
    made = MemoryFactory(updated_at=at, confidence=(0.3, 0.9)[n % 2], service=(None, "caddy", "nas")[n % 3])
    verbs.mark_persistent(made, by="ann")
    return made


def a_record(n: int, at: datetime) -> Any:
    return TelemetryRecord.objects.create(action="memory.gate.completed", component="observe", source="x", at=at)


def a_journal_entry(n: int, at: datetime) -> Any:
    file, _ = JournalFile.objects.get_or_create(host="vm", month="2026-11")
    words = {"action": "note", "tool": "suite", "detail": f"Entry {n}"}
    return JournalEntry.objects.create(file=file, line=n + 1, uid=str(uuid4()), at=at, **words)


def a_decision(n: int, at: datetime) -> Any:
    return Decision.objects.create(
        project=Project.objects.first() or ProjectFactory(),
        folder="adr",
        name=f"{uuid4()}.md",
        number=n // 2,
        title="X",
    )


MAKE: dict[str, Callable[[int, datetime], Any]] = {
    "memories": a_memory,
    "memory-changes": lambda n, at: MemoryChange.objects.create(memory=MemoryFactory(), kind="created", at=at),
    "telemetry": a_record,
    "transcripts": lambda n, at: TranscriptFactory(seen_at=at),
    "decision-records": a_decision,
    "journal": a_journal_entry,
    "sessions": lambda n, at: SessionFactory(queued_at=at, cost_usd=n % 7, duration_ms=n % 5 * 1000),
    "events": lambda n, at: EventFactory(created_at=at),
}
"""Make the `n`th row of each list, as of that time. Values repeat, so that ties matter."""

assert urls.urlpatterns  # whose modules declare the lists
POLLED = ["memories", "sessions", "events"]


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(list_views, "SIZE", 3)


def make(name: str, number: int) -> list[Any]:
    """Rows of a list, two of each time, the first ones the latest."""
    now = timezone.now()
    return [MAKE[name](n, now - timedelta(hours=n // 2)) for n in range(number)]


def html_of(client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


def listed(html: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'<tr id="[a-z]+-(\d+)" data-row', html)]


def linked(html: str, rel: str) -> str:
    return unescape(re.search(rf'href="([^"]+)" rel="{rel}"', html)[1])


def polling(name: str, html: str) -> str:
    return unescape(re.search(rf'id="{name}-poll" hidden hx-get="([^"]+)"', html)[1])


def test_each_list_is_tested_here():
    assert LISTS.keys() == MAKE.keys()
    assert {name for name, page in LISTS.items() if page.polled} == set(POLLED)


# -- who ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKE)
def test_the_list_is_for_those_who_may_see_it(client, django_user_model, name):
    addresses = [reverse(name), *([reverse(f"{name}-rows")] if LISTS[name].polled else [])]
    assert client.get(addresses[0])["Location"] == f"/login?next={addresses[0]}"
    assert client.get(addresses[-1], headers=HTMX).status_code == 403
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    assert [client.get(address).status_code for address in addresses] == [403] * len(addresses)
    assert client.get(f"{addresses[0]}?format=csv").status_code == 403


@pytest.mark.parametrize("name", MAKE)
def test_nothing_is_sent_to_it_but_what_it_takes(viewer, name):
    taken = {405} | ({403} if hasattr(LISTS[name], "post") else set())
    assert viewer.post(reverse(name)).status_code in taken
    for method in ("put", "delete", "options"):
        assert getattr(viewer, method)(reverse(name)).status_code == 405
    if LISTS[name].polled:
        assert viewer.post(reverse(f"{name}-rows")).status_code == 405


# -- orders and pages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, page in LISTS.items() for key in page.sorts])
def test_every_order_is_complete_over_its_pages_there_and_back(viewer, small_pages, name, key):
    make(name, 8)
    page: type[ListView] = LISTS[name]
    wanted = [row.pk for row in ordered(page.model.objects.all(), page.sorts[key])]
    html = html_of(viewer, f"{reverse(name)}?sort={key}")
    pages = [listed(html)]
    while 'rel="next"' in html:
        html = html_of(viewer, reverse(name) + linked(html, "next"))
        pages.append(listed(html))
    assert [pk for shown in pages for pk in shown] == wanted
    assert {len(shown) for shown in pages[:-1]} == {3}
    html = html_of(viewer, reverse(name) + linked(html, "prev"))
    assert listed(html) == pages[-2]


@pytest.mark.parametrize("name", MAKE)
def test_an_order_or_a_place_that_is_none_is_the_beginning(viewer, name):
    make(name, 2)
    wanted = listed(html_of(viewer, reverse(name)))
    for query in (
        "sort=no",
        "after=x",
        "before=999999",
        "after=~",
        "after=2026-01-01T00:00~1",
        "after=NaN~1",
        "after=",
    ):
        assert listed(html_of(viewer, f"{reverse(name)}?{query}")) == wanted, query


@pytest.mark.parametrize("name", MAKE)
def test_the_number_of_queries_does_not_depend_on_the_number_of_rows(viewer, name):
    def queries() -> list[int]:
        counts = []
        for address in (reverse(name), *([f"{reverse(f'{name}-rows')}?seen=1~~1.a"] if LISTS[name].polled else [])):
            with CaptureQueriesContext(connection) as asked:
                html_of(viewer, address)
            counts.append(len(asked))
        return counts

    make(name, 5)
    queries()
    few = queries()
    make(name, 10)
    assert queries() == few
    assert max(few) <= 29


# -- the bar and exports -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKE)
def test_typed_text_becomes_an_address_and_what_is_no_filter_is_named(viewer, name):
    make(name, 2)
    response = viewer.get(reverse(name), {"q": "slow disk"})
    assert (response.status_code, response["Location"]) == (302, f"{reverse(name)}?text=slow+disk")
    html = html_of(viewer, f"{reverse(name)}?q=txet:disk+slow")
    assert "There is no filter txet:. Did you mean text:?" in html
    assert 'value="txet:disk slow"' in html
    assert listed(html) == []
    assert "The filter has errors; see above." in html
    assert f'id="{name}-poll" hidden hx-get' not in html


@pytest.mark.parametrize("name", MAKE)
def test_an_export_has_the_shown_columns_and_all_rows_in_the_order_of_the_list(viewer, small_pages, name):
    make(name, 5)
    columns = ["id", *(one.name for one in LISTS[name].columns if one.fixed or one.shown)]
    pages, html = [], html_of(viewer, reverse(name))
    pages += listed(html)
    while 'rel="next"' in html:
        html = html_of(viewer, reverse(name) + linked(html, "next"))
        pages += listed(html)
    head, *rows = csv.reader(io.StringIO(viewer.get(f"{reverse(name)}?format=csv").getvalue().decode()))
    assert head == columns
    assert [int(row[0]) for row in rows] == pages
    found = json.loads(viewer.get(f"{reverse(name)}?format=json").getvalue())
    assert [row["id"] for row in found] == pages
    assert all(list(row) == columns for row in found)


# -- the poll --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLLED)
def test_a_poll_brings_nothing_while_nothing_changed_and_everything_for_a_token_that_is_none(viewer, name):
    rows = make(name, 3)
    address = polling(name, html_of(viewer, reverse(name)))
    for _ in range(2):
        response = viewer.get(address, headers=HTMX)
        assert (response.status_code, response.content) == (204, b"")
    html = html_of(viewer, f"{reverse(f'{name}-rows')}?seen=garbage-%F0%9F%92%A9.x-.", **HTMX)
    assert set(listed(html)) == {row.pk for row in rows}


@pytest.mark.parametrize("name", POLLED)
def test_a_poll_brings_new_rows_to_their_place_and_takes_those_that_are_gone(viewer, name):
    one, now = LISTS[name].one, timezone.now()
    old, gone = (MAKE[name](n, now - timedelta(hours=1 + n)) for n in range(2))
    address = polling(name, html_of(viewer, reverse(name)))
    late, new = MAKE[name](2, now - timedelta(hours=3)), MAKE[name](3, now)
    gone_pk = gone.pk
    verbs.delete(gone, by="ann") if name == "memories" else gone.delete()
    html = html_of(viewer, address, **HTMX)
    assert re.search(rf'<tbody hx-swap-oob="afterbegin:#{one}-rows"><tr id="{one}-{new.pk}"', html)
    assert re.search(rf'<tbody hx-swap-oob="afterend:#{one}-{old.pk}"><tr id="{one}-{late.pk}"', html)
    assert f'<tr id="{one}-{gone_pk}" hx-swap-oob="delete">' in html
    assert set(listed(html)) == {late.pk, new.pk}
    assert "3 " in html[html.index(f'id="{name}-count"') :]
    assert viewer.get(polling(name, html), headers=HTMX).status_code == 204


@pytest.mark.parametrize("name", POLLED)
def test_the_first_row_takes_the_place_of_the_empty_list(viewer, name):
    address = polling(name, html_of(viewer, reverse(name)))
    assert viewer.get(address, headers=HTMX).status_code == 204
    make(name, 1)
    response = viewer.get(address, headers=HTMX)
    assert (response["HX-Retarget"], response["HX-Reswap"]) == (f"#{name}", "outerHTML")
    html = response.content.decode().lstrip()
    assert html.startswith("<section")
    assert f'id="{LISTS[name].one}-rows"' in html


@pytest.mark.parametrize("name", POLLED)
def test_new_rows_are_held_back_when_asked_and_the_button_brings_them(viewer, small_pages, name):
    rows = make(name, 3)
    address = polling(name, html_of(viewer, f"{reverse(name)}?sort={LISTS[name].first}"))
    new = MAKE[name](9, timezone.now())
    html = html_of(viewer, f"{address}&hold=1", **HTMX)
    assert "1 new</button>" in html
    assert new.pk not in listed(html)
    assert 'hx-swap-oob="delete"' not in html  # what is pushed off stays
    assert viewer.get(f"{polling(name, html)}&hold=1", headers=HTMX).status_code == 204
    button = unescape(re.search(rf'id="{name}-held-show" hx-get="([^"]+)"', html)[1])
    assert f"sort={LISTS[name].first}" in button
    html = html_of(viewer, button, **HTMX)
    assert listed(html) == [new.pk]
    assert "</button></div>" not in html
    is_left = f'<tr id="{LISTS[name].one}-{rows[-1].pk}" hx-swap-oob="delete">' in html
    assert is_left is not LISTS[name].keeps_rows
