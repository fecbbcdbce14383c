"""The inbox as a person meets it: on any screen, by keyboard, and twelve decisions in three clicks."""

from __future__ import annotations

import pytest

from memories import inbox
from memories.lifecycle import disagreements
from memories.models import Verdict
from tests.support.factories import FactFactory, GateDecisionFactory, MemoryFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def waiting(house):
    for number in range(12):
        MemoryFactory(observation=f"Fact {number} " + "averyverylongword" * 6, verdict=Verdict.HOLD)
    older, newer = MemoryFactory(observation="Waits 25 s"), MemoryFactory(observation="Waits 40 s")
    return disagreements.note(older, newer, "contradiction", evidence={"why": "25 s or 40 s."})


def test_the_inbox_fits_every_screen_and_twelve_are_approved_in_three_clicks(operators_window, waiting, axe, album):
    one = operators_window()
    page = one.open("/inbox")
    for width, dark in ((1440, False), (1440, True), (720, False), (390, True), (390, False)):
        one.show(width, dark)
        album(page, f"inbox-{width}-{'dark' if dark else 'light'}.png")
        assert one.findings(axe) == []
        assert one.sideways <= 0
    one.show(1440, False)
    page.locator(".views a", has_text="Held").click()
    page.get_by_label("Select all shown").click()
    page.locator(".inbox-bulk button", has_text="Approve").click()
    page.locator(".inbox-said", has_text="12 approved.").wait_for()
    assert inbox.counts()["held"] == 0
    assert page.locator(".side-nav .side-count").text_content() == "1"
    page.get_by_role("button", name="Undo").click()
    page.locator(".inbox-said", has_text="12 memories are as they were").wait_for()
    assert inbox.counts()["held"] == 12


@pytest.mark.smoke
def test_keys_decide_skip_and_take_back_and_a_second_click_hits_nothing(operators_window, waiting):
    one = operators_window()
    page = one.open("/inbox")
    before = page.locator(".inbox-do .b-main").bounding_box()
    one.context.set_offline(True)
    page.keyboard.press("b")
    page.locator(".inbox-do button[data-inbox-key=b] + .not-sent").wait_for()
    one.context.set_offline(False)
    one.complaints.clear()  # that the request failed
    page.keyboard.press("b")
    page.locator(".inbox-said", has_text="1 answered.").wait_for()
    assert page.locator(".not-sent").count() == 0
    page.locator(".inbox-do .b-main").click()  # within the rest after the swap
    assert inbox.counts() == {"contradiction": 0, "duplicate": 0, "proposals": 0, "held": 12, "unconfirmed": 0}
    after = page.locator(".inbox-do .b-main").bounding_box()
    assert (before["x"], before["y"]) == (after["x"], after["y"])
    page.wait_for_timeout(450)
    page.keyboard.press("u")
    page.locator(".inbox-said", has_text="open again").wait_for()
    page.wait_for_timeout(450)
    page.keyboard.press("s")
    page.wait_for_url("**item=held-*")


def test_two_are_merged_into_a_text_of_ones_own_and_the_answer_is_taken_back(operators_window, house):
    older = MemoryFactory(service="forgejo", observation="Old media is purged after 90 days")
    newer = MemoryFactory(service="forgejo", observation="Media that is older than three months goes away by itself")
    disagreements.note(older, newer, "duplicate")
    one = operators_window()
    page = one.open("/inbox")
    page.get_by_label("Text of the merged memory").fill("Media is purged when it is 90 days old")
    page.locator(".inbox-do .b-main").click()
    page.locator(".inbox-said", has_text="1 merged.").wait_for()
    older.refresh_from_db()
    assert older.observation == "Media is purged when it is 90 days old"
    page.locator(".views a", has_text="Answered").click()
    page.get_by_role("button", name="Undo answer").click()
    page.locator(".inbox-said", has_text="open again").wait_for()
    older.refresh_from_db()
    assert older.observation == "Old media is purged after 90 days"


def test_what_is_held_is_corrected_and_approved_beside_its_source_and_the_nearest_memory(operators_window, axe, album):
    known = MemoryFactory(observation="The nightly backup of the shop runs on host alpha")
    held = MemoryFactory(observation="The nightly backup of the shop runs on host beta", verdict=Verdict.HOLD)
    FactFactory(memory=held, turn=12, excerpt="No, put it on beta. " * 20)
    one = operators_window()
    page = one.open(f"/inbox?view=held&item=held-{held.pk}")
    page.locator(".inbox-nearest del", has_text="alpha").wait_for()
    assert page.locator(".inbox-queue").count() == 1
    assert page.locator(".inbox-nearest a").get_attribute("href") == f"/memories/{known.pk}"
    page.keyboard.press("e")
    page.locator("#inbox-text:focus").wait_for()
    assert one.faults(axe, album, "inbox-held") == []
    one.show(1440, False)
    page.locator("#inbox-text").fill("The nightly backup runs on beta")
    page.locator(".inbox-do .b-main").click()
    page.locator(".inbox-said", has_text="1 approved.").wait_for()
    held.refresh_from_db()
    assert (held.observation, held.verdict) == ("The nightly backup runs on beta", Verdict.ALLOW)
    assert one.complaints == []


def test_discards_are_allowed_and_kept_by_keys_and_without_a_script(operators_window, axe, album, house):
    for number in range(3):
        GateDecisionFactory(text=f"The nightly backup number {number} runs on host beta", category="operations")
    one = operators_window()
    page = one.open("/inbox?view=discarded")
    assert one.faults(axe, album, "inbox-discarded") == []
    one.show(1440, False)
    page.keyboard.press("a")
    page.locator(".inbox-said", has_text="1 allowed.").wait_for()
    page.wait_for_timeout(450)  # as long as the decisions rest after a swap
    page.keyboard.press("u")
    page.locator(".inbox-said", has_text="It is discarded as before.").wait_for()
    page = operators_window(java_script_enabled=False).open("/inbox?view=discarded")
    for box in page.locator(".inbox-queue [data-pick]").all():
        box.check()
    page.locator(".inbox-bulk button", has_text="Keep discarded").click()
    page.locator("#toasts", has_text="3 kept discarded.").wait_for()
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    page.locator("#toasts", has_text="3 are discarded as before.").wait_for()
