"""A real browser for the tests that need one: Chromium, from CHROMIUM or where Debian has it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client
from django.utils import timezone

from memories.lifecycle import verbs
from sessions_app.models import InjectionReceipt, LogEntry, ServiceCheck, Status, WorkerHeartbeat
from tests.support.factories import (
    AgentFactory,
    CooldownActionFactory,
    EventFactory,
    MemoryFactory,
    ProjectFactory,
    SessionFactory,
)

PLACES = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")
"""The first has no windows of its own to draw: it takes half the processor time."""
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(os.path.exists, PLACES), PLACES[0])
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def axe_path() -> Path | None:
    """axe-core's script: AXE_CORE, or the nearest node_modules from here upwards."""
    here = Path(__file__).resolve()
    said = (Path(os.environ["AXE_CORE"]),) if os.environ.get("AXE_CORE") else ()
    near = (folder / "node_modules" / "axe-core" / "axe.min.js" for folder in here.parents)
    return next((path for path in chain(said, near) if path.is_file()), None)


# Pages poll and grow older eight times as often as for a person; nothing else waits between one and five seconds.
OFTEN = """for (const name of ["setTimeout", "setInterval"]) {
    const real = window[name];
    window[name] = (work, wait, ...more) => real(work, wait >= 1000 && wait <= 5000 ? wait / 8 : wait, ...more);
}"""


CUT = """() => "a button input select textarea summary".split(" ")
    .flatMap((name) => [...document.querySelectorAll(`main ${name}:not([type=hidden])`)])
    .filter((one) => one.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true}))
    .filter((one) => {
        const parents = [];
        for (let at = one.parentElement; at; at = at.parentElement) parents.push(at);
        const scrolls = (at) => ["auto", "scroll"].includes(getComputedStyle(at).overflowX);
        const isUnseen = (at) => getComputedStyle(at).clipPath !== "none"; // for screen readers alone
        if (one.closest(".sr, svg") || parents.some((at) => scrolls(at) || isUnseen(at))) return false;
        const box = one.getBoundingClientRect();
        const beyond = (left, right) => box.left < left - 1 || box.right > right + 1;
        if (box.width <= 1 || beyond(0, document.documentElement.clientWidth)) return box.width > 1;
        if (one.matches("a:not(.b)")) return false;
        const bound = parents.filter((at) => at.matches(".panel") || getComputedStyle(at).overflowX !== "visible");
        return bound.some((at) => beyond(at.getBoundingClientRect().left, at.getBoundingClientRect().right));
    })
    .map((one) => one.outerHTML.slice(0, 120))"""
"""What can be pressed and stands outside of the window, or, where it is no link in a text, of its panel or of what cuts
it. What a person can scroll to sideways is left out, and so is what only a screen reader meets.
"""

ABORTED = re.compile(r"htmx:(?:sendAbort|afterRequest), ")
"""What htmx says of a poll whose element was replaced meanwhile. Of a request that failed it says more than this."""

SCREENS = ((1440, 900, False), (1440, 900, True), (390, 844, False))
"""Width, height, and whether dark: what a page is looked at on. Its colours do not depend on its width."""

COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe-core that look at colours: what remains to be asked where a page has only changed these."""


class Window:
    """A browser window that remembers what its console complained about."""

    def __init__(self, browser: Any, address: str, often: bool = True, **options: Any) -> None:
        """`often`: pages poll more often than they do for a person (OFTEN)."""
        self.address = address
        self.context = browser.new_context(
            base_url=address, reduced_motion="reduce", **({"timezone_id": "UTC"} | options)
        )
        if often:
            self.context.add_init_script(OFTEN)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"{self.page.url}: {error}"))

    def _heard(self, message: Any) -> None:
        # Chromium reports a violation of the content policy as an error.
        if message.type in ("error", "warning") and not ABORTED.match(message.text):
            place = message.location
            self.complaints.append(f"{self.page.url}: {message.text} ({place.get('url')}:{place.get('lineNumber')})")

    def open(self, path: str) -> Any:
        """Open an address; returns its page. Fails when it is not answered with 200."""
        response = self.page.goto(path)
        assert response is not None
        assert response.status == 200, path
        return self.page

    def enter(self, user: Any) -> None:
        """Sign in without the form, which the tests of signing in fill in: three pages less for each other test."""
        client = Client()
        client.force_login(user)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        self.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": self.address}])

    def sign_in(self, name: str, password: str) -> None:
        """Sign in as a person does."""
        self.open("/login")
        self.page.fill("#id_username", name)
        self.page.fill("#id_password", password)
        self.page.click("button[type=submit]")
        self.page.wait_for_url(f"{self.address}/")

    def show(self, width: int, dark: bool) -> None:
        """Lay the page out anew, for a screen of this width and in these colours."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")

    def findings(self, script: str, rules: Sequence[str] | None = None) -> list[str]:
        """What axe-core (`script`, its source) finds serious or worse on the page as it is; `rules`: by these alone."""
        # Through the debugger, which the page's content policy does not bind.
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(script)
        found = self.page.evaluate(
            "rules => axe.run(document, {resultTypes: ['violations'], ...(rules && {runOnly: rules})})"
            ".then(r => r.violations"
            ".filter(v => ['serious', 'critical'].includes(v.impact))"
            ".map(v => [v.id, v.nodes.slice(0, 5).map(n => n.target.join(' ') + ' | ' + n.html.slice(0, 120))]))",
            rules,
        )
        return [f"{self.page.url}: {rule}: {node}" for rule, nodes in found for node in nodes]

    @property
    def cut(self) -> list[str]:
        """The beginnings of the controls that are cut, or that stand outside of the window or of their panel (CUT)."""
        return list(self.page.evaluate(CUT))

    def faults(self, script: str, album: Callable[[Any, str], None], name: str) -> list[str]:
        """What is wrong with the page as it is, on each of SCREENS: barriers, pixels beyond its width, cut controls."""
        found = []
        for width, height, dark in SCREENS:
            self.show(width, dark)
            self.page.set_viewport_size({"width": width, "height": height})
            found += self.findings(script, COLOURS if dark else None)
            album(self.page, f"{name}-{width}-{'dark' if dark else 'light'}.png")
            wrong = [f"{self.sideways} pixels beyond"] * (self.sideways > 0) + [f"cut: {one}" for one in self.cut]
            found += [f"{self.page.url} at {width}: {one}" for one in wrong]
        return found

    @property
    def sideways(self) -> int:
        """Pixels the page can be scrolled sideways."""
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(width))


