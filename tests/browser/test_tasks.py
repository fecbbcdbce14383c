"""The operator's tasks from the overview: each with a mouse in at most so many clicks, and with keys alone.

To type a text is no click; a mouse opens what is typed into. Every task is done both ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.models import Memory, MemoryChange
from sessions_app.models import LogEntry, Session, Status
from tests.support.factories import AgentFactory, MemoryFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MOUSE, KEYS = "mouse", "keys"
both = pytest.mark.parametrize("means", [MOUSE, KEYS])


class Hand:
    """One person on one page: counts the clicks, and does the rest by typing."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.clicks = 0

    def click(self, selector: str) -> None:
        self.clicks += 1
        self.page.locator(selector).first.click()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def find(self, text: str, wanted: str) -> None:
        """Type a text into the open palette until the option `wanted` is the chosen one."""
        self.page.keyboard.type(text)
        self.page.wait_for_selector(f'#palette-hits[data-for="{text}"] [aria-selected=true] >> text={wanted}')

    def jump(self, text: str, wanted: str) -> None:
        self.press("Control+k")
        self.find(text, wanted)
        self.press("Enter")

    def tab_to(self, selector: str, most: int = 60) -> None:
        """Press Tab until what is meant has the focus."""
        for _ in range(most):
            self.press("Tab")
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        pytest.fail(f"{selector} is not within {most} Tab stops")


@pytest.fixture
def hand(operators_window: Any, house: Any) -> Callable[[], Hand]:
    """A person who has just opened the overview; called when the rows of the task are there."""
    return lambda: Hand(operators_window().open("/"))


def say(session: Session, seq: int, text: str) -> None:
    LogEntry.objects.create(session=session, seq=seq, at=timezone.now(), kind="text", text=text, offset=0)


@both
def test_what_failed_last_night_takes_one_click(hand, means):
    night = timezone.now() - timedelta(hours=9)
    failed = SessionFactory(status=Status.FAILED, status_reason="The NAS was not mounted.", ended_at=night)
    person = hand()
    if means == MOUSE:
        person.click("#figure-failed")
    else:
        person.tab_to("#figure-failed")
        person.press("Enter")
    person.page.wait_for_url("**/sessions?status=went_wrong&ended=24h")
    assert person.page.locator(f"#session-{failed.pk}-link >> text=The NAS was not mounted.").is_visible()
    assert person.clicks <= 1


@both
def test_what_a_session_learned_takes_two_clicks(hand, means):
    """By mouse the number has to be typed, since any session may be meant; the palette is opened by its button."""
    session = SessionFactory(summary="Looked at the backups.")
    memory = MemoryFactory(session=session, observation="The prune holds the lock of restic")
    MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind="created", session=session)
    person = hand()
    if means == MOUSE:
        person.click("#jump-link")
        person.find(f"#{session.pk}", f"#{session.pk} ")
        person.click("#palette-hits [aria-selected=true]")
    else:
        person.jump(f"#{session.pk}", f"#{session.pk} ")
    person.page.wait_for_url(re.compile(rf"/sessions/{session.pk}\b"))
    person.page.wait_for_selector(f"#tabs >> text={memory.observation}")
    assert person.page.get_attribute("#tab-learned", "aria-current") == "true"
    assert person.clicks <= 2


@both
def test_memories_of_a_service_that_fade_within_14_days_take_two_clicks(hand, means):
    old = timezone.now() - timedelta(days=60)
    fading = MemoryFactory(service="jellyfin", confidence=0.7, updated_at=old)
    MemoryFactory(service="caddy", confidence=0.7, updated_at=old)
    MemoryFactory(service="jellyfin", confidence=0.95)
    person = hand()
    if means == MOUSE:
        person.click("#chart-memories-fading")
        person.click(".facets a:text('jellyfin')")
    else:
        person.jump("fades", "Memories: Fades next")
        person.page.wait_for_url("**fades=**")
        person.tab_to(".facets a[href*='service=jellyfin']")
        person.press("Enter")
    person.page.wait_for_url("**service=jellyfin**")
    assert "fades=%3C14d" in person.page.url
    rows = person.page.eval_on_selector_all("#memory-rows [data-row]", "rows => rows.map(row => row.dataset.row)")
    assert rows == [str(fading.pk)]
    assert person.clicks <= 2


@both
def test_twelve_held_memories_are_approved_in_three_clicks_and_undone_in_one(hand, means):
    facts = [MemoryFactory(observation=f"Fact {number}", verdict="hold", verdict_reason="Odd.") for number in range(12)]
    held = [fact.pk for fact in facts]
    person = hand()
    page = person.page
    if means == MOUSE:
        person.click("#figure-waiting")
        person.click("thead [data-pick-page]")
        person.click("[data-bulk] button[value=approve]")
    else:
        person.tab_to("#figure-waiting")
        person.press("Enter")
        page.wait_for_url("**/memories?status=waiting**")
        person.press("j", "x", *["j"] * 11, "Shift+X")
        page.wait_for_selector("[data-picked] >> text=12 selected")
        person.press("a")
    page.wait_for_selector("#toasts >> text=12 memories approved.")
    assert Memory.objects.filter(pk__in=held, verdict="allow").count() == 12
    assert person.clicks <= 3
    person.clicks = 0
    if means == MOUSE:
        person.click("#toasts .toast-undo button")
    else:
        person.press("u")
    page.wait_for_selector(f"#memory-{held[0]}")
    assert Memory.objects.filter(pk__in=held, verdict="hold").count() == 12
    assert person.clicks <= 1


@both
def test_a_session_is_stopped_with_one_click(hand, means):
    running = Session.objects.get(status=Status.RUNNING)
    person = hand()
    if means == MOUSE:
        person.click(f"#stop-{running.pk}")
    else:
        person.jump(f"#{running.pk}", f"#{running.pk} ")
        person.page.wait_for_url(f"**/sessions/{running.pk}")
        person.press("s")
    person.page.wait_for_selector("text=Stop requested by operator")
    running.refresh_from_db()
    assert running.stop_requested_at
    assert person.clicks <= 1


@both
def test_what_would_be_injected_for_a_task_takes_two_clicks(hand, means):
    AgentFactory(slug="backup-check")
    told = MemoryFactory(service="restic", observation="The backup of restic needs the NAS mounted", confidence=0.95)
    person = hand()
    page = person.page
    if means == MOUSE:
        person.click(".side-nav a:text('Recall')")
        person.click(".views a:text('What will it be told?')")
        page.focus("#ask-task")
    else:
        person.jump("will be told", "What an agent will be told")
        page.wait_for_url("**/ask")
        person.tab_to("#ask-task")
    page.keyboard.type("The backup of restic failed")
    person.press("Enter")
    page.wait_for_url(re.compile("task=The(%20|[+])backup"))
    assert page.locator(f"#ask-ops >> text={told.observation}").first.is_visible()
    assert person.clicks <= 2


@both
def test_the_live_log_of_a_running_session_takes_two_clicks(hand, means):
    running = Session.objects.get(status=Status.RUNNING)
    say(running, 1, "Looks at the disks.")
    person = hand()
    if means == MOUSE:
        person.click(f"#running-{running.pk}")
    else:
        person.jump(f"#{running.pk}", f"#{running.pk} ")
    person.page.wait_for_selector("#line-1")
    say(running, 2, "The disks are full.")
    person.page.wait_for_selector("#line-2 >> text=The disks are full.")
    assert person.page.locator("#line-2").bounding_box()["y"] < 900  # in the window, without scrolling
    assert person.clicks <= 2
