"""Telemetry in a real browser: the list with its chart and a record, with keys, narrow and wide, without a script."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.models import GateDecision, ProposalDecision, ProposalVerdict, TelemetryRecord, Tier
from memories.telemetry import record
from tests.support.factories import MemoryFileFactory, ProposalFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def some():
    now = timezone.now()
    for day in range(20):
        at = now - timedelta(days=day)
        level = ("info", "warning", "error")[day % 3]
        counts = {f"a_count_with_a_long_name_{n}": 12_345 for n in range(8)}
        record(
            "memory.observe.completed",
            component="observe",
            source="transcript",
            level=level,
            success=level != "error",
            key=f"day {day}",
            duration_ms=1234,
            at=at,
            **counts,
        )


def test_the_list_and_a_record_have_no_barrier_and_cut_nothing(operators_window, axe, album, some):
    one = operators_window()
    one.open("/diagnostics")
    assert one.faults(axe, album, "telemetry") == []
    one.open(f"/diagnostics/{TelemetryRecord.objects.first().pk}")
    assert one.faults(axe, album, "telemetry-record") == []
    assert one.complaints == []


def test_the_figures_of_gate_and_triage_have_no_barrier_and_cut_nothing(operators_window, axe, album):
    for number in range(9):
        verdict, agent = ("allow", "hold", "discard")[number % 3], f"an-agent-with-a-very-long-name-{number % 4}"
        GateDecision.objects.create(channel="text", taxonomy="ops", verdict=verdict, reasons=["command"], agent=agent)
    decision = {"tier": Tier.RULES, "verdict": ProposalVerdict.REJECT, "rule": "too_short", "by": "system"}
    ProposalDecision.objects.create(proposal=ProposalFactory(), **decision)
    one = operators_window(java_script_enabled=True)
    page = one.open("/diagnostics")
    page.click("#to-decisions")
    page.click("#range-7d")
    page.wait_for_url("**/diagnostics/decisions?range=7d")
    assert one.faults(axe, album, "decisions") == []
    assert one.complaints == []


def test_a_bar_leads_to_its_records_by_keys_alone(operators_window, some):
    page = operators_window().open("/diagnostics")
    page.locator("#behind-by-day-1").evaluate("link => link.closest('details').open = true")
    page.locator("#behind-by-day-1").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/diagnostics?during=*")
    assert page.locator("[data-row]").count() == 1


def test_what_has_gone_quiet_stands_on_the_overview(operators_window, axe, album):
    MemoryFileFactory(problem="it is missing in a repository with a very long name " * 4, problem_since=timezone.now())
    one = operators_window()
    page = one.open("/")
    page.click("#figure-silence")
    assert "MEMORY.md cannot be used" in page.inner_text("#piece-silence")
    assert one.faults(axe, album, "overview-silence") == []
