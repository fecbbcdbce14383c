"""The keyboard, the selection and polling, on a list like the dashboard's."""

from __future__ import annotations

from typing import Any

import pytest

from memories.models import Memory
from tests.support.factories import MemoryFactory

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.browser.list_page"),
]


@pytest.fixture
def memories(operator):
    return [MemoryFactory(pk=n, observation=f"Memory number {n}") for n in range(1, 7)]


@pytest.fixture
def page(window: Any, operator: Any, memories: list[Memory]) -> Any:
    one = window()
    one.enter(operator)
    return one.open("/list")


def picked(page: Any) -> list[str]:
    return page.eval_on_selector_all("[data-pick]:checked", "boxes => boxes.map(box => box.value)")


def cursor(page: Any) -> str | None:
    found = page.eval_on_selector_all(".is-cursor", "rows => rows.map(row => row.dataset.row)")
    assert len(found) < 2
    return found[0] if found else None


def polled(page: Any) -> None:
    """Wait for a whole poll: its answer is swapped in and settled."""
    page.evaluate(
        "new Promise(done => document.addEventListener('htmx:afterSettle', e => "
        "e.target.id === 'list' && done(), {once: false}))"
    )


def is_modal(page: Any) -> bool:
    return page.evaluate("document.getElementById('keys-help').open")


def test_j_and_k_move_a_cursor_that_can_be_seen_and_stops_at_either_end(page):
    page.keyboard.press("k")
    assert cursor(page) == "6"
    page.keyboard.press("k")
    assert cursor(page) == "5"
    for _ in range(9):
        page.keyboard.press("k")
    assert cursor(page) == "1"
    page.keyboard.press("j")
    assert cursor(page) == "2"
    assert page.evaluate("getComputedStyle(document.querySelector('.is-cursor')).boxShadow") != "none"
    page.keyboard.press("Escape")
    assert cursor(page) is None


def test_slash_goes_to_the_search_and_there_a_key_is_a_letter(page):
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("jx?e/k")
    assert page.input_value("#q") == "jx?e/k"
    assert cursor(page) is None
    assert not is_modal(page)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") != "q"
    page.keyboard.press("j")
    assert cursor(page) == "1"


def test_a_question_mark_opens_the_list_of_keys_and_escape_closes_it(page):
    page.keyboard.press("?")
    assert is_modal(page)
    page.keyboard.press("j")
    assert cursor(page) is None
    page.keyboard.press("Escape")
    assert not is_modal(page)
    page.keyboard.press("?")
    page.click("#keys-help button")
    assert not is_modal(page)


def test_a_key_with_control_or_alt_is_the_browsers(page):
    page.keyboard.press("Control+j")
    page.keyboard.press("Alt+j")
    assert cursor(page) is None


def test_x_selects_the_row_and_with_shift_all_rows_between(page):
    assert not page.is_visible("[data-bulk]")
    for key in ("j", "j", "x"):
        page.keyboard.press(key)
    assert picked(page) == ["2"]
    assert page.is_visible("[data-bulk]")
    assert page.text_content("[data-picked]") == "1 selected"
    for key in ("j", "j", "Shift+X"):
        page.keyboard.press(key)
    assert picked(page) == ["2", "3", "4"]
    page.keyboard.press("x")
    assert picked(page) == ["2", "3"]


def test_shift_and_a_click_select_a_range(page):
    page.click("[data-pick][value='1']")
    page.click("[data-pick][value='4']", modifiers=["Shift"])
    assert picked(page) == ["1", "2", "3", "4"]
    assert page.evaluate("document.querySelector('[data-pick-page]').indeterminate")


def test_all_that_match_are_offered_when_the_page_is_selected_and_sent_as_such(page):
    assert not page.is_visible("[data-pick-all]")
    page.click("[data-pick-page]")
    assert picked(page) == ["1", "2", "3", "4", "5", "6"]
    page.click("[data-pick-all]")
    assert page.text_content("[data-picked]") == "All 120 that match are selected"
    page.click("[data-pick][value='3']")
    assert page.text_content("[data-picked]") == "5 selected"
    page.click("[data-pick][value='3']")
    page.click("[data-pick-all]")
    page.click("[data-bulk] [type=submit]")
    assert "1 2 3 4 5 6 all=1" in page.text_content("main .toast")


def test_a_click_is_not_lost_to_a_poll_that_comes_between_pressing_and_letting_go(page):
    page.hover("[data-pick][value='3']")
    page.evaluate(
        "window.answered = 0; window.held = document.querySelector('[data-pick][value=\"3\"]');"
        "document.addEventListener('htmx:afterRequest', () => { window.answered += 1; });"
    )
    page.mouse.down()
    MemoryFactory(pk=7, observation="Memory number 7")
    page.wait_for_function("() => window.answered > 2")
    assert page.evaluate("window.held.isConnected")
    page.mouse.up()
    assert picked(page) == ["3"]
    page.wait_for_selector("#row-7")
    assert picked(page) == ["3"]


