"""The inbox as a person meets it: on any screen, by keyboard, and without a script."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memories.lifecycle import disagreements
from memories.models import Disagreement
from memories.store import Provenance, Statement, remember
from tests.factories import MemoryFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SCREENS = [(1440, False), (1440, True), (360, False), (360, True), (2560, False)]


@pytest.fixture
def asked(house: Any) -> list[Disagreement]:
    for text in ("Takes 60s to start after a restart", "Takes 5 minutes to start after a restart"):
        remember(Statement("timing", text, "paperless"), Provenance("run", "agent:watch", SessionFactory().pk), at=NOW)
    older = MemoryFactory(service="forgejo", observation="Old media is purged after 90 days")
    newer = MemoryFactory(service="forgejo", observation="Media that is older than three months goes away by itself")
    evidence = {"why": "Only one of them speaks of “month”.", "cosine": 0.913, "similarity": 0.5}
    disagreements.note(older, newer, "duplicate", evidence=evidence)
    return list(Disagreement.objects.order_by("pk"))


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_the_inbox_fits_every_screen_and_shuts_nobody_out(width, dark, operators_window, asked, axe, album):
    one = operators_window(width=width, dark=dark)
    page = one.open("/memories/inbox")
    album(page, f"inbox-{width}-{'dark' if dark else 'light'}.png")
    assert one.findings(axe) == []
    assert one.sideways <= 0
    assert page.locator("article.question").count() == 2


def test_a_contradiction_is_answered_by_keyboard_and_the_answer_taken_back(operators_window, asked):
    one = operators_window()
    page = one.open("/memories/inbox?kind=contradiction")
    page.get_by_role("button", name="Both hold (different scope)").focus()
    page.keyboard.press("Enter")
    page.locator(".toast-text", has_text="Answered: both hold.").wait_for()
    assert Disagreement.objects.get(pk=asked[0].pk).answer == "both"
    page.goto("/memories/inbox?answered=1")
    page.get_by_role("button", name="Undo answer").click()
    page.locator(".toast-text", has_text="the question is open again").wait_for()
    assert Disagreement.objects.get(pk=asked[0].pk).state == "open"


def test_two_are_merged_into_a_text_of_ones_own(operators_window, asked):
    one = operators_window()
    page = one.open("/memories/inbox?kind=duplicate")
    page.get_by_label("Text of the merged memory").fill("Media is purged when it is 90 days old")
    page.get_by_role("button", name="Merge").click()
    page.locator(".toast-text", has_text="Answered: duplicates.").wait_for()
    assert Disagreement.objects.get(pk=asked[1].pk).older.observation == "Media is purged when it is 90 days old"
    assert page.locator(".side-count").text_content() == "1"
