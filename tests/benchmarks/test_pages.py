"""How long the server takes for each page of the dashboard and for what an open page asks for every few seconds.

A signed-in operator, through all of the middleware, into the real templates; DEBUG is off, and the connection to the
database is kept open, as a worker of the web server keeps it. The browser's part and the network are not in it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from html import unescape
from statistics import median
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories.models import Memory
from sessions_app.models import Event, Session
from tests.benchmarks import house as houses
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms
from tests.benchmarks.rows import House

pytestmark = pytest.mark.django_db(transaction=True)

PAGE_AIM, POLL_AIM = 50, 5  # milliseconds
BY_HTMX = {"HX-Request": "true"}

PAGES = {
    "overview": ["/", "/?range=7d", "/?range=30d", "/?range=90d", "/overview/charts.json?range=90d"],
    "sessions": [
        *("", "?status=went_wrong", "?status=unfinished", "?agent=agent-3", "?tier=3", "?trigger=import"),
        *("?project=project-1", "?agent=agent-3&status=failed", "?tier=2&trigger=alert&status=lost"),
        *("?ended=24h", "?ended=24h&status=went_wrong", "?ended=90d&agent=agent-3"),
    ],
    "events": [
        *("", "?level=critical", "?service=service-07", "?service=general", "?level=critical&service=service-07"),
        *("?age=hour", "?age=week", "?age=week&level=warning", "?session={session}", "?during=24h&level=critical"),
        *("?text=answer", "?text=found+nowhere", "?text=found+nowhere&level=critical&age=week"),
    ],
    "memories": [
        *("", "?sort=updated", "?sort=-confidence", "?sort=confidence", "?sort=service", "?sort=-service"),
        *("?status=held", "?status=inactive", "?status=active", "?service=service-07", "?service=general"),
        *("?category=timing", "?service=service-07&category=timing&sort=-confidence", "?source=human"),
        *("?confidence_min=0.9", "?confidence_max=0.5", "?confidence_min=0.75&sort=-confidence", "?taxonomy=ops"),
        *("?text=restart", "?text=docifux", "?text=found+nowhere", "?project=project-2", "?session={session}"),
    ],
    "cooldowns": ["", "?service=service-07"],
}
"""The addresses of each list that are timed."""


@pytest.fixture(scope="module")
def runs(smoke: bool) -> int:
    return int(os.environ.get("BENCH_RUNS", "1" if smoke else "40"))


@pytest.fixture(autouse=True)
def cached(settings: Any) -> None:
    """The cache of production: the settings of the suite have none."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}


@pytest.fixture
def house(transactional_db: None, sizes: list[int]) -> Iterator[House]:
    with houses.standing(sizes[-1]) as found:
        yield found


@pytest.fixture
def client(house: House) -> Client:
    client = Client()
    client.force_login(houses.people())
    return client


class Rows:
    """The lines of a table: each address asked for so often, how long it took, how many queries and bytes it was."""

    columns = ("address", "queries", "KB", "median ms", "p95 ms", "aim ms", "least ms", "own CPU ms")

    def __init__(self, client: Client, runs: int, aim: int) -> None:
        self.client, self.runs, self.aim = client, runs, aim
        self.lines: list[tuple[str, ...]] = []

    def time(
        self, name: str, url: str, *, status: int = 200, allowed: int = 0, headers: dict[str, str] | None = None
    ) -> None:
        def ask() -> bytes:
            answer = self.client.get(url, headers=headers)
            assert answer.status_code in (status, allowed), f"{url} answered {answer.status_code}"
            return answer.content

        ask()  # the first one loads templates
        with CaptureQueriesContext(connection) as asked:
            content = ask()
        queries = len(asked)  # the next request empties the log
        series, own = Series(), []
        for _ in range(self.runs):
            begin = time.process_time()
            series.time(ask)
            own.append(time.process_time() - begin)
        over = "  over" if series.median * 1000 > self.aim else ""
        figures = (f"{queries:,}", f"{len(content) / 1000:.1f}", ms(series.median), ms(series.p95))
        self.lines.append((name, *figures, f"{self.aim}{over}", ms(min(series.seconds)), ms(median(own))))


def linked(client: Client, url: str, rel: str) -> str:
    """Where the link to the page before or after leads."""
    found = re.search(rf'href="([^"]+)" rel="{rel}"', client.get(url).content.decode())
    assert found, f"{url} has no link to its {rel} page"
    return url.partition("?")[0] + unescape(found[1])


