"""Charts in a real browser: bars lead to their lists, hours are brushed by pointer and by keys, all of it fits."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sessions_app.models import Session, Status
from tests.browser.conftest import axe_path
from tests.support.factories import EventFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
MINE = re.compile(r"chart|behind|hours|plot|multiple|Range")
"""What of a page is held here; its other parts have tests of their own."""
SIZES = ((1440, 900), (390, 844))


@pytest.fixture
def hours() -> list[Session]:
    """One session in the middle of each of the last six clock hours before this one; the newest first."""
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    statuses = [Status.FAILED, Status.COMPLETED, Status.ESCALATED, Status.STOPPED, Status.LOST, Status.COMPLETED]
    found = []
    for n, status in enumerate(statuses):
        at = hour - timedelta(minutes=30 + 60 * n)
        found.append(SessionFactory(status=status, ended_at=at, queued_at=at, cost_usd="0.5", summary=f"hour {n}"))
        EventFactory(session=None, level=["info", "warning", "critical"][n % 3], created_at=at)
    return found


def listed(page: Any) -> list[str]:
    return page.eval_on_selector_all("#session-rows > tr", "rows => rows.map(row => row.id)")


def ids(sessions: list[Session]) -> list[str]:
    return [f"session-{session.pk}" for session in sessions]


def bar(page: Any, back: int) -> dict[str, float]:
    """The place of the bar `back` hours before the one that runs."""
    box = page.locator("#hours-plot a[data-span]").nth(23 - back).bounding_box()
    return {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}


def test_hours_are_brushed_with_the_pointer_and_stand_in_the_address(operators_window, hours):
    page = operators_window().open("/sessions?status=went_wrong")
    start, end = bar(page, 5), bar(page, 1)
    page.mouse.move(**start)
    page.mouse.down()
    page.mouse.move(**end, steps=4)
    assert "1 failed" in page.text_content("#hours-said")
    page.mouse.up()
    page.wait_for_url("**/sessions?status=went_wrong&ended=**")
    assert listed(page) == ids([hours[0], hours[4]])
    assert page.locator("#hours .brushed").count() == 1
    assert page.locator(".chip").count() == 2
    page.go_back()
    page.wait_for_url("**/sessions?status=went_wrong")
    assert page.locator("#hours .brushing").count() == 0


def test_a_click_on_a_bar_leads_to_its_hour_alone(operators_window, hours):
    page = operators_window().open("/sessions")
    page.mouse.click(**bar(page, 2))
    page.wait_for_url("**/sessions?ended=**")
    assert listed(page) == ids([hours[1]])


def test_hours_are_selected_with_keys_alone(operators_window, hours):
    page = operators_window().open("/sessions")
    page.focus("#hours-plot")
    for key in ("End", "ArrowLeft", "Shift+ArrowLeft", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    assert page.locator("#hours .brushing").count() == 1
    assert "1 escalated" in page.text_content("#hours-said")
    page.keyboard.press("Escape")
    assert page.locator("#hours .brushing").count() == 0
    for key in ("End", "ArrowLeft", "Shift+ArrowLeft", "Shift+ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/sessions?ended=**")
    assert listed(page) == ids(hours[:3])


def test_without_a_script_each_bar_and_each_row_of_the_table_is_a_link(operators_window, hours):
    page = operators_window(java_script_enabled=False).open("/sessions")
    assert page.get_attribute("#hours-plot", "tabindex") is None
    page.click("#behind-hours > summary")
    page.click("#behind-hours a >> nth=0")
    page.wait_for_url("**/sessions?ended=**")
    assert listed(page) == ids([hours[5]])
    page.go_back()
    page.mouse.click(**bar(page, 1))
    page.wait_for_url("**/sessions?ended=**")
    assert listed(page) == ids([hours[0]])
    page.goto("/?range=7d")
    page.click("#chart-sessions-failed")
    page.wait_for_url("**/sessions?status=went_wrong&ended=7d")
    assert set(ids([hours[0], hours[4]])) <= set(listed(page))


def test_on_a_phone_the_hours_fold_and_stay_open_when_they_change(operators_window, hours):
    one = operators_window()
    page = one.open("/sessions")
    one.show(390, dark=False)
    assert not page.is_visible("#hours-plot")
    page.check("#hours-open")
    assert page.is_visible("#hours-plot")


def test_the_range_changes_all_charts_and_a_change_comes_by_itself(operators_window, hours):
    page = operators_window().open("/")
    page.click("nav[aria-label='Range of the charts'] >> text=7 d")
    page.wait_for_url("**/?range=7d")
    page.click("#behind-events-open")
    before = int(page.text_content("#chart-events-all"))
    EventFactory(session=None, level="critical")
    page.wait_for_function(f"() => document.getElementById('chart-events-all').textContent === '{before + 1}'")
    assert page.get_attribute("#behind-events", "open") is not None
    assert page.url.endswith("/?range=7d")
    page.click("#chart-events-all")
    page.wait_for_url("**/events?during=7d")


def test_the_number_of_the_highest_bar_stands_above_it(operators_window, hours):
    above = """boxes => boxes.map(box => {
        const bars = [...box.querySelectorAll("path[class^=o-]")].map(bar => bar.getBoundingClientRect().top);
        return Math.min(...bars) - box.querySelector(".plot-top").getBoundingClientRect().bottom;
    })"""
    one = operators_window()
    for path, charts in (("/", 2), ("/?range=7d", 3), ("/sessions", 1)):
        found = one.open(path).eval_on_selector_all(".plot-box:has(.plot-top)", above)
        assert len(found) == charts
        assert min(found) >= 0, (path, found)


@pytest.mark.parametrize("path", ["/", "/?range=90d", "/sessions"])
def test_charts_fit_and_are_accessible(operators_window, hours, path):
    script = axe_path()
    one = operators_window()
    page = one.open(path)
    for (width, height), dark in zip(SIZES, (False, True), strict=True):  # colours do not depend on the width
        one.show(width, dark)
        page.set_viewport_size({"width": width, "height": height})
        if path == "/sessions" and width < 700:
            page.check("#hours-open")
        for summary in page.locator(".chart .behind > summary, .hours .behind > summary").all():
            summary.click()
            table = page.locator(".behind[open] > .behind-box").bounding_box()
            assert table["x"] >= 0
            assert table["x"] + table["width"] <= width
            if script:
                assert [found for found in one.findings(script.read_text()) if MINE.search(found)] == []
            summary.click()
        assert one.sideways == 0
    assert one.complaints == []
