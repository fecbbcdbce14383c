"""The projects' pages in a real browser: approve all that match, renew, undo, forms without a script, any screen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.models import Memory, Project
from sessions_app.models import UsedMemory
from tests.support.factories import AgentFactory, EventFactory, MemoryFactory, ProjectFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LONG = "averyveryverylongword" * 8


@pytest.fixture
def nas(operator: Any) -> Project:
    """A project with memories of every kind, sessions, an agent and an event; beside it one without anything."""
    now = timezone.now()
    project = ProjectFactory(slug="nas-migration", name="NAS", description=f"Moves shares {LONG}", path=f"/srv/{LONG}")
    ProjectFactory(slug="empty")
    agent = AgentFactory(slug="mover", project=project)
    texts = ("Leave /srv/anna alone", "Copy without -z", f"DNS points to nas {LONG}", "The pool is tank2")
    for n, text in enumerate(texts):
        memory = MemoryFactory(
            pk=n + 1,
            project=project,
            taxonomy="project",
            category="pattern" if n == 3 else "warning",
            service=None,
            observation=text,
            confidence=0.5,
            tags=["src/core/**", LONG[:40]],
            expires_at=None if n == 3 else now + timedelta(days=1 + 5 * n, minutes=5),
        )
        session = SessionFactory(project=project, agent=agent, ended_at=now, summary=f"Moved {n} {LONG}")
        UsedMemory.objects.create(memory_id=memory.pk, session=session, how="named", helped=n != 1, credited_at=now)
        EventFactory(session=session, message=f"Event {n} {LONG}")
    MemoryFactory(pk=9, project=project, taxonomy="project", category="context", active=False, observation="Old")
    return project


@pytest.fixture
def one(window: Any, operator: Any, nas: Project) -> Any:
    one = window()
    one.enter(operator)
    return one


def test_all_that_match_are_approved_at_once(one):
    page = one.open("/projects/nas-migration?category=warning")
    page.check("[data-pick-page]")
    page.wait_for_selector("#bulk:visible")
    page.evaluate("document.querySelector('#bulk [name=all_matching]').checked = true")
    page.click("#bulk button[value=approve]")
    page.wait_for_selector("h1 >> text=Approve: 3 memories")
    page.click("#bulk-form button[type=submit]")
    page.wait_for_selector("#toasts >> text=3 memories approved")
    assert page.url.endswith("/projects/nas-migration?category=warning")
    confidences = dict(Memory.objects.values_list("pk", "confidence"))
    assert [confidences[pk] for pk in (1, 2, 3, 4)] == [1.0, 1.0, 1.0, 0.5]


def test_a_row_is_renewed_in_place_and_undone(one):
    page = one.open("/projects/nas-migration")
    end = Memory.objects.get(pk=1).expires_at
    assert "in 24 hours" in page.text_content("#memory-1 .cell-fades")
    page.click("#memory-1-renew")
    page.wait_for_selector("#toasts >> text=Memory 1 expires 30 days later.")
    assert "in 31 days" in page.text_content("#memory-1 .cell-fades")
    assert Memory.objects.get(pk=1).expires_at == end + timedelta(days=30)
    page.click("#toasts .toast-undo button")
    page.wait_for_selector("#memory-1 .cell-fades >> text=in 24 hours")
    assert Memory.objects.get(pk=1).expires_at == end


def test_selected_rows_are_renewed_with_the_keyboard_alone(one):
    page = one.open("/projects/nas-migration")
    page.focus("#memory-1-pick")
    page.keyboard.press("Space")
    page.focus("#memory-2-pick")
    page.keyboard.press("Space")
    page.wait_for_selector("#bulk:visible")
    page.focus("#bulk button[value=extend]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#toasts >> text=2 memories renewed by 30 days")
    assert Memory.objects.get(pk=2).expires_at > timezone.now() + timedelta(days=35)


def test_a_row_is_approved_and_deactivated_and_what_it_offers_follows(one):
    Memory.objects.filter(pk=2).update(provisional="an instruction", confirmed_at=None)
    page = one.open("/projects/nas-migration")
    page.click("#memory-2-approve")
    page.wait_for_selector("#memory-2-approve", state="detached")
    page.click("#memory-2-deactivate")
    page.wait_for_selector("#memory-2-activate")
    assert page.locator("#memory-2-renew").count() == 0
    memory = Memory.objects.get(pk=2)
    assert (memory.active, memory.confidence) == (False, 1.0)


def test_without_a_script_a_project_and_a_memory_are_made_and_settings_saved(window, operator, nas):
    one = window(java_script_enabled=False, often=False)
    one.enter(operator)
    page = one.open("/projects")
    page.click("#add > summary")
    page.fill("#project-slug", "web")
    page.fill("#project-path", "/srv/web")
    page.fill("#project-expire_warning", "soon")
    with page.expect_navigation():
        page.click("#add button[type=submit]")
    assert "days, never, or nothing." in page.text_content("#add")
    one.complaints.clear()  # the 422, which is meant
    page.fill("#project-expire_warning", "9")
    with page.expect_navigation():
        page.click("#add button[type=submit]")
    assert page.text_content("h1") == "web"
    page.fill("#add-observation", "Port 80 is taken")
    page.select_option("#add-category", "warning")
    page.fill("#add-tags", "port, src/**")
    with page.expect_navigation():
        page.click("#add button[type=submit]")
    assert "in 8 days" in page.text_content("tr[data-row] .cell-fades")
    with page.expect_navigation():
        page.click("tr[data-row] >> text=+30")
    assert "in 38 days" in page.text_content("tr[data-row] .cell-fades")
    page.click("#project-settings")
    page.fill("#project-memories_in_prompt", "3")
    with page.expect_navigation():
        page.click("main form button[type=submit]")
    assert Project.objects.get(slug="web").memories_in_prompt == 3


def test_what_ends_is_a_table_that_leads_to_the_list_of_it(one):
    page = one.open("/projects")
    assert page.locator(".ends tbody tr").count() == 1
    page.click("#behind-ends-open")
    assert "nas-migration" in page.text_content("#behind-ends .behind-box")
    page.click("#behind-ends-open")
    page.click("#ends-1")
    page.wait_for_url("**/projects/nas-migration?fades=%3C56d")
    assert page.locator("tr[data-row]").count() == 3


def test_no_page_of_projects_has_a_barrier_runs_over_or_cuts_a_control(one, axe, album):
    tabs = [f"/projects/nas-migration?tab={tab}" for tab in ("sessions", "agents", "events")]
    faults = []
    for path in ("/projects", "/projects/nas-migration", "/projects/empty", "/projects/empty/settings", *tabs):
        page = one.open(path)
        for details in page.query_selector_all("main details.add"):
            details.evaluate("one => { one.open = true; }")
        faults += one.faults(axe, album, f"project{path.replace('/', '-').replace('?', '-')}")
    assert faults == []