def title_of(house: House, what: str) -> str:
    rows = f"{house.memories:,} memories, {house.events:,} events, {house.sessions:,} sessions"
    return f"{what}, {rows}"


def test_pages_and_polls(client: Client, house: House, report: Report, runs: int) -> None:
    pages(client, house, report, runs)
    polls(client, house, report, runs)


def pages(client: Client, house: House, report: Report, runs: int) -> None:
    assert not settings.DEBUG
    some = house.sessions // 2
    rows = Rows(client, runs, PAGE_AIM)
    for name, queries in PAGES.items():
        base = "/" if name == "overview" else f"/{name}"
        for query in queries:
            url = base + query.removeprefix("/").format(session=some)
            rows.time(url, url)
        if name in ("sessions", "events", "memories"):
            second = linked(client, base, "next")
            rows.time(f"{base}, second page", second)
            rows.time(f"{base}, last page", last_page(name))
    rows.time("/memories, select all: the count asked again", "/memories/rows?seen=0~~1.0", headers=BY_HTMX)
    for name, url in one_of_each(house).items():
        rows.time(name, url)
    report(title_of(house, f"PAGES (server time, {runs} runs each)"), Rows.columns, rows.lines)


def last_page(name: str) -> str:
    """The address of the oldest rows, as one gets to it by going on and on."""
    model = {"sessions": Session, "events": Event, "memories": Memory}[name]
    column = {"sessions": "queued_at", "events": "created_at", "memories": "updated_at"}[name]
    row = model.objects.order_by(column, "pk")[30]
    return f"/{name}?after={getattr(row, column).isoformat().replace('+', '%2B')}~{row.pk}"


def one_of_each(house: House) -> dict[str, str]:
    ended = house.sessions // 2
    return {
        "/memories/{id}": f"/memories/{house.memories // 2}",
        "/sessions/{id}, ended": f"/sessions/{ended}",
        "/sessions/{id}, running, with a long log": f"/sessions/{house.sessions}",
        "/sessions/{id}/log": f"/sessions/{ended}/log",
        "/sessions/{id}/log, of a long log": f"/sessions/{house.sessions}/log",
        "/sessions/{id}/log, in the middle of a long log": f"/sessions/{house.sessions}/log?before={house.log // 2}",
    }


def poll_of(client: Client, url: str, path: str) -> str:
    """The address that the page of `url` asks for again and again."""
    found = re.search(rf'hx-get="({path}[^"]*(?:seen|after)=[^"]*)"', client.get(url).content.decode())
    assert found, f"{url} does not ask for {path}"
    return unescape(found[1])


POLLS = {
    "/": "/overview/fragment",
    "/?range=90d": "/overview/fragment",
    "/sessions": "/sessions/rows",
    "/sessions?status=went_wrong": "/sessions/rows",
    "/events": "/events/rows",
    "/events?level=critical": "/events/rows",
    "/memories": "/memories/rows",
    "/memories?service=service-07": "/memories/rows",
    "/memories?text=found+nowhere": "/memories/rows",
    "/cooldowns": "/cooldowns/rows",
    "/sessions/{running}": "/sessions/{running}/live",
    "/sessions/{running}, its log": "/sessions/{running}/log",
}


def changed(url: str) -> str:
    """The same poll, by a page that shows something else."""
    if "/log?" in url:
        return re.sub(r"after=(\d+)", lambda found: f"after={int(found[1]) - 10}", url)
    return re.sub(r"seen=(\w+)", lambda found: f"seen={other(found[1])}", url)


def other(token: str) -> str:
    return str(int(token) - 1) if token.isdecimal() else "0" * len(token)


def polls(client: Client, house: House, report: Report, runs: int) -> None:
    still, news = Rows(client, 3 * runs, POLL_AIM), Rows(client, runs, PAGE_AIM)
    for name, path in POLLS.items():
        url = name.partition(",")[0].replace("{running}", str(house.sessions))
        poll = poll_of(client, url, path.replace("{running}", str(house.sessions)))
        # The ages of what the front page shows go on while it is asked for again and again.
        still.time(name, poll, status=204, allowed=200 if name.startswith("/?") or name == "/" else 0, headers=BY_HTMX)
        news.time(name, changed(poll), headers=BY_HTMX)
    still.time(
        "who is signed in, and what may they: a place that cannot be read", "/sessions/1/log?after=x", status=400
    )
    report(title_of(house, "POLLS, unchanged: 204 and nothing sent"), Rows.columns, still.lines)
    report(title_of(house, "POLLS, changed"), Rows.columns, news.lines)
