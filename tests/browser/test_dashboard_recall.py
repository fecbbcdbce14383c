"""Recall in a real browser: asked from any page, a hit marked without leaving it, and all of it without JavaScript."""

from __future__ import annotations

from typing import Any

import pytest

from memories.models import RecallMark
from tests.browser.conftest import Window
from tests.support.factories import MemoryFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

QUESTION = "/memories/recall?query=nightly+backup"


@pytest.fixture
def backup(house: Any) -> Any:
    return MemoryFactory(service="nas", observation="The nightly backup needs the NAS mounted")


def test_the_slash_goes_to_the_pages_own_search(operators_window, backup):
    one = operators_window()
    name = "document.activeElement.name || ''"
    for path, wanted in (("/memories", "q"), ("/memories/recall", "query")):
        page = one.open(path)
        page.keyboard.press("/")
        page.wait_for_function(f"({name}) === '{wanted}'")


def test_a_question_typed_into_the_palette_is_answered(operators_window, backup):
    page = operators_window().open("/")
    page.keyboard.press("/")  # the page has no search field of its own
    page.fill("#palette-text", "nightly backup")
    page.click("#palette >> text=Search all memories")
    page.wait_for_url("**/memories/recall?query=nightly+backup")
    assert page.text_content(f"#hit-{backup.pk} .hit-text") == backup.observation


@pytest.mark.smoke
def test_a_mark_is_kept_and_the_page_stays_where_it_is(operators_window, backup):
    page = operators_window().open(QUESTION)
    page.evaluate("document.body.dataset.same = 'yes'")
    page.click(f"#mark-{backup.pk}-right")
    page.wait_for_selector(f"#mark-{backup.pk}-right[aria-pressed=true]")
    assert page.evaluate("document.body.dataset.same") == "yes"
    assert RecallMark.objects.get().vote == "right"
    page.click(f"#mark-{backup.pk}-wrong")
    page.wait_for_selector(f"#mark-{backup.pk}-wrong[aria-pressed=true]")
    page.click(f"#mark-{backup.pk}-wrong")
    page.wait_for_selector(f"#mark-{backup.pk}-wrong[aria-pressed=false]")
    assert not RecallMark.objects.exists()


def test_without_javascript_a_hit_can_be_opened_up_and_marked(chromium, live_server, backup):
    one = Window(chromium, live_server.url, java_script_enabled=False, viewport={"width": 1440, "height": 900})
    one.sign_in("operator", "a long password")
    page = one.open(QUESTION)
    page.click(f"#hit-{backup.pk} summary")
    assert page.is_visible(f"#hit-{backup.pk} .parts")
    page.click(f"#mark-{backup.pk}-right")
    page.wait_for_selector(f"#mark-{backup.pk}-right[aria-pressed=true]")
    assert page.url.endswith(f"#hit-{backup.pk}")
    assert RecallMark.objects.get().vote == "right"
    one.context.close()


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (360, True)])
def test_answers_what_was_asked_and_the_api_have_no_barrier_and_fit(operators_window, axe, backup, width, dark):
    one = operators_window(width=width, dark=dark)
    for path in (QUESTION, "/memories/recall/asked", "/api/docs"):
        page = one.open(path)
        for summary in page.query_selector_all("main summary"):
            summary.click()
        assert one.findings(axe) == [], path
        assert not one.sideways, path
