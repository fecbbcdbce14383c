"""Messages: put together, above the actions, gone by themselves; and clicks that follow an exchange too closely."""

from __future__ import annotations

from typing import Any

import pytest

from memories.models import Memory
from tests.support.factories import MemoryFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TOAST = "#toasts [data-toast]"


@pytest.fixture
def held(operator: Any) -> list[Memory]:
    reason = "It reads like an instruction."
    return [
        MemoryFactory(pk=n, verdict="hold", verdict_reason=reason, observation=f"Memory number {n}")
        for n in range(1, 9)
    ]


@pytest.fixture
def open_list(window: Any, operator: Any, held: list[Memory]) -> Any:
    def open_list(path: str = "/memories?status=held", **options: Any) -> Any:
        one = window(**options)
        one.enter(operator)
        one.page.set_default_timeout(8000)
        one.page.clock.install()
        return one.open(path)

    return open_list


def approve(page: Any, *ids: int) -> None:
    for pk in ids:
        page.click(f"#memory-{pk}-approve")
        page.wait_for_selector(f"#memory-{pk}-approve", state="detached")


def texts(page: Any) -> list[str]:
    return [text.strip() for text in page.locator(f"{TOAST} .toast-text").all_text_contents()]


def test_messages_of_one_kind_become_one_and_its_undo_is_for_all_of_them(open_list):
    page = open_list("/memories", often=False)
    approve(page, 1)
    page.wait_for_selector(f"{TOAST} >> text=Memory 1 is approved")
    approve(page, 2, 3, 4)
    page.wait_for_selector(f"{TOAST} >> text=4 approved.")
    assert len(texts(page)) == 1
    page.keyboard.press("u")
    page.wait_for_selector(f"{TOAST} >> text=4 changes are undone.")
    assert Memory.objects.filter(verdict="hold").count() == 8
    assert texts(page) == ["4 changes are undone."]


def test_what_differs_stays_apart_and_at_most_three_stand_there(open_list):
    page = open_list("/memories", often=False)
    approve(page, 1)
    page.click("#memory-2 .row-more summary")
    page.click("#memory-2-reject")
    page.wait_for_selector(f"{TOAST} >> text=rejected")
    page.click("#memory-3 .row-more summary")
    page.click("#memory-3-edit")
    page.fill("#memory-3-observation", "Said better")
    page.click("#memory-3 [type=submit]")
    page.wait_for_selector(f"{TOAST} >> text=edited")
    assert len(texts(page)) == 3
    page.keyboard.press("u")
    page.wait_for_selector(f"{TOAST} >> text=restored")
    assert len(texts(page)) == 3


def test_messages_go_by_themselves_those_with_an_undo_later_and_none_while_somebody_points_at_it(open_list):
    page = open_list("/memories", often=False)
    approve(page, 1)
    page.wait_for_selector(TOAST)
    page.mouse.move(5, 5)
    page.clock.run_for(15_000)
    assert len(texts(page)) == 1
    page.hover(TOAST)
    page.clock.run_for(60_000)
    assert len(texts(page)) == 1
    page.mouse.move(5, 5)
    page.focus(f"{TOAST} .toast-undo button")
    page.clock.run_for(60_000)
    assert len(texts(page)) == 1
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{TOAST} >> text=restored")
    page.clock.run_for(7_000)
    assert len(texts(page)) == 1
    page.clock.run_for(2_000)
    assert texts(page) == []


@pytest.mark.parametrize("width", [1440, 390])
def test_they_stand_above_the_bar_of_actions_and_never_over_it(open_list, width):
    page = open_list("/memories", often=False, width=width)
    approve(page, 1)
    page.click("#memory-2-pick")
    page.wait_for_selector("[data-bulk]:not([hidden])")
    page.clock.run_for(500)
    box = "one => { const r = one.getBoundingClientRect(); return [r.top, r.bottom, r.left]; }"
    (top, bottom, _), bar = page.eval_on_selector("#toasts", box), page.eval_on_selector("#bulk", box)
    assert bottom <= bar[0] or top >= bar[1]
    assert top >= 0
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.clock.run_for(500)
    top, bottom, _ = page.eval_on_selector("#toasts", box)
    bar = page.eval_on_selector("#bulk", box)
    assert bottom <= bar[0] or top >= bar[1]


def test_a_screen_reader_hears_only_what_is_added_and_errors_are_no_second_region(open_list):
    page = open_list("/memories", often=False)
    assert page.get_attribute("#toasts", "role") == "status"
    assert page.get_attribute("#toasts", "aria-atomic") == "false"
    approve(page, 1)
    page.wait_for_selector(TOAST)
    assert page.locator("#toasts [role], #toasts [aria-live]").count() == 0


def test_a_second_click_at_the_place_of_the_first_does_not_reach_what_slid_there(open_list):
    page = open_list(often=False)
    page.evaluate("performance.now = () => 1000")  # no time passes between the clicks
    button = page.locator("#memory-8-approve").bounding_box()
    page.mouse.click(button["x"] + 5, button["y"] + 5)
    page.wait_for_selector("#memory-8-approve", state="detached")
    # What slid there: another control of a row, at the same place.
    page.evaluate(
        "([x, y]) => { const b = document.createElement('button'); b.id = 'slid'; b.type = 'button';"
        "b.style.cssText = `position: fixed; left: ${x}px; top: ${y}px; z-index: 99`;"
        "window.pressed = 0; b.addEventListener('click', () => { window.pressed += 1; });"
        "document.querySelector('#memory-7 td').append(b); }",
        [button["x"], button["y"]],
    )
    page.mouse.click(button["x"] + 5, button["y"] + 5)
    assert page.evaluate("window.pressed") == 0
    page.evaluate("performance.now = () => 1500")
    page.mouse.click(button["x"] + 5, button["y"] + 5)
    assert page.evaluate("window.pressed") == 1
