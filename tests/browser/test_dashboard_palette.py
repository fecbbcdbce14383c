"""The palette and the sidebar by keyboard: what Ctrl-K finds and does, and the Tab stops before a page's content."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.models import Session
from tests.support.factories import AgentFactory, MemoryFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def opened(page: Any) -> Any:
    page.keyboard.press("Control+k")
    page.wait_for_selector("#palette .palette-hit")
    return page


def typed(page: Any, text: str) -> None:
    """Type, and wait for the options of this text."""
    page.keyboard.type(text)
    page.wait_for_selector(f'#palette-hits[data-for="{text}"]')


def chosen(page: Any) -> str:
    """The text of the option that the field names as the active one."""
    name = page.get_attribute("#palette-text", "aria-activedescendant")
    assert page.get_attribute(f"#{name}", "aria-selected") == "true"
    assert page.locator("#palette [aria-selected=true]").count() == 1
    return str(page.text_content(f"#{name} [data-text]"))


@pytest.mark.smoke
def test_control_k_finds_a_session_by_its_number_and_enter_opens_it(operators_window, house):
    session = SessionFactory(pk=990_171, agent=house.agent)  # a number that no other text holds
    page = opened(operators_window().open("/memories"))
    assert page.evaluate("document.activeElement.id") == "palette-text"
    assert page.evaluate("document.querySelector(':modal').id") == "palette"  # the page behind is inert
    typed(page, str(session.pk))
    assert chosen(page).startswith(f"#{session.pk} homelab-watch")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/sessions/{session.pk}")


def test_the_arrows_choose_and_escape_leaves_the_page_as_it_was(operators_window):
    page = operators_window().open("/memories")
    page.focus("main [data-search]")
    opened(page)
    first = chosen(page)
    page.keyboard.press("ArrowDown")
    assert chosen(page) != first
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    last = page.locator("#palette [role=option]").last.get_attribute("id")
    assert page.get_attribute("#palette-text", "aria-activedescendant") == last
    page.keyboard.press("Escape")
    assert not page.evaluate("document.getElementById('palette').open")
    assert page.evaluate("document.activeElement.matches('main [data-search]')")


def test_enter_before_the_answer_opens_what_was_typed_and_not_what_was_shown(operators_window):
    memory = MemoryFactory(observation="The prune holds the restic lock")
    page = opened(operators_window().open("/"))
    page.keyboard.type("prune holds")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/memories/{memory.pk}")


def test_an_older_answer_never_replaces_a_newer_one(operators_window):
    page = opened(operators_window().open("/"))
    held = []
    page.route("**/jump?q=re", lambda route: held.append(route))
    with page.expect_request("**/jump?q=re"):
        page.keyboard.type("re")
    page.keyboard.type("call")
    held[0].continue_()
    page.wait_for_selector('#palette-hits[data-for="recall"]')
    assert chosen(page) == "Recall"


def test_an_agent_is_run_by_the_second_enter_and_the_message_leads_to_its_session(operators_window):
    AgentFactory(slug="backup-check")
    one = operators_window()
    page = opened(one.open("/"))
    before = Session.objects.count()
    typed(page, "run backup")
    assert chosen(page) == "Run agent backup-check"
    page.keyboard.press("Enter")
    assert chosen(page) == "Press Enter again to run backup-check"
    assert Session.objects.count() == before
    page.keyboard.press("Enter")
    page.wait_for_selector("#toasts a")
    assert not page.evaluate("document.getElementById('palette').open")
    assert Session.objects.count() == before + 1
    page.click("#toasts a")
    page.wait_for_url(f"**/sessions/{Session.objects.latest('pk').pk}")


def test_the_theme_changes_at_once_and_stays(operators_window, axe):
    one = operators_window()
    page = opened(one.open("/memories"))
    typed(page, "dark")
    assert one.findings(axe) == []
    page.keyboard.press("Enter")
    page.wait_for_selector('html[data-theme="dark"]')
    assert page.get_attribute('meta[name="color-scheme"]', "content") == "dark"
    page.reload()
    assert page.get_attribute("html", "data-theme") == "dark"
    opened(page)
    typed(page, "system")
    page.keyboard.press("Enter")
    page.wait_for_selector("html:not([data-theme])")


def test_without_javascript_the_link_leads_to_a_page_that_does_the_same(operators_window, house):
    one = operators_window(java_script_enabled=False)
    page = one.open("/")
    page.click("#jump-link")
    page.fill("#jump-text", "homelab-watch")
    page.click("main button[type=submit]")
    with page.expect_navigation():
        page.click("text=Run agent homelab-watch")
    assert page.url.endswith(f"/sessions/{Session.objects.latest('pk').pk}")


@pytest.mark.parametrize("width", [1440, 720])
@pytest.mark.parametrize("path", ["/", "/memories", "/sessions", "/events", "/inbox", "/preferences", "/admin/"])
def test_five_tab_stops_at_most_come_before_the_first_control_of_a_page(operators_window, width, path):
    page = operators_window(width=width).open(path)
    stops = []
    while len(stops) < 7:
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.className || document.activeElement.textContent.trim()"))
        if not page.evaluate("document.activeElement.closest('#header, .skip, #skip-link, .skip-to-content-link')"):
            break
    assert len(stops) - 1 <= 5, stops


def test_in_the_sidebar_the_arrows_move_and_tab_leaves(operators_window):
    page = operators_window().open("/sessions")
    page.focus("#jump-link")
    page.keyboard.press("Tab")
    focused = "document.activeElement.textContent.trim()"
    assert page.evaluate(focused) == "Sessions"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "Events"
    page.keyboard.press("End")
    assert page.evaluate(focused) == "Admin"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "Overview"
    page.keyboard.press("Tab")
    assert "Workers" in page.evaluate(focused)
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(focused) == "Overview"
    page.keyboard.press("Enter")
    page.wait_for_url("**/")
