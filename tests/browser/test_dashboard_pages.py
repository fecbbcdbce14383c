"""Every page of the sidebar as a person meets it: no complaint, no barrier, on any screen; pictures of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from claudeops.workers.up import FILE, first_account
from memories.models import MemoryChange
from tests.browser.conftest import COLOURS, Window
from tests.support.factories import EventFactory, MemoryFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SIDEBAR = [
    "Overview",
    "Inbox",
    "Sessions",
    "Events",
    "Memories",
    "Changes",
    "Recall",
    "Memory file",
    "Learning log",
    "Summary",
    "Decisions",
    "Journal",
    "Agents",
    "Projects",
    "Cooldowns",
    "Maintenance",
    "Diagnostics",
    "Preferences",
    "Forget",
    "Admin",
]
SCREENS = [
    (1440, False),
    (1440, True),
    (720, True),
    (390, False),
    (360, False),
    (360, True),
    (2560, False),
]
"""720 is what remains of 1440 at a zoom of 200 %."""
CHECKED = {(1440, False): None, (1440, True): COLOURS, (360, True): None}
"""Where a page is searched for barriers, and for which: each layout, and each layout's colours."""


def links(page: Any) -> dict[str, str]:
    """The sidebar: label → address, in its order."""
    found = page.eval_on_selector_all(".side-nav a", "all => all.map(a => [a.textContent, a.getAttribute('href')])")
    return dict(found)


def picture_name(path: str, width: int, dark: bool) -> str:
    name = re.sub(r"\W+", "-", re.sub(r"\d+", "one", path)).strip("-") or "overview"
    return f"{name}-{width}-{'dark' if dark else 'light'}.png"


def places(one: Window) -> Iterator[str]:
    """Opens, one after the other, every page of the sidebar, the first row of each dashboard list, and what stands
    behind a memory. Each address comes when its page is open.
    """
    rows = []
    for path in links(one.open("/")).values():
        page = one.open(path)
        row = page.locator("[data-row] [data-open]").first
        if path != "/" and not path.startswith("/admin/") and row.count():
            rows.append(str(row.get_attribute("href")).partition("#")[0])  # one page, whatever place in it
        yield path
    memory = next(path for path in rows if re.fullmatch(r"/memories/\d+", path))
    change = MemoryChange.objects.filter(memory__isnull=False).order_by("pk").first()
    session = next(path for path in rows if re.fullmatch(r"/sessions/\d+", path))
    further = [f"{session}/compare"]
    further += [f"/memories/{change.memory_id}", f"/memories/{change.memory_id}/changes/{change.pk}"] if change else []
    for path in dict.fromkeys((*rows, f"{memory}/sessions", *further, "/ask?agent=")):
        one.open(path)
        yield path


@pytest.mark.smoke
def test_the_first_sign_in_with_what_up_wrote_down(window, tmp_path):
    written = first_account(tmp_path)
    noted = (tmp_path / FILE).read_text(encoding="utf-8")
    assert written.password
    assert written.password in noted
    one = window()
    one.open("/admin/memories/memory/")
    assert one.page.url.endswith("/login?next=/admin/memories/memory/")
    one.sign_in(written.user, written.password)
    assert one.page.text_content("h1") == "Overview"
    assert list(links(one.page)) == SIDEBAR


def test_every_page_is_marked_in_the_sidebar_as_the_one_that_is_shown(operators_window):
    one = operators_window()
    for label, path in links(one.open("/")).items():
        page = one.open(path)
        assert page.eval_on_selector_all(".side-nav [aria-current]", "all => all.map(a => a.textContent)") == [label]


def test_every_page_is_free_of_complaints_and_barriers_and_fits(operators_window, axe, album):
    for n in range(12):
        MemoryFactory(service=["caddy", "jellyfin", None][n % 3], confidence=0.2 + n / 15)
        EventFactory(level=["info", "warning", "critical"][n % 3], service="caddy")
    one = operators_window()
    findings, wide, cut = [], [], []
    for path in places(one):
        page = one.page
        for width, dark in SCREENS:
            one.show(width, dark)
            if (width, dark) in CHECKED:
                findings += [(width, dark, finding) for finding in one.findings(axe, CHECKED[width, dark])]
            album(page, picture_name(path, width, dark))
            if one.sideways:
                wide.append((path, width, one.sideways))
            if not dark or width == 720:
                cut += [(path, width, control) for control in one.cut]
    assert wide == []
    assert cut == []
    assert findings == []


