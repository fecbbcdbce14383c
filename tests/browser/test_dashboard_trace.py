"""Why did it not remember: asked and answered in a real browser, wide and narrow, by keys, without JavaScript."""

from __future__ import annotations

from typing import Any

import pytest

from tests.claudeops.trace.test_ends import prompted, said
from tests.support.factories import MemoryFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def left_out(house: Any) -> tuple[int, int]:
    """A memory for which the budget had no room: its number and its session's."""
    for number in range(30):
        MemoryFactory(observation=f"Jellyfin fact {number} about something else entirely", confidence=0.9)
    memory = said()
    return memory.pk, prompted(budget=400).pk


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_answer_fits_and_axe_finds_nothing(operators_window, axe, left_out, width, dark):
    one = operators_window(width=width, dark=dark)
    for path in ("/trace", f"/trace?q={left_out[0]}&session={left_out[1]}", "/trace?q=nobody+ever+said+this"):
        one.open(path)
        assert (one.sideways, one.cut, one.findings(axe)) == (0, [], [])


@pytest.mark.smoke
def test_by_keys_alone_a_question_is_asked_and_the_memory_confirmed(operators_window, left_out):
    page = operators_window().open(f"/trace?session={left_out[1]}")
    page.keyboard.press("/")
    page.keyboard.type(str(left_out[0]))
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer")
    assert "the budget ended after the" in page.text_content("#answer")
    page.focus(f"text=Confirm memory {left_out[0]}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/memories/{left_out[0]}")
    assert "is confirmed" in page.text_content("#toasts")


def test_it_works_without_javascript(operators_window, left_out):
    page = operators_window(java_script_enabled=False).open("/trace")
    page.fill("#trace-q", str(left_out[0]))
    page.select_option("#trace-session", str(left_out[1]))
    with page.expect_navigation():
        page.click("main form[role=search] >> text=Ask")
    assert page.locator(".trace-steps > li").count() == 8
    assert page.locator(".ranks .is-it").count() == 1
