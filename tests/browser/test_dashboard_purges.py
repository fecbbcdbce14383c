"""Purges in a real browser: choose, confirm by keys alone, without a script, narrow and wide."""

from __future__ import annotations

import pytest

from claudeops import tasks
from claudeops.features.purge import run
from claudeops.features.purge.choice import Choice
from memories.models import Memory
from sessions_app.models import Purge, PurgeState
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TEXT = "The code of the door is kept under the blue flower pot"


@pytest.fixture
def three():
    """A plan that is counted, one that is done, and one that cannot go on."""
    counted = run.ask(Choice(ids=(MemoryFactory(observation=TEXT).pk,)), by="operator")
    run.count(counted.pk)
    done = run.begin(Choice(ids=(MemoryFactory(observation=f"{TEXT}, they say").pk,)), by="operator")
    run.carry_out(done.pk)
    Purge.objects.filter(pk=done.pk).update(receipt=Purge.objects.get(pk=done.pk).receipt | {"outside": ["/x" * 90]})
    stuck = run.begin(Choice(session=SessionFactory().pk), by="operator")
    Purge.objects.filter(pk=stuck.pk).update(problem="Texts are left, or were written again: " + "sessions/x, " * 20)
    return counted, done, stuck


def test_the_pages_have_no_barrier_and_cut_nothing(operators_window, axe, album, three):
    one = operators_window()
    for name, path in (("purges", "/forget"), *((f"purge-{row.pk}", f"/forget/{row.pk}") for row in three)):
        one.open(path)
        assert one.faults(axe, album, name) == []
    assert one.complaints == []


def test_a_memory_is_forgotten_by_keys_alone(operators_window):
    memory = MemoryFactory(observation=TEXT)
    one = operators_window()
    page = one.open(f"/memories/{memory.pk}")
    page.locator("#more summary").press("Enter")
    page.locator("#purge").press("Enter")
    page.wait_for_url("**/forget/*")
    tasks.count_purge(Purge.objects.get().pk)
    page.locator("#id_number").wait_for()
    page.locator("#id_number").fill("1")
    page.keyboard.press("Enter")
    page.get_by_text("is being carried out").wait_for()
    tasks.purge(Purge.objects.get().pk)
    page.get_by_text("What was removed").wait_for()
    assert not Memory.objects.filter(pk=memory.pk).exists()
    assert one.complaints == []


def test_it_works_without_a_script(operators_window, three):
    one = operators_window(java_script_enabled=False)
    page = one.open(f"/forget/{three[0].pk}")
    page.fill("#id_number", "7")
    with page.expect_navigation():
        page.click("#confirm-purge")
    assert "Type 1, the number of memories that would be removed." in page.content()
    one.complaints.clear()  # of the answer 422, which was wanted
    page.fill("#id_number", "1")
    with page.expect_navigation():
        page.click("#confirm-purge")
    assert Purge.objects.get(pk=three[0].pk).state == PurgeState.RUNNING