def test_what_is_cleared_is_not_sent(page):
    page.click("[data-pick-page]")
    page.click("[data-pick-all]")
    page.click("[data-pick-none]")
    assert picked(page) == []
    page.click("[data-pick][value='2']")
    page.click("[data-bulk] [type=submit]")
    assert page.text_content("main .toast-text") == "2 all="


def test_polling_keeps_the_selection_the_cursor_the_focus_and_what_is_opened(page):
    for key in ("j", "j", "x"):
        page.keyboard.press(key)
    page.click("#more-4 summary")
    page.focus("#row-5 [data-edit]")
    MemoryFactory(pk=7, observation="Memory number 7")
    page.wait_for_selector("#row-7")
    polled(page)
    assert picked(page) == ["2"]
    assert page.text_content("[data-picked]") == "1 selected"
    assert page.evaluate("document.getElementById('more-4').open")
    assert page.evaluate("document.activeElement.closest('[data-row]').id") == "row-5"
    assert page.evaluate("document.activeElement.matches('[data-edit]')")


def test_the_row_under_the_cursor_is_the_same_one_after_a_poll(page):
    for key in ("j", "j"):
        page.keyboard.press(key)
    polled(page)
    polled(page)
    assert cursor(page) == "2"
    assert page.evaluate("document.activeElement.dataset.row") == "2"
    page.keyboard.press("Enter")
    page.wait_for_url("**/list/2")


def test_an_open_edit_stays_while_rows_arrive_and_other_rows_follow(page):
    for key in ("j", "j", "j", "e"):
        page.keyboard.press(key)
    page.wait_for_selector("#row-3[data-editing]")
    page.fill("#text-3", "Half a sentence")
    page.keyboard.press("ArrowLeft")
    MemoryFactory(pk=7, observation="Memory number 7")
    Memory.objects.filter(pk__in=(1, 3)).update(observation="Said by somebody else")
    page.wait_for_selector("#row-7")
    polled(page)
    assert page.input_value("#text-3") == "Half a sentence"
    assert page.evaluate("document.activeElement.id") == "text-3"
    assert page.evaluate("document.activeElement.selectionStart") == len("Half a sentence") - 1
    assert "Said by somebody else" in page.text_content("#row-1")
    page.keyboard.press("Escape")
    page.wait_for_selector("#row-3:not([data-editing])")
    assert "Said by somebody else" in page.text_content("#row-3")


def test_nothing_is_asked_while_nobody_looks_and_at_once_when_somebody_does(page):
    page.evaluate(
        "window.turns = 0; window.asked = 0; window.woken = 0; window.away = true;"
        "document.addEventListener('htmx:beforeRequest', () => { window.turns += 1; });"
        "document.addEventListener('htmx:beforeSend', event => { window.asked += 1;"
        "const cause = event.detail.requestConfig.triggeringEvent; window.woken += cause && cause.type === 'wake'; });"
        "Object.defineProperty(document, 'hidden', {configurable: true, get: () => window.away});"
        "document.dispatchEvent(new Event('visibilitychange'));"
    )
    page.wait_for_function("() => window.turns > 2")  # its turn came and it kept still
    assert page.evaluate("window.asked") == 0
    page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'));")
    assert page.evaluate("window.woken") == 1


def test_a_server_that_does_not_answer_is_said_quietly_and_taken_back(window, operator, memories):
    one = window()
    one.enter(operator)
    page = one.open("/list")
    page.route("**/list/rows", lambda route: route.abort())
    page.wait_for_function("() => document.querySelector('#connection').textContent.includes('cannot be reached')")
    assert page.locator("[data-row]").count() == 6
    page.unroute("**/list/rows")
    page.wait_for_function("() => document.querySelector('#connection').textContent === ''")
    one.complaints.clear()  # the requests that failed; those are meant


def test_a_message_offers_to_undo_and_goes_when_it_is_closed(page):
    page.click("[data-pick][value='2']")
    with page.expect_navigation():  # its scripts are there, or the undo would be a plain form's
        page.click("[data-bulk] [type=submit]")
    page.click("main .toast-undo button")
    page.wait_for_selector("#toasts .toast-success")
    assert page.text_content("#toasts .toast-text") == "Undone."
    assert page.locator("main .toast").count() == 0
    page.click("#toasts [data-close-toast]")
    assert page.locator(".toast").count() == 0
