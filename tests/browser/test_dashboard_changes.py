"""The list of changes of memories in a real browser: read with keys, narrow and wide, without a script."""

from __future__ import annotations

import pytest

from memories.models import MemoryChange
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def changed():
    session = SessionFactory()
    return [
        MemoryChange.objects.create(
            kind=kind,
            memory=MemoryFactory(observation="The dump of the database takes an hour. " * 8),
            session=session,
            actor="agent:watch",
            before={"confidence": 0.7},
            after={"confidence": 0.8},
        )
        for kind in ("created", "reinforced", "contradicted")
    ]


@pytest.mark.parametrize(("width", "height", "most"), [(1440, 900, 180), (390, 844, 420)])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_its_first_row_stands_high(operators_window, axe, changed, width, height, most, dark):
    one = operators_window(width=width, dark=dark)
    page = one.open("/memories/changes")
    page.set_viewport_size({"width": width, "height": height})
    assert page.locator("[data-row]").first.bounding_box()["y"] < most
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for control in page.locator("main a:visible, main summary:visible, main input:visible").all():
        box = control.bounding_box()
        if box and not control.evaluate("one => Boolean(one.closest('.views, .clip, thead'))"):
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width + 1
    assert one.findings(axe) == []


def test_the_keys_go_through_the_rows_and_open_the_change_on_its_memory(operators_window, changed):
    page = operators_window().open("/memories/changes")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/memories/{changed[1].memory_id}#change-{changed[1].pk}")


def test_without_a_script_a_view_and_the_bar_narrow_the_list(operators_window, changed):
    page = operators_window(java_script_enabled=False).open("/memories/changes")
    page.click(".views >> text=Confirmed")
    page.wait_for_url("**/memories/changes?kind=confirmed")
    assert page.locator("[data-row]").count() == 1
    page.fill("[data-search]", "by:people")
    page.press("[data-search]", "Enter")
    page.wait_for_url("**/memories/changes?kind=confirmed&by=people")
    assert page.locator("[data-row]").count() == 0


def test_a_number_of_the_overview_opens_its_list(operators_window, changed):
    page = operators_window().open("/")
    page.click("#chart-changes-contradicted")
    page.wait_for_url("**/memories/changes?kind=contradicted&during=24h")
    assert page.locator("[data-row]").count() == 1
