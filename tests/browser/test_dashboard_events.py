"""Events and cooldowns in a real browser: what an agent reports appears by itself; a cooldown is cleared in place."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.models import CooldownClearance, Event
from tests.browser.test_dashboard_pages import picture_name
from tests.support.factories import CooldownActionFactory, EventFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SOON = 20_000


def test_an_event_appears_on_the_open_page(operators_window):
    page = operators_window().open("/events")
    event = EventFactory(level="warning", service="caddy", message="The certificate ends in 3 days.")
    page.wait_for_selector(f"#event-{event.pk}", timeout=SOON)
    assert page.locator("#event-rows > tr").first.get_attribute("id") == f"event-{event.pk}"
    assert page.text_content("#events-count") == "2 events"


def test_while_a_row_has_the_focus_new_events_are_held_back_until_they_are_asked_for(operators_window, axe):
    one = operators_window()
    page = one.open("/events")
    page.keyboard.press("j")
    before = page.evaluate("document.activeElement.dataset.row")
    events = EventFactory.create_batch(2, message="The certificate ends in 3 days.")
    page.wait_for_selector("#events-held >> text=2 new", timeout=SOON)
    events.append(EventFactory(message="It ended."))
    page.wait_for_selector("#events-held >> text=3 new", timeout=SOON)
    assert page.locator("#event-rows > tr").count() == 1
    assert page.evaluate("document.activeElement.dataset.row") == before
    assert one.findings(axe) == []
    page.click("#events-held-show")
    page.wait_for_selector(f"#event-{events[0].pk}")
    shown = page.eval_on_selector_all("#event-rows > tr", "rows => rows.map(row => row.id)")
    assert shown[:3] == [f"event-{event.pk}" for event in reversed(events)]
    assert page.text_content("#events-held").strip() == ""


def test_the_level_is_chosen_and_stands_in_the_address(operators_window):
    EventFactory(level="info", message="All quiet.")
    page = operators_window().open("/events")
    page.click("#more-filters summary")
    with page.expect_navigation():
        page.select_option("#id_level", "critical")
    assert "level=critical" in page.url
    assert page.locator("#event-rows > tr").count() == 1
    assert page.locator("#event-rows >> text=All quiet.").count() == 0
    with page.expect_navigation():
        page.click("[aria-label='Remove the filter level']")
    page.fill("[data-search]", "level:info quiet")
    page.press("[data-search]", "Enter")
    page.wait_for_url("**/events?level=info&text=quiet")
    assert page.locator("#event-rows > tr").count() == 1


def test_without_a_script_the_bar_and_the_columns_work(operators_window):
    EventFactory(level="warning", message="The certificate ends soon.")
    page = operators_window(java_script_enabled=False).open("/events")
    page.fill("[data-search]", "level:warning certificate")
    page.press("[data-search]", "Enter")
    page.wait_for_url("**/events?level=warning&text=certificate")
    page.click("#columns summary")
    page.uncheck("#columns [value=agent]")
    with page.expect_navigation():
        page.click("#columns .b-main")
    page.wait_for_url("**/events?level=warning&text=certificate")
    assert page.locator(".cell-agent").count() == 0
    assert page.locator("#event-rows > tr").count() == 1


@pytest.mark.parametrize(("size", "most"), [((1440, 900), 180), ((390, 844), 420)])
def test_the_first_event_stands_high_and_a_long_one_takes_one_line(operators_window, size, most):
    EventFactory.create_batch(3, service="caddy", message="It takes long.\n" * 60)
    one = operators_window(width=size[0])
    page = one.open("/events")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    first = page.locator("#event-rows > tr").first.bounding_box()
    assert first["y"] < most
    assert size[0] < 1000 or first["height"] <= 37
    assert one.sideways == 0
    cut = """() => [...document.querySelectorAll("#main a, #main button, #main input, #main summary")]
        .filter(e => e.checkVisibility({contentVisibilityAuto: true}) && !e.closest(".views"))
        .filter(e => { const r = e.getBoundingClientRect(); return r.left < 0 || r.right > innerWidth + 1; })
        .map(e => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(cut) == []


def test_a_cooldown_is_cleared_in_place_while_a_reason_is_typed_for_another(operators_window, axe, album):
    CooldownActionFactory.create_batch(2, service="caddy", message="It did not answer")
    one = operators_window()
    page = one.open("/cooldowns")
    page.click("#clear-jellyfin > summary")
    page.fill("#clear-jellyfin-reason", "The disk")
    CooldownActionFactory(service="paperless")
    page.wait_for_selector("#cooldown-paperless", timeout=SOON)
    assert page.input_value("#clear-jellyfin-reason") == "The disk"
    page.click("#clear-caddy > summary")
    page.fill("#clear-caddy-reason", "The certificate is renewed.")
    assert one.findings(axe) == []
    album(page, "cooldowns-clear-1440-light.png")
    page.press("#clear-caddy-reason", "Enter")
    page.wait_for_selector("#toasts >> text=Restart of caddy: cleared.", timeout=SOON)
    assert "The certificate is renewed." in str(page.text_content("#cooldown-caddy"))
    assert page.input_value("#clear-jellyfin-reason") == "The disk"
    assert CooldownClearance.objects.get().by == "operator"


@pytest.mark.parametrize(("width", "dark"), [(1440, True), (360, False)])
def test_both_pages_fit_and_have_no_barriers(operators_window, axe, album, width, dark):
    for n in range(9):
        EventFactory(level=["info", "warning", "critical"][n % 3], service="caddy", message="It takes long. " * (n + 1))
    CooldownActionFactory.create_batch(2, service="caddy", message="It did not answer", outcome="failure")
    CooldownActionFactory(service="caddy", action="redeployment")
    one = operators_window(width=width, dark=dark)
    for path in ("/events", "/events?level=critical", "/cooldowns", "/cooldowns?service=caddy"):
        page = one.open(path)
        album(page, picture_name(path, width, dark))
        assert one.findings(axe) == []
        assert one.sideways == 0


def open_critical(page: Any) -> str:
    """The number of the overview's strip."""
    page.goto("/")
    return str(page.text_content("#figure-critical b")).split()[0]


def test_an_event_is_acknowledged_and_opened_again_and_the_strip_agrees(operators_window):
    one = operators_window()
    event = EventFactory(level="critical", message="The disk fails.")
    page = one.open("/")
    assert open_critical(page) == "2"
    page.goto("/events")
    page.click(f"#event-{event.pk}-do")
    page.wait_for_selector(f"#event-{event.pk} >> text=Reopen", timeout=SOON)
    assert open_critical(page) == "1"
    page.goto("/events")
    other = Event.objects.exclude(pk=event.pk).get()
    page.click(f"#event-{other.pk}-do")
    page.click("#toasts >> text=Undo")
    page.wait_for_selector("#toasts >> text=1 event is open again.", timeout=SOON)
    page.wait_for_selector(f"#event-{other.pk}-do >> text=Acknowledge", timeout=SOON)
    assert open_critical(page) == "1"


@pytest.mark.parametrize("by_key", [False, True])
def test_selected_events_are_acknowledged_by_the_bar_and_by_its_key(operators_window, by_key):
    events = EventFactory.create_batch(3, level="critical", message="The disk fails.")
    page = operators_window().open("/events")
    for event in events:
        page.check(f"#event-{event.pk}-pick")
    page.wait_for_selector("#bulk >> text=3 selected")
    if by_key:
        page.keyboard.press("a")
    else:
        page.click("#bulk [value=acknowledge]")
    page.wait_for_selector("#toasts >> text=3 events are acknowledged.", timeout=SOON)
    page.wait_for_selector(f"#event-{events[0].pk}-do >> text=Reopen", timeout=SOON)
    assert open_critical(page) == "1"