@pytest.mark.parametrize("dark", [False, True])
def test_the_sign_in_page_and_a_refusal_have_no_barrier(window, operator, axe, album, dark):
    one = window(dark=dark, width=360)
    page = one.open("/login")
    findings = one.findings(axe)
    album(page, picture_name("login", 360, dark))
    one.sign_in("operator", "a long password")
    page.goto("/nowhere")
    findings += one.findings(axe)
    assert findings == []
    one.complaints.clear()  # the 404, which is meant


@pytest.mark.parametrize(("width", "dark"), [(1440, True), (360, False)])
def test_what_opens_on_a_page_has_no_barrier_either(operators_window, axe, album, width, dark):
    MemoryFactory(observation="Another")
    one = operators_window(width=width, dark=dark)
    page = one.open("/memories")
    findings = []

    def look(name: str) -> None:
        findings.extend(one.findings(axe))
        album(page, picture_name(name, width, dark))
        assert one.sideways == 0, name

    page.keyboard.press("?")
    look("keys")
    page.keyboard.press("Escape")
    for key in ("j", "x", "j", "e"):
        page.keyboard.press(key)
    page.wait_for_selector("[data-editing]")
    look("memories-edit")
    page.fill("[data-editing] [name=observation]", "Said better")
    page.click("[data-editing] [type=submit]")
    page.wait_for_selector("#toasts [data-toast]")
    look("memories-saved")
    with page.expect_response(lambda answer: "/memories/rows" in answer.url and answer.status in (200, 204)):
        pass
    assert page.locator("[data-row]").count() == page.locator("tbody > [data-row]").count() == 2
    if width < 1000:
        page.check("#nav-open")
        look("menu")
    assert findings == []


def test_on_a_telephone_the_menu_opens_with_the_keyboard_and_needs_no_script(operators_window):
    one = operators_window(width=360)
    page = one.open("/")
    assert not page.is_visible(".side-nav")
    page.focus("#nav-open")
    page.keyboard.press("Space")
    assert page.is_visible(".side-nav")
    with page.expect_navigation():
        page.click(".side-nav a >> text=Admin")
    assert page.url.endswith("/admin/")
    assert not page.is_visible(".side-nav")


def test_a_viewer_is_offered_no_action_on_any_page(window, house):
    viewer = get_user_model().objects.create_user("viewer", password="a long password", is_staff=True)
    viewer.groups.add(Group.objects.get(name="viewer"))
    one = window()
    one.enter(viewer)
    assert list(links(one.open("/"))) == [label for label in SIDEBAR if label != "Forget"]
    for path in places(one):
        page = one.page
        offered = page.eval_on_selector_all(
            "form[method=post]", "all => all.map(form => (form.getAttribute('action') || '').split('?')[0])"
        )
        # Django draws its lists in a form, with or without actions; to export is to read.
        lists = (
            "memories",
            "memory-changes",
            "transcripts",
            "decision-records",
            "journal",
            "sessions",
            "events",
            "telemetry",
        )
        own = {f"/lists/{name}/{what}" for name in lists for what in ("columns", "views")}
        allowed = {"/logout", "/memories/bulk", "/preferences", *own}  # a person's own choices are no actions
        if path.startswith("/admin/"):
            allowed = {"/logout", ""}
        assert set(offered) <= allowed, path
        exports = page.eval_on_selector_all("button[name=action]", "all => all.map(button => button.value)")
        assert set(exports) <= {"export"}, path


@pytest.mark.smoke
def test_the_keys_work_on_the_memories_page(operators_window):
    MemoryFactory(observation="The second")
    one = operators_window()
    page = one.open("/memories")
    bar = page.locator("[data-bulk]")
    assert not bar.is_visible()
    for key in ("j", "x"):
        page.keyboard.press(key)
    assert page.locator("[data-row].is-cursor.is-picked").count() == 1
    assert bar.is_visible()
    assert page.text_content("[data-picked]") == "1 selected"
    page.keyboard.press("e")
    page.wait_for_selector("[data-row][data-editing]")
    page.keyboard.type("jx")
    assert page.locator("[data-editing] textarea, [data-editing] input[name=observation]").first.input_value() != ""
    page.keyboard.press("Escape")
    page.wait_for_selector("[data-row]:not([data-editing]) [data-pick]:checked")
    assert page.locator("[data-editing]").count() == 0
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.matches('[data-search], input[type=search]')")


def test_motion_is_still_where_the_person_asked_for_it(chromium, live_server, operator):
    context = chromium.new_context(base_url=live_server.url, reduced_motion="reduce")
    page = context.new_page()
    page.goto("/login")
    assert page.evaluate("getComputedStyle(document.body).transitionDuration") in ("0s", "")
    assert page.evaluate("getComputedStyle(document.querySelector('.login')).animationName") == "none"
    context.close()
