"""A long log in a real browser: the newest line at once, few lines in the page, no line lost on the way back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from django.utils import timezone

from sessions_app.log.entries import PAGE, Log
from sessions_app.models import LogEntry, Session, Status
from tests.support.factories import SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LENGTH = 200
MOST = 4 * PAGE
"""Lines that the page keeps in these tests."""
LINES = 12 * PAGE

STANDING = """() => [...document.querySelectorAll("#log-lines > :is([id^='line-'], .log-more)")].map(li => li.id
    ? ["line", Number(li.id.slice(5))]
    : ["gap", ...["floor", "before"].map(name =>
        Number(new URL(li.querySelector("a").getAttribute("hx-get"), location).searchParams.get(name) || 0))])"""

AT_END = """() => {
    const box = document.getElementById("log-box");
    return box.scrollHeight - box.scrollTop - box.clientHeight < 40;
}"""
READ = """() => {
    const box = document.getElementById("log-box").getBoundingClientRect();
    const lines = [...document.querySelectorAll("#log-lines > li[id^='line-']")];
    const line = lines.find(li => li.getBoundingClientRect().bottom > box.top + 60);
    return [line.id, Math.round(line.getBoundingClientRect().top - box.top)];
}"""


@pytest.fixture(autouse=True)
def few_lines_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "most_in_browser", MOST)


@pytest.fixture
def session(operator: Any) -> Session:
    return SessionFactory(status=Status.RUNNING, started_at=timezone.now())


def says(session: Session, first: int, last: int) -> None:
    """The lines with these numbers."""
    now = timezone.now()
    words = "It looks at the next file and says what it has found there. " * 20
    LogEntry.objects.bulk_create(
        (
            LogEntry(session=session, seq=seq, at=now, kind="text", text=f"{seq} {words}"[:LENGTH], offset=0)
            for seq in range(first, last + 1)
        ),
        batch_size=5000,
    )


@pytest.fixture
def one(window: Any, operator: Any) -> Any:
    one = window()
    one.page.set_default_timeout(60_000)
    one.enter(operator)
    return one


def standing(page: Any) -> list[int]:
    """The numbers of the lines in the page; between two that do not follow each other stands what leads to the rest."""
    items = page.evaluate(STANDING)
    for before, item in pairwise([["line", 0], *items]):
        if item[0] == "gap":
            assert item[1] in (0, before[1]), item
        elif before[0] == "gap":
            assert before[2] == item[1], before
        else:
            assert item[1] == before[1] + 1, item
    return [item[1] for item in items if item[0] == "line"]


def earlier(page: Any) -> None:
    """Ask for the page of lines above the first one."""
    first = page.evaluate(STANDING)[1][1]
    # By a key: what a poll brings can move the page between the button of the mouse going down and up.
    page.locator("#log-lines > .log-more").first.locator("a").press("Enter")
    page.wait_for_selector(f"#line-{max(1, first - PAGE)}", state="attached")


def test_a_long_log_shows_its_newest_line_and_leads_back_through_the_earlier_ones(one, session):
    says(session, 1, LINES)
    page = one.open(f"/sessions/{session.pk}")
    page.wait_for_function(AT_END)
    assert page.locator(f"#line-{LINES}").is_visible()
    assert standing(page) == list(range(LINES - PAGE + 1, LINES + 1))
    seen = set(standing(page))
    for _ in range(MOST // PAGE + 4):
        earlier(page)
        lines = standing(page)
        assert len(lines) <= MOST
        assert lines[-1] == LINES  # where new ones come in
        seen |= set(lines)
    assert seen == set(range(LINES - (MOST // PAGE + 5) * PAGE + 1, LINES + 1))  # none was left out on the way back

    says(session, LINES + 1, LINES + 20)
    place = page.evaluate(READ)
    page.wait_for_selector(f"#line-{LINES + 20}", state="attached")
    assert page.evaluate(READ) == place  # what is read stays where it is
    page.click("#log-newest")
    page.wait_for_function(AT_END)
    assert page.locator(f"#line-{LINES + 20}").is_visible()
    page.click("#log .log-foot a >> text=From the start")
    page.wait_for_selector("#line-1")
    assert page.locator("li[id^='line-']").count() == PAGE


def test_a_reader_at_the_end_of_a_long_log_keeps_the_last_lines_and_can_have_the_others_back(one, session):
    says(session, 1, 2 * MOST)
    page = one.open(f"/sessions/{session.pk}")
    while len(standing(page)) < MOST:
        earlier(page)
    page.click("#log-newest")
    page.wait_for_function(AT_END)
    says(session, 2 * MOST + 1, 2 * MOST + 5)
    page.wait_for_selector(f"#line-{2 * MOST + 5}")
    page.wait_for_function(AT_END)
    lines = standing(page)
    assert lines == list(range(2 * MOST + 5 - len(lines) + 1, 2 * MOST + 6))
    assert PAGE < len(lines) <= MOST // 2
    earlier(page)
    assert standing(page)[:PAGE] == list(range(lines[0] - PAGE, lines[0]))


def test_a_flood_between_two_looks_is_shown_from_its_end_and_what_is_between_on_request(one, session):
    says(session, 1, 10)
    page = one.open(f"/sessions/{session.pk}")
    page.wait_for_selector("#line-10")
    last = MOST - 100  # all of them fit
    says(session, 11, last)
    page.wait_for_selector(f"#line-{last}")
    assert standing(page) == [*range(1, 11), *range(last - PAGE + 1, last + 1)]
    page.wait_for_function(AT_END)
    while page.locator(".log-more a").count():
        first = page.evaluate("document.querySelector('.log-more + li').id")
        page.locator(".log-more a").first.press("Enter")  # a log that follows its end may move below a mouse
        page.wait_for_function(f"() => document.getElementById('{first}').previousElementSibling.id !== ''")
    assert standing(page) == list(range(1, last + 1))


def test_a_log_that_is_held_still_stays_though_its_reader_is_at_the_end(one, session):
    says(session, 1, 40)
    page = one.open(f"/sessions/{session.pk}")
    page.wait_for_selector("#log-following >> text=following")
    page.wait_for_function(AT_END)
    page.keyboard.press("f")
    assert page.get_attribute("#log-hold", "aria-pressed") == "true"
    assert page.locator("#log-following").is_hidden()
    place = page.evaluate(READ)
    says(session, 41, 60)
    page.wait_for_selector("#line-60", state="attached")
    assert page.evaluate(READ) == place
    page.click("#log-hold")
    page.wait_for_function(AT_END)
    assert page.locator("#log-following").is_visible()
    assert one.sideways == 0
