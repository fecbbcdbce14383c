"""The page of an agent in a real browser: its calendar, its actions by keys and without a script, any screen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sessions_app.models import Agent, Session, Status
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LONG = "averyveryverylongword" * 8
STATUSES = (Status.COMPLETED, Status.FAILED, Status.ESCALATED, Status.STOPPED)


@pytest.fixture
def watch(operator: Any) -> Agent:
    """An agent with sessions of every outcome on many days, long words everywhere, and one agent that never ran."""
    AgentFactory(slug="idle", enabled=False)
    agent = AgentFactory(
        slug="watch-" + "w" * 50,
        name=LONG,
        description=f"Looks around {LONG}",
        schedule_kind="interval",
        interval_seconds=3600,
        project=ProjectFactory(slug="nas"),
        prompt_template=f"Look at {LONG}",
        allowed_tools=[f"Bash({LONG})"],
    )
    now = timezone.now()
    for n in range(24):
        at = now - timedelta(days=3 * n)
        session = SessionFactory(
            agent=agent, status=STATUSES[n % 4], queued_at=at, started_at=at, ended_at=at, summary=f"Ran {n} {LONG}"
        )
    MemoryFactory(session=session, observation=f"Takes long {LONG}")
    return agent


@pytest.fixture
def one(window: Any, operator: Any, watch: Agent) -> Any:
    one = window()
    one.enter(operator)
    return one


def test_with_keys_alone_a_day_of_the_table_leads_to_its_sessions(one, watch):
    page = one.open(f"/agents/{watch.slug}")
    page.focus("#behind-days-open")
    page.keyboard.press("Enter")
    page.focus("#behind-days-1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions?agent=watch-*&ended=*")
    assert page.locator("tr[data-row]").count() == 1
    page = one.open(f"/agents/{watch.slug}")
    page.focus("#tab-memories")
    page.keyboard.press("Enter")
    page.wait_for_selector("#tabs >> text=Takes long")


def test_without_a_script_it_is_paused_resumed_and_its_tabs_are_read(window, operator, watch):
    one = window(java_script_enabled=False, often=False)
    one.enter(operator)
    page = one.open(f"/agents/{watch.slug}")
    with page.expect_navigation():
        page.click("#agent-switch")
    assert "paused" in page.text_content("#state")
    with page.expect_navigation():
        page.click("#agent-switch")
    assert "enabled" in page.text_content("#state")
    with page.expect_navigation():
        page.click("#tab-prompt")
    assert "Look at" in page.text_content(".agent-prompt")


def test_the_page_has_no_barrier_does_not_run_over_and_cuts_no_control(one, watch, axe, album):
    own = f"/agents/{watch.slug}"
    faults = []
    for name, path in (
        ("runs", own),
        ("memories", f"{own}?tab=memories"),
        ("prompt", f"{own}?tab=prompt"),
        ("idle", "/agents/idle"),
    ):
        one.open(path)
        faults += one.faults(axe, album, f"agent-{name}")
    assert faults == []


def test_after_run_now_the_page_follows_the_session_without_a_reload(one, watch):
    page = one.open(f"/agents/{watch.slug}?tab=runs")
    page.click("#agent-run")
    session = Session.objects.order_by("-pk").first()
    link = page.locator(f"#run-{session.pk}")
    link.wait_for()
    for status, reason in ((Status.RUNNING, ""), (Status.FAILED, "The CLI was not found")):
        Session.objects.filter(pk=session.pk).update(status=status, status_reason=reason)
        page.locator("#agent-running" if status == Status.RUNNING else "#agent-run").wait_for()
    assert link.text_content() == f"#{session.pk} The CLI was not found"
    page.click("#tab-prompt")
    page.locator(".agent-prompt").wait_for()
    Session.objects.filter(pk=session.pk).update(status_reason="Else")
    with page.expect_response(lambda answer: "seen=" in answer.url and answer.status == 200):
        pass
    assert page.locator(".agent-prompt").is_visible()
    assert one.complaints == []
