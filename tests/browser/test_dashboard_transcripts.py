"""Observed transcripts in a real browser: the list and one of them, with keys, narrow and wide, without a script."""

from __future__ import annotations

import pytest
from django.utils import timezone

from memories.models import FactOutcome, PartState, Priority, StageState, Verdict
from memories.observe.pipeline import STAGES
from tests.support.factories import (
    FactFactory,
    MemoryFactory,
    PartFactory,
    ProjectFactory,
    SegmentFactory,
    StageFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LONG = "The nightly backup of the shop database runs on host beta and never on alpha. " * 4


@pytest.fixture
def seen():
    """One that was observed, with a fact of each priority and outcome, and one that failed at its call."""
    project = ProjectFactory(slug="shop")
    done = PartFactory(
        transcript__project=project,
        transcript__installation="laptop-of-a-developer",
        state=PartState.DONE,
        removed={"reminders": 3},
        answer="<observations>" + "x" * 900,
        unread=["no <segment> has an end"],
    )
    failed = PartFactory(state=PartState.FAILED)
    for place, name in enumerate(STAGES):
        StageFactory(part=done, name=name, state=StageState.DONE, counts={"in": 12, "out": 9})
        state = (StageState.DONE, StageState.FAILED)[place] if place < 2 else StageState.WAITING
        StageFactory(part=failed, name=name, state=state, problem="The model could not be asked." if place == 1 else "")
    segment = SegmentFactory(part=done, narrative=LONG)
    for outcome, priority in (("created", Priority.RED), ("held", Priority.YELLOW), ("discarded", Priority.GREEN)):
        held = Verdict.HOLD if outcome == FactOutcome.HELD else Verdict.ALLOW
        memory = None if outcome == FactOutcome.DISCARDED else MemoryFactory(verdict=held)
        FactFactory(
            segment=segment, text=LONG, outcome=outcome, priority=priority, memory=memory, reason="a command", turn=4
        )
    return done.transcript, failed.transcript


def test_the_list_and_a_transcript_have_no_barrier_and_cut_nothing(operators_window, axe, album, seen):
    one = operators_window()
    page = one.open("/learning-log")
    assert page.locator("[data-row]").first.bounding_box()["y"] < 180
    assert one.faults(axe, album, "transcripts") == []
    for transcript in seen:
        page = one.open(f"/learning-log/{transcript.pk}")
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert one.faults(axe, album, f"transcript-{transcript.pk}") == []
    assert one.complaints == []


def test_the_keys_open_a_transcript_and_go_to_the_next_one(operators_window, seen):
    page = operators_window().open("/learning-log")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/learning-log/{seen[1].pk}")
    page.keyboard.press("]")
    page.wait_for_url(f"**/learning-log/{seen[0].pk}")
    page.locator("details.fact-source summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.fact-source").first.get_attribute("open") is not None


def test_without_a_script_a_view_narrows_the_list_and_a_failed_part_is_sent_again(operators_window, seen):
    page = operators_window(java_script_enabled=False).open("/learning-log")
    page.click(".views >> text=Failed")
    page.wait_for_url("**/learning-log?state=failed")
    page.click("[data-row] a[data-open]")
    with page.expect_navigation():
        page.click("text=Try again")
    assert "waits again" in page.inner_text("#toasts")
    assert "Call is next." in page.inner_text(".part-says")
    assert page.locator("text=Try again").count() == 0


def test_the_page_of_a_waiting_transcript_shows_what_happens_and_keeps_what_is_open(operators_window, seen):
    failed = seen[1].parts.get()
    one = operators_window()
    page = one.open(f"/learning-log/{seen[1].pk}")
    page.click("text=Try again")
    page.locator("#toasts", has_text="waits again").wait_for()
    page.click(f"#part-{failed.number}-stages summary")
    failed.stages.filter(name="call").update(state=StageState.DONE)
    failed.stages.filter(name="parse").update(state=StageState.RUNNING, claimed_at=timezone.now())
    page.locator(".part-says", has_text="Parse has been running").wait_for()
    assert page.locator(f"#part-{failed.number}-stages").get_attribute("open") is not None
    assert one.complaints == []
