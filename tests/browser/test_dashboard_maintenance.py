"""The nightly maintenance in a real browser: its pages, and the undo of a run by keys and without a script."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.curate.maintenance import begin_by_hand, go_on
from memories.models import MaintenanceRun, Memory
from tests.support.factories import MemoryFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SAME = "The backup of jellyfin runs at 03:00 and takes an hour"


@pytest.fixture
def run() -> MaintenanceRun:
    old = timezone.now() - timedelta(days=44)
    for _ in range(2):
        MemoryFactory(observation=SAME, service="media")
    MemoryFactory(observation="Host " + "a" * 150 + " swaps", service="host", updated_at=old)
    done = go_on(begin_by_hand(by="paula"))
    assert done is not None
    return done


def test_the_pages_have_no_barrier_and_cut_nothing(operators_window, axe, album, run):
    one = operators_window()
    for name, path in (
        ("maintenance", "/maintenance"),
        ("maintenance-runs", "/maintenance/runs"),
        ("maintenance-dry-run", "/maintenance/dry-run"),
        ("maintenance-step", f"/maintenance/{run.pk}/merged"),
    ):
        one.open(path)
        assert one.faults(axe, album, name) == []
    assert one.complaints == []


def test_a_nightly_run_is_undone_by_keys_alone(operators_window, run):
    one = operators_window()
    page = one.open("/maintenance")
    page.get_by_role("button", name="Undo: Merged").press("Enter")
    page.get_by_text("2 memories are as they were before").wait_for()
    page.get_by_role("button", name="Undo all").press("Enter")
    page.get_by_text("undid it").wait_for()
    assert Memory.objects.filter(observation=SAME, active=True).count() == 2
    assert Memory.objects.get(service="host").confidence == 0.7
    assert one.complaints == []


def test_it_works_without_a_script(operators_window, run):
    one = operators_window(java_script_enabled=False)
    page = one.open("/maintenance")
    page.get_by_role("button", name="Undo all").click()
    page.get_by_text("3 memories are as they were before").wait_for()
    page.get_by_role("button", name="Run it now").click()
    page.get_by_text("A worker begins within a minute.").wait_for()
