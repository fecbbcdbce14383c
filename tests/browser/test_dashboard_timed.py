"""What surfaces next in a real browser, and the form that sets a window: narrow and wide, by keys, without a script."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.support.factories import MemoryFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def windows():
    today = timezone.now().date()
    long = "The certificate of the vault renews, and the clients have to load it again. " * 6
    return [
        MemoryFactory(observation=long, surface=f"{today + timedelta(days=ahead)}..{today + timedelta(days=ahead + 1)}")
        for ahead in (0, 3, 6)
    ]


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_without_findings(operators_window, axe, windows, width, dark):
    one = operators_window(width=width, dark=dark)
    page = one.open("/memories/timed")
    assert page.locator("[data-row]").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for control in page.locator("main a:visible").all():
        box = control.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width + 1
    assert one.findings(axe) == []


def test_without_a_script_a_window_is_set_and_stands_in_the_list(operators_window, axe):
    memory = MemoryFactory(observation="The certificate of the vault renews")
    one = operators_window(java_script_enabled=False)
    page = one.open(f"/memories/{memory.pk}?edit")
    page.fill("[name=surface]", "every full moon")
    with page.expect_navigation():
        page.press("[name=surface]", "Enter")
    assert "Allowed are 2026-12-01" in page.text_content(".errorlist")
    one.complaints.clear()  # that it was refused is on the console
    page.fill("[name=surface]", f"{timezone.now().date()}..{timezone.now().date() + timedelta(days=2)}")
    with page.expect_navigation():
        page.press("[name=surface]", "Enter")
    assert "Told until" in page.text_content("#facts")
    page.goto("/memories/timed")
    assert page.text_content(f"[data-row='{memory.pk}'] strong") == "told now"
