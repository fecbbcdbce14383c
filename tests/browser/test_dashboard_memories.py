"""The memories' pages in a real browser: what arrives while one edits, the edit in place, deleting, bulk, filters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.lifecycle import verbs
from memories.models import Memory, Source
from memories.store import Provenance, Statement, remember
from tests.browser.conftest import COLOURS
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def memories(operator: Any) -> list[Memory]:
    session = SessionFactory()
    texts = ("Takes 60 s to start", "Waits for the database", "Restarts clear its cache", "Sleeps at night", "Is loud")
    made = [
        MemoryFactory(pk=n, observation=text, session=session, confidence=0.5 + n / 20)
        for n, text in enumerate(texts, 1)
    ]
    made.append(MemoryFactory(pk=6, service=None, observation="Backups run at 3", source=Source.HUMAN))
    made.append(MemoryFactory(pk=7, service="caddy", active=False, inactive_reason="decayed", confidence=0.2))
    made.append(MemoryFactory(pk=8, service="caddy", verdict="hold", verdict_reason="It reads like an instruction."))
    return made


@pytest.fixture
def one(window: Any, operator: Any, memories: list[Memory]) -> Any:
    one = window()
    one.enter(operator)
    return one


@pytest.fixture
def page(one: Any) -> Any:
    return one.open("/memories")


def learn(text: str, service: str = "jellyfin") -> int:
    """What a running session does with a marker."""
    said = Provenance(source=Source.RUN, actor="agent:watch", session_id=SessionFactory().pk, tier=1)
    found = remember(Statement(category="timing", text=text, service=service), said).memory_id
    assert found is not None
    return found


def listed(page: Any) -> set[int]:
    return {int(pk) for pk in page.eval_on_selector_all("tr[data-row]", "rows => rows.map(row => row.dataset.row)")}


def toast(page: Any) -> str:
    return page.text_content("#toasts .toast:last-child .toast-text")


def test_what_a_session_records_is_offered_within_five_seconds_while_an_edit_stays_open(window, operator, memories):
    one = window(often=False)
    one.enter(operator)
    page = one.open("/memories")
    page.click("#memory-2-pick")
    page.click("#memory-1-more > summary")
    page.click("#memory-1-edit")
    page.wait_for_selector("#memory-1-observation")
    page.fill("#memory-1-observation", "Half a sentence")
    new = learn("Transcodes need four cores")
    verbs.reinforce(3, by="agent:watch")
    verbs.reinforce(1, by="agent:watch")
    page.wait_for_selector("#memories-held >> text=1 new", timeout=5000)
    assert page.locator(f"#memory-{new}").count() == 0
    assert page.evaluate("document.activeElement.id") == "memory-1-observation"
    verbs.reinforce(1, by="agent:watch")
    page.click("#memories-held-show")
    page.wait_for_selector(f"#memory-{new}", timeout=5000)
    assert page.input_value("#memory-1-observation") == "Half a sentence"
    assert page.is_checked("#memory-2-pick")
    assert page.text_content("[data-picked]") == "1 selected"
    page.wait_for_selector("#memory-3 .cell-confidence :text('0.75')", timeout=5000)
    page.click("[data-cancel]")
    page.wait_for_selector("#memory-1 .cell-confidence :text('0.75')")


@pytest.mark.smoke
def test_an_edit_in_place_with_its_slider_and_back_again(page):
    page.click("#memory-1-more > summary")
    page.click("#memory-1-edit")
    page.wait_for_selector("#memory-1-observation")
    assert page.evaluate("document.activeElement.id") == "memory-1-observation"
    page.fill("#memory-1-observation", "Takes 90 s to start")
    page.focus("#memory-1-confidence")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert page.text_content("#memory-1-confidence-shown") == "0.6"
    page.click("#memory-1 [type=submit]")
    page.wait_for_selector("#memory-1-link:text('Takes 90 s to start')")
    assert toast(page) == "Memory 1 is edited."
    memory = Memory.objects.get(pk=1)
    assert (memory.observation, memory.confidence) == ("Takes 90 s to start", 0.6)
    page.click("#toasts .toast-undo button")
    page.wait_for_selector("#memory-1-link:text('Takes 60 s to start')", timeout=5000)
    assert toast(page) == "Memory 1 is restored."
    assert Memory.objects.get(pk=1).confidence == 0.55


def test_the_keyboard_opens_an_edit_and_leaves_it(page):
    page.keyboard.press("j")
    page.keyboard.press("e")
    page.wait_for_selector("tr[data-editing]")
    page.keyboard.press("Escape")
    page.wait_for_selector("tr[data-editing]", state="detached")
    assert len(listed(page)) == 8


def test_an_edit_of_what_somebody_else_changed_shows_both(page, one):
    page.click("#memory-1-more > summary")
    page.click("#memory-1-edit")
    page.wait_for_selector("#memory-1-observation")
    page.fill("#memory-1-observation", "Mine")
    verbs.edit(1, by="bob", observation="Bob's text")
    page.click("#memory-1 [type=submit]")
    page.wait_for_selector("#memory-1 .conflict")
    assert page.text_content("#memory-1 .conflict .text") == "Bob's text"
    assert page.input_value("#memory-1-observation") == "Mine"
    page.click("#memory-1 [type=submit]")
    page.wait_for_selector("#memory-1-link:text('Mine')")
    assert Memory.objects.get(pk=1).changes.count() == 2
    one.complaints.clear()  # the 409, which is meant


def test_deleting_asks_first(page):
    page.click("#memory-1 .row-more summary")
    page.click("#memory-1-delete")
    page.wait_for_selector("#memory-1[data-editing]")
    page.click("#memory-1 [data-cancel]")
    page.wait_for_selector("#memory-1-link")
    page.click("#memory-1 .row-more summary")
    page.click("#memory-1-delete")
    page.click("#memory-1 .button-bad")
    page.wait_for_selector("#memory-1", state="hidden")
    assert not Memory.objects.filter(pk=1).exists()
    assert toast(page) == "Memory 1 is deleted. Its history stays."
    page.wait_for_selector("#memory-1", state="detached", timeout=5000)  # the next poll takes away what is left


def test_five_are_deleted_at_once(page):
    for pk in range(1, 6):
        page.click(f"#memory-{pk}-pick")
    assert page.text_content("[data-picked]") == "5 selected"
    page.click("#bulk-more > summary")
    page.click("#bulk [value=delete]")
    page.wait_for_selector("h1:text('Delete: 5 memories')")
    page.click("#bulk-form [type=submit]")
    page.wait_for_selector("#toasts .toast")
    assert toast(page) == "5 memories deleted."
    assert listed(page) == {6, 7, 8}
    assert set(Memory.objects.values_list("pk", flat=True)) == {6, 7, 8}


def test_a_bulk_action_is_undone_from_its_message_and_the_rows_follow(page):
    for pk in (1, 2, 7):
        page.click(f"#memory-{pk}-pick")
    with page.expect_navigation():
        page.click("#bulk [value=deactivate]")
    page.wait_for_selector("#memory-1.is-inactive")
    assert toast(page) == "3 memories deactivated."  # the third was inactive, but not by a person
    verbs.reactivate(2, by="bob")
    page.click("#toasts .toast-undo button")
    page.wait_for_selector("#memory-1:not(.is-inactive)")
    assert toast(page) == "2 memories are as they were before; 1 was changed since and left alone."
    assert page.locator("#toasts .toast-undo").count() == 0
    assert Memory.objects.get(pk=7).inactive_reason == "decayed"


def test_the_list_is_narrowed_by_service_and_by_general_and_the_back_button_goes_back(page):
    page.keyboard.press("/")
    page.keyboard.type("service:caddy")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories?service=caddy")
    assert listed(page) == {7, 8}
    page.fill("#filters [name=q]", "service:general")
    page.keyboard.press("Enter")
    page.wait_for_url("**service=general**")
    assert listed(page) == {6}
    new = learn("Belongs to no one", "general")
    page.wait_for_selector(f"#memory-{new}", timeout=5000)
    learn("Is of another service", "nextcloud")
    page.go_back()
    assert listed(page) == {7, 8}


def test_a_list_that_empties_while_it_is_open_keeps_the_edit_and_then_says_that_it_is_empty(one, memories):
    page = one.open("/memories?service=caddy&status=inactive")
    assert listed(page) == {7}
    page.click("#memory-7-more > summary")
    page.click("#memory-7-edit")
    page.wait_for_selector("#memory-7-observation")
    page.fill("#memory-7-observation", "Half a sentence")
    verbs.delete(7, by="bob")
    page.evaluate(
        "window.answered = 0; document.addEventListener('htmx:afterRequest',"
        " event => { window.answered += event.detail.xhr.status === 200; });"
    )
    page.wait_for_function("() => window.answered > 0")
    assert page.input_value("#memory-7-observation") == "Half a sentence"
    page.click("#memory-7 [data-cancel]")
    page.wait_for_selector("#memories .empty-list")
    assert "No memory matches." in page.text_content("#memories .empty-list")
    verbs.deactivate(1, by="bob")
    new = learn("Caddy waits", "caddy")
    verbs.deactivate(new, by="bob")
    page.wait_for_selector(f"#memory-{new}")
    assert listed(page) == {new}


def test_an_address_shows_another_person_the_same_rows_and_back_brings_back_each_step(one, memories, window, operator):
    page = one.open("/memories")
    page.fill("#filters [name=q]", "service:jellyfin")
    page.keyboard.press("Enter")
    page.wait_for_url("**service=jellyfin**")
    page.click("thead a:text('Confidence')")
    page.wait_for_url("**sort=-confidence**")
    order = page.eval_on_selector_all("tr[data-row]", "rows => rows.map(row => row.dataset.row)")
    assert order == ["5", "4", "3", "2", "1"]
    other = window()
    other.enter(operator)
    shared = other.open(page.url.removeprefix(other.address))
    assert shared.eval_on_selector_all("tr[data-row]", "rows => rows.map(row => row.dataset.row)") == order
    assert "service: jellyfin" in shared.text_content("#filters .chip")
    page.click("#memory-5-link")
    page.wait_for_url("**/memories/5?from=*")
    page.go_back()
    assert page.eval_on_selector_all("tr[data-row]", "rows => rows.map(row => row.dataset.row)") == order
    page.go_back()
    assert "sort=" not in page.url
    assert listed(page) == {1, 2, 3, 4, 5}
    page.go_back()
    assert len(listed(page)) == 8
    page.click("#more-filters summary")
    page.select_option("#filters [name=status]", "inactive")
    page.wait_for_url("**/memories?status=inactive")  # what is not set is not in the address
    page.go_back()
    assert page.input_value("#filters [name=status]") == ""


def test_what_fades_soon_for_a_service_and_approving_held_ones_take_few_clicks(one, memories):
    old = timezone.now() - timedelta(days=60)
    MemoryFactory(pk=20, service="jellyfin", confidence=0.7, updated_at=old)
    MemoryFactory(pk=21, service="caddy", confidence=0.7, updated_at=old)
    held = [MemoryFactory(pk=n, verdict="hold", verdict_reason="Odd.").pk for n in range(30, 41)] + [8]
    page = one.open("/memories")
    page.click(".views a:text('Fades next')")
    page.wait_for_url("**fades=**")
    page.click(".facets a:text('jellyfin')")
    page.wait_for_url("**service=jellyfin**")
    assert listed(page) == {20}
    page.click("[aria-label='Remove the filter service']")
    page.wait_for_url("**fades=**")
    assert listed(page) == {20, 21}
    page.click(".views a:text('Held')")
    page.wait_for_url("**status=held**")
    page.click("[data-pick-page]")
    with page.expect_navigation():
        page.keyboard.press("a")
    assert toast(page) == "12 memories approved."
    assert Memory.objects.filter(pk__in=held, verdict="allow").count() == 12
    page.click("#toasts .toast-undo button")
    page.wait_for_selector("#memory-8")
    assert Memory.objects.filter(pk__in=held, verdict="hold").count() == 12


@pytest.mark.parametrize(("size", "most"), [((1440, 900), 180), ((390, 844), 420)])
def test_the_first_row_stands_high_and_no_control_is_cut(one, memories, size, most):
    page = one.open("/memories?status=active")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    assert page.eval_on_selector("tr[data-row]", "row => row.getBoundingClientRect().top") < most
    assert one.sideways == 0
    box = "box => box.scrollWidth - box.clientWidth"
    assert page.eval_on_selector(".table-box", box) <= 0
    cut = """() => [...document.querySelectorAll("#main a, #main button, #main input, #main summary")]
        .filter(e => e.checkVisibility({contentVisibilityAuto: true}))
        .filter(e => !e.closest(".views, .facets, details:not([open]) > :not(summary)"))
        .filter(e => { const r = e.getBoundingClientRect(); return r.left < 0 || r.right > innerWidth + 1; })
        .map(e => e.outerHTML.slice(0, 80))"""
    page.click("#memory-5 .row-more summary")
    assert page.evaluate(cut) == []


def test_a_request_that_takes_a_moment_is_shown(one, memories):
    page = one.open("/memories")
    held = []
    page.route("**/row?edit", lambda route: held.append(route))
    page.click("#memory-1-more > summary")
    page.click("#memory-1-edit")
    page.wait_for_selector("html.is-busy")
    assert page.get_attribute("#main", "aria-busy") == "true"
    held[0].continue_()
    page.wait_for_selector("html:not(.is-busy) #memory-1 [name=observation]")
    assert page.get_attribute("#main", "aria-busy") == "false"


def test_without_a_script_it_can_be_added_edited_and_deleted(chromium, live_server, memories):
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/login?next=/memories")
    page.fill("#id_username", "operator")
    page.fill("#id_password", "a long password")
    page.click("button[type=submit]")
    page.click("#add summary")
    page.fill("#add [name=observation]", "Said without a script")
    with page.expect_navigation():
        page.click("#add [type=submit]")
    made = Memory.objects.latest("pk")
    assert made.observation == "Said without a script"
    page.click(f"#memory-{made.pk}-more > summary")
    page.click(f"#memory-{made.pk}-edit")
    page.fill("#edit [name=observation]", "Edited without a script")
    with page.expect_navigation():
        page.click("#edit [type=submit]")
    assert Memory.objects.get(pk=made.pk).observation == "Edited without a script"
    page.goto("/memories")
    page.click(f"#memory-{made.pk} .row-more summary")
    page.click(f"#memory-{made.pk}-delete")
    with page.expect_navigation():
        page.click("#delete .button-bad")
    assert not Memory.objects.filter(pk=made.pk).exists()
    page.goto("/memories")
    page.check("#memory-1-pick")
    with page.expect_navigation():
        page.click("#bulk [value=deactivate]")
    assert not Memory.objects.get(pk=1).active
    context.close()


@pytest.mark.parametrize("width", [1440, 360])
def test_the_pages_fit_and_are_pictured(window, operator, memories, axe, album, width):
    verbs.edit(1, by="operator", observation="Takes 60 s to start " + "averyveryverylongword" * 9, confidence=0.4)
    one = window(width=width)
    one.enter(operator)
    found: list[str] = []

    def look(what: str) -> None:
        for dark in (False, True):
            one.show(width, dark)
            album(one.page, f"memories-{what}-{width}-{'dark' if dark else 'light'}.png")
            assert one.sideways == 0, what
            found.extend(one.findings(axe, COLOURS if dark else None))

    page = one.open("/memories")
    look("list")
    page.click("#memory-2-pick")
    page.click("#memory-1-more > summary")
    page.click("#memory-1-edit")
    page.wait_for_selector("#memory-1-observation")
    page.fill("#memory-1-observation", "Mine")
    verbs.edit(1, by="bob", observation="Bob's version of it")
    page.click("#memory-1 [type=submit]")
    page.wait_for_selector(".conflict")
    page.click("#memory-3 .row-more summary")
    page.click("#memory-3-delete")
    page.wait_for_selector("#memory-3[data-editing]")
    look("edit")
    one.open("/memories/1")
    look("one")
    page = one.open("/memories")
    page.click("#memory-2-pick")
    page.click("#memory-3-pick")
    page.click("#bulk-more > summary")
    page.click("#bulk [value=merge]")
    page.wait_for_selector("#bulk-form")
    look("merge")
    one.open("/memories?service=nothing")
    look("none")
    one.complaints.clear()  # the 409, which is meant
    assert found == []


def test_on_a_phone_a_memory_stands_beside_its_icon_and_its_numbers_have_words(one):
    one.show(390, False)
    page = one.open("/memories")
    cells = "#memory-1 :is(.cell-pick, .cell-status, .cell-text)"
    first, *others = page.eval_on_selector_all(cells, "all => all.map(one => one.getBoundingClientRect().top)")
    assert all(abs(first - other) < 12 for other in others)
    assert "told" in page.evaluate(
        "getComputedStyle(document.querySelector('#memory-1 .cell-told'), '::after').content"
    )
