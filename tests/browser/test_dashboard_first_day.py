"""The first steps of an empty installation in a real browser: they fit, are free of barriers, and work as they say."""

from __future__ import annotations

import pytest

from sessions_app.models import Agent

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def no_cli(settings):
    settings.CLAUDEOPS_CLAUDE_BIN = "claude-that-is-not-there"


CUT = """() => [...document.querySelectorAll("#first-day button, #first-day a, #first-day .tag, #first-day pre")]
    .map(part => [part.getBoundingClientRect(), part.outerHTML])
    .filter(([box]) => box.right > innerWidth || box.left < 0 || !box.width)
    .map(([, html]) => html)"""
"""The controls that reach beyond the window, or have no width."""


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)], ids=["wide and light", "narrow and dark"])
def test_the_first_steps_fit_and_an_agent_is_created_and_the_steps_are_hidden(
    window, operator, axe, album, width, dark
):
    one = window(width=width, dark=dark)
    one.enter(operator)
    page = one.open("/")
    assert page.text_content("h1") == "Overview"
    assert page.locator("#first-day h3").count() == 3
    assert page.locator("#first-day .loop").is_visible() == (width == 1440)
    for _ in range(2):  # as it is at first, then with an agent that is paused
        assert one.findings(axe) == []
        assert one.sideways == 0
        assert page.evaluate(CUT) == []
        if not Agent.objects.exists():
            page.get_by_role("button", name="Create the agent host-watch").focus()
            page.keyboard.press("Enter")
            page.wait_for_selector("#template-host-watch >> text=created, paused")
    album(page, f"first-day-{width}.png")
    assert not Agent.objects.get().enabled
    page.get_by_role("button", name="Resume the new agent host-watch").click()
    page.wait_for_selector("#template-host-watch .tag-ok")
    assert Agent.objects.get().enabled
    page.click("#first-day-hide")
    page.wait_for_selector("#first-day", state="detached")
    page.reload()
    assert page.locator("#first-day").count() == 0


def test_the_first_steps_need_no_javascript(window, operator):
    one = window(java_script_enabled=False)
    one.enter(operator)
    page = one.open("/")
    with page.expect_navigation():
        page.get_by_role("button", name="Create the agent backup-check").click()
    assert Agent.objects.get().slug == "backup-check"
    with page.expect_navigation():
        page.click("#first-day-hide")
    assert page.text_content("h1") == "Overview"
    assert page.locator("#first-day").count() == 0
