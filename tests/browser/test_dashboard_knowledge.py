"""Knowledge in a prompt and narratives in a recall, in a real browser: narrow and wide, without a barrier."""

from __future__ import annotations

import pytest
from django.utils import timezone

from memories.models import Memory
from sessions_app.runner.launch import inject
from tests.support.factories import MemoryFactory, PartFactory, SegmentFactory, SessionFactory, TranscriptFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LONG = "The login cookie of the shop lives for an hour and is renewed by /srv/shop/core/session/renew_cookie.ts. " * 3
TASK = "Fix the login cookie of the shop"


@pytest.fixture
def known():
    """A memory that matches the task among others, one that is told now, and a session that was told both."""
    others = (f"{letter}{other} likes tea in winter" for letter in "bcdfghjk" for other in "aeiou")
    Memory.objects.bulk_create(Memory(observation=one, taxonomy="knowledge", category="preferences") for one in others)
    usual = {"taxonomy": "knowledge", "category": "rules-conventions", "service": None}
    match = MemoryFactory(observation=LONG, **usual)
    today = f"{timezone.now():%a}".lower()
    MemoryFactory(observation="The certificate of vault renews", surface=today, **usual)
    session = SessionFactory(task=TASK)
    inject(session, at=timezone.now())
    return match, session


def test_the_injected_tab_has_no_barrier_and_cuts_nothing(operators_window, axe, album, known):
    match, session = known
    one = operators_window()
    page = one.open(f"/sessions/{session.pk}?tab=injected")
    rows = page.locator("section[aria-labelledby=injected-knowledge] tbody tr")
    assert rows.count() == 2
    assert match.observation[:40] in rows.nth(1).text_content()
    page.locator("#receipt-query summary").click()
    assert TASK in page.locator("#receipt-query").text_content()
    assert one.faults(axe, album, "session-knowledge") == []
    assert one.complaints == []


def test_the_answer_shows_what_will_be_told_of_the_task_as_it_is_typed(operators_window, axe, album, known):
    one = operators_window()
    page = one.open("/ask?project=&agent=&task=zebra")
    assert page.locator("#ask-knowledge li").count() == 1
    page.locator("#ask-task").fill(TASK)
    page.locator("#ask-knowledge li", has_text="login cookie").wait_for()
    assert one.faults(axe, album, "ask-knowledge") == []
    page.locator(".seg >> text=As it is sent").click()
    page.locator("#ask-prompt", has_text="## Knowledge (2 memories, ~").wait_for()
    assert one.complaints == []


def test_narratives_stand_below_the_hits_by_keys_alone(operators_window, axe, album):
    SegmentFactory(part=PartFactory(transcript=TranscriptFactory()), narrative=LONG)
    one = operators_window()
    page = one.open("/memories/recall?query=login+cookie")
    assert page.locator("#narratives").count() == 0
    page.locator(".more-filters summary").press("Enter")
    page.locator("#recall-narratives").press("Space")
    page.locator("#recall-query").press("Enter")
    link = page.locator("#narratives li a")
    link.wait_for()
    assert one.faults(axe, album, "recall-narratives") == []
    assert link.get_attribute("href").endswith("#segment-1")
    assert one.complaints == []
