"""The overview and the admin in a real browser: no complaint on the console, no scrolling sideways, polling works."""

from __future__ import annotations

import pytest
from django.apps import apps

from memories.models import Memory, MemoryChange
from sessions_app.models import Session, WorkerRun
from tests.support.factories import MemoryFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MEMORIES = "/admin/memories/memory/"
ADMIN = {
    "memories": ("memory", "memorychange", "project"),
    "sessions_app": (
        *("agent", "session", "event", "cooldownaction"),
        *("injectionreceipt", "logentry", "servicecheck", "workerheartbeat", "workerrun"),
    ),
    "auth": ("user", "group"),
}

LISTS = [f"/admin/{app}/{model}/" for app, models in ADMIN.items() for model in models]


def test_every_list_and_every_page_opens_without_a_complaint_and_without_scrolling_sideways(operators_window):
    WorkerRun.objects.create(host="nuc-1", pid=1, queues="default")
    one = operators_window()
    wide = []

    def look() -> None:
        """At the page on a screen, and on a telephone, where it stays: what is pressed next is pressed there."""
        for width, dark in ((1440, False), (360, True)):
            one.show(width, dark)
            if one.sideways > 0:
                wide.append((one.page.url, width, one.sideways))

    for path in ("/", "/admin/", *LISTS):
        page = one.open(path)
        look()
        if path not in LISTS or "group" in path:
            continue
        page.locator("#result_list tbody th a").first.click()
        page.wait_for_load_state()
        look()
        if "/change/" not in page.url:  # the row led to its page on the dashboard
            row = apps.get_model(*path.split("/")[2:4])._default_manager.first()
            one.open(f"{path}{row.pk}/change/")
            look()
    for path in (MEMORIES + "add/", "/admin/sessions_app/agent/add/", "/admin/password_change/"):
        one.open(path)
        look()
    assert wide == []


@pytest.mark.parametrize("width", [360, 2560])
def test_the_sign_in_page_and_the_overview_fit_any_screen(window, house, width):
    one = window(width=width)
    one.open("/login")
    assert one.sideways == 0
    one.sign_in("operator", "a long password")
    assert one.sideways == 0


def test_the_overview_follows_what_happens_and_leaves_what_is_selected_alone(operators_window):
    one = operators_window()
    page = one.open("/")
    page.evaluate("window.getSelection().selectAllChildren(document.querySelector('h1'))")
    before = int(page.text_content("#chart-memories-all"))
    MemoryFactory()
    page.wait_for_function(
        "n => document.querySelector('#chart-memories-all').textContent === String(n)", arg=before + 1
    )
    assert page.evaluate("window.getSelection().toString()") == "Overview"
    assert page.text_content("#connection") == ""


def test_the_overview_says_when_its_numbers_stand_still(window, house, operator):
    one = window()
    one.enter(operator)
    page = one.open("/")
    one.context.clear_cookies()
    page.wait_for_function("() => document.querySelector('#connection').textContent.includes('signed out')")
    assert page.locator("#overview .needs a").count() == 6
    assert page.locator("form.login-form").count() == 0
    # A refused request is on the console; that one is meant.
    assert all("403" in complaint for complaint in one.complaints)
    one.complaints.clear()
    page.click("#connection a")
    page.fill("#id_username", "operator")
    page.fill("#id_password", "a long password")
    page.click("button[type=submit]")
    page.wait_for_selector("#overview .needs")
    one.complaints.clear()


def test_memories_that_were_ticked_are_deleted_after_a_question(operators_window):
    first, second, stays = MemoryFactory(service="bulk"), MemoryFactory(service="bulk"), MemoryFactory(service="bulk")
    one = operators_window()
    page = one.open(MEMORIES + "?service=bulk")
    for memory in (first, second):
        page.check(f"input.action-select[value='{memory.pk}']")
    page.select_option("select[name=action]", "delete")
    page.click("button[name=index]")
    assert "2 memories" in page.text_content("h1")
    page.click("#bulk-form button[type=submit]")
    page.wait_for_url("**/admin/memories/memory/?service=bulk")
    assert "2 memories deleted." in page.text_content(".messagelist")
    assert set(Memory.objects.filter(service="bulk")) == {stays}
    assert MemoryChange.objects.filter(kind="deleted", actor="operator").count() == 2


def test_all_that_match_are_chosen_with_one_click_more(operators_window):
    Memory.objects.bulk_create(MemoryFactory.build(observation=f"Row {n}", service="bulk") for n in range(120))
    one = operators_window()
    page = one.open(MEMORIES + "?service=bulk")
    page.check("#action-toggle")
    page.click("span.question a")
    assert "All 120 selected" in page.text_content("span.all")
    page.select_option("select[name=action]", "set_confidence")
    page.click("button[name=index]")
    page.fill("input[name=confidence]", "0.5")
    page.click("#bulk-form button[type=submit]")
    page.wait_for_url("**/admin/memories/memory/?service=bulk")
    assert set(Memory.objects.filter(service="bulk").values_list("confidence", flat=True)) == {0.5}


def test_on_a_telephone_the_filters_open_when_asked_for(operators_window):
    one = operators_window(width=360)
    page = one.open(MEMORIES)
    filters = page.locator("#changelist-filter")
    assert not filters.is_visible()
    page.click("label[for=filters-open]")
    assert filters.is_visible()
    page.click("#changelist-filter a[href='?status=active']")
    page.wait_for_url("**?status=active")


@pytest.mark.smoke
def test_a_session_is_queued_and_retried_in_the_admin_by_keys(operators_window):
    one = operators_window()
    page = one.open("/admin/sessions_app/session/add/")
    for width, dark in ((1440, False), (390, True)):
        one.show(width, dark)
        assert one.sideways <= 0
    page.focus("#id_prompt")
    page.keyboard.type("Fix the login.")
    page.focus("#id_title")
    page.keyboard.type("Login")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/sessions_app/session/")
    made = Session.objects.get(task="Fix the login.")
    assert made.brief["title"] == "Login"
    Session.objects.filter(pk=made.pk).update(status="failed")

    page.reload()
    page.focus(f"input[name=_selected_action][value='{made.pk}']")
    page.keyboard.press("Space")
    page.select_option("select[name=action]", "retry")
    page.focus("button[name=index]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#id_note")
    for width, dark in ((1440, False), (390, True)):
        one.show(width, dark)
        assert one.sideways <= 0
    page.focus("#id_note")
    page.keyboard.type("Look at the cookie.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(".messagelist")
    assert Session.objects.get(parent=made).brief["note"] == "Look at the cookie."


def test_focus_can_be_seen(operators_window):
    one = operators_window()
    page = one.open("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
