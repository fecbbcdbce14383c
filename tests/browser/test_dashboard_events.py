"""Events and cooldowns in a real browser: what an agent reports appears by itself; a cooldown is cleared in place."""

from __future__ import annotations

import pytest

from sessions_app.models import CooldownClearance
from tests.browser.test_dashboard_pages import picture_name
from tests.factories import CooldownActionFactory, EventFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SOON = 20_000


def test_an_event_appears_on_the_open_page_and_the_row_in_use_stays(operators_window):
    one = operators_window()
    page = one.open("/events")
    page.keyboard.press("j")
    before = page.evaluate("document.activeElement.dataset.row")
    event = EventFactory(level="warning", service="caddy", message="The certificate ends in 3 days.")
    page.wait_for_selector(f"#event-{event.pk}", timeout=SOON)
    assert page.locator("#event-rows > tr").first.get_attribute("id") == f"event-{event.pk}"
    assert page.evaluate("document.activeElement.dataset.row") == before
    assert page.text_content("#events-count") == "2 events"


def test_the_level_is_chosen_and_stands_in_the_address(operators_window):
    EventFactory(level="info", message="All quiet.")
    page = operators_window().open("/events")
    with page.expect_navigation():
        page.select_option("#id_level", "critical")
    assert "level=critical" in page.url
    assert page.locator("#event-rows > tr").count() == 1


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


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (360, False), (360, True)])
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