@pytest.fixture(scope="session")
def started_chromium() -> Iterator[tuple[Any, asyncio.AbstractEventLoop]]:
    """One browser for each worker, with the event loop of Playwright; skipped with the reason where there is none."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"needs Chromium: {CHROMIUM} does not exist (CHROMIUM names another)")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (tests/requirements.txt)")
    with playwright.sync_playwright() as started:
        loop = asyncio.get_running_loop()
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture
def chromium(started_chromium: tuple[Any, asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """The browser.

    Playwright's sync API leaves its event loop running in this thread, which Django's ORM takes for a fault, and
    asyncio, too. The ORM is used beside it, not in it: both are told so for the time of a test. A thread with a loop
    has a connection to the database of its own.
    """
    browser, loop = started_chromium
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        asyncio._set_running_loop(loop)
        yield browser
        connections.close_all()
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core; skipped with the reason where there is none."""
    path = axe_path()
    if path is None:
        pytest.skip("needs axe-core: npm install axe-core, or AXE_CORE=…/axe.min.js")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def album() -> Callable[[Any, str], None]:
    """Takes a picture of a page, under a name, where SCREENSHOTS_DIR says; without it none is taken."""
    folder = os.environ.get("SCREENSHOTS_DIR")

    def take(page: Any, name: str) -> None:
        if folder:
            page.screenshot(path=Path(folder) / name, full_page=True)

    return take


@pytest.fixture
def window(chromium: Any, live_server: Any) -> Iterator[Any]:
    """Opens windows on the running server: window(width=360, dark=True). They must not complain."""
    opened: list[Window] = []

    def new(width: int = 1440, dark: bool = False, **options: Any) -> Window:
        scheme = "dark" if dark else "light"
        viewport = {"width": width, "height": 900}
        one = Window(chromium, live_server.url, viewport=viewport, color_scheme=scheme, **options)
        opened.append(one)
        return one

    yield new
    complaints = [complaint for one in opened for complaint in one.complaints]
    for one in opened:
        one.context.close()
    assert complaints == []


@pytest.fixture
def house(operator):
    """A row of every kind, as a homelab would have them."""
    now = timezone.now()
    agent = AgentFactory(slug="homelab-watch", schedule_kind="interval", next_run_at=now + timedelta(minutes=9))
    session = SessionFactory(
        agent=agent,
        response="## Found\n\n| a | b |\n|--|--:|\n| 1 | 2 |\n\n![x](https://tracker.example/x.png) <b style='x'>b</b>",
        summary="All **well**",
        prompt="You observe. " * 200,
        cost_usd=Decimal("0.03"),
        started_at=now,
        ended_at=now,
    )
    SessionFactory(agent=agent, status=Status.RUNNING, started_at=now)
    SessionFactory(agent=agent, status=Status.QUEUED, hold_reason="Agent homelab-watch is busy " + "x" * 300)
    SessionFactory(agent=agent, status=Status.FAILED, status_reason="x" * 400, ended_at=now)
    SessionFactory(parent=session, tier=2)
    memory = MemoryFactory(session=session, observation="Takes 60s to start " + "averyveryverylongword" * 12)
    verbs.edit(memory, by="operator", observation="Takes 60 s to start " + "averyveryverylongword" * 12, confidence=0.4)
    entry = {"id": memory.pk, "uuid": "x", "service": None, "category": "timing", "confidence": 0.9, "reason": ""}
    InjectionReceipt.objects.create(
        session=session,
        text="text " * 300,
        sha256="a" * 64,
        budget=2000,
        tokens=412,
        included=[entry | {"observation": memory.observation}],
        left_out=[entry | {"observation": ""}],
        counts={"included": 1, "over_budget": 1},
    )
    EventFactory(session=session, level="critical", message="Down " + "x" * 300)
    CooldownActionFactory(session=session)
    ServiceCheck.objects.create(session=session, service="caddy", status="ok", healthy=True)
    LogEntry.objects.create(session=session, seq=1, at=now, kind="tool_result", text="x" * 4000, offset=0)
    WorkerHeartbeat.objects.create(host="nuc-1", cluster="default", pid=1)
    ProjectFactory(slug="media")
    return session


@pytest.fixture
def operators_window(window, house, operator):
    """Opens windows in which the operator of the house is signed in."""

    def new(**options):
        one = window(**options)
        one.enter(operator)
        return one

    return new
