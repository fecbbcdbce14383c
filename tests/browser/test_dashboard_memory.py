"""The page of one memory in a real browser: its picture, then and now, review in the list, what will be told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.lifecycle import verbs
from memories.models import Memory, MemoryChange, Verdict
from memories.store import Provenance, Statement, remember
from sessions_app.runner.launch import inject
from tests.browser.test_dashboard_pages import picture_name
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def memory(house) -> Memory:
    """Said twice, decayed, edited; it will fall inactive and has an end of its own."""
    now = timezone.now()
    for days, text in ((60, "Caddy takes 60 s to start"), (50, "It takes 60s to start")):
        said = Provenance(
            source="run", actor="agent:watch", session_id=SessionFactory().pk, at=now - timedelta(days=days)
        )
        made = remember(Statement("timing", text, "caddy"), said)
    row = Memory.objects.get(pk=made.memory_id)
    for days in (12, 5):
        at = now - timedelta(days=days)
        verbs.set_confidence(row, row.confidence - 0.1, by="ann", at=at)
    verbs.edit(row, by="ann", observation="Caddy takes 90 s to start", expires_at=now + timedelta(days=70))
    inject(SessionFactory(), at=now)
    return row


def inside(page: Any, of: str, element: str) -> bool:
    """Whether the boxes of all `element`s stand within the box of `of`, to a pixel."""
    return bool(
        page.evaluate(
            """([of, element]) => {
              const box = document.querySelector(of).getBoundingClientRect();
              return [...document.querySelectorAll(element)].every((one) => {
                const at = one.getBoundingClientRect();
                const across = at.left >= box.left - 1 && at.right <= box.right + 1;
                return across && at.top >= box.top - 1 && at.bottom <= box.bottom + 1;
              });
            }""",
            [of, element],
        )
    )


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (360, True)])
def test_the_picture_fits_at_any_width_and_its_letters_keep_their_size(
    operators_window, memory, axe, album, width, dark
):
    one = operators_window(width=width, dark=dark)
    page = one.open(f"/memories/{memory.pk}")
    assert inside(page, "#course", "svg.course text, svg.course polyline, svg.course circle, svg.course .mark")
    size = page.evaluate("getComputedStyle(document.querySelector('svg.course text')).fontSize")
    assert size == "12px"
    drawn = page.evaluate("document.querySelector('svg.course text').getBoundingClientRect().height")
    assert 10 <= drawn <= 20
    assert page.locator("svg.course polyline").count() == 2
    assert one.findings(axe) == []
    assert one.sideways == 0
    album(page, picture_name("memory-course", width, dark))


CUT = """() => [...document.querySelectorAll("#main a, #main button, #main input, #main summary, #main textarea")]
    .filter(e => e.checkVisibility({contentVisibilityAuto: true}))
    .filter(e => { const r = e.getBoundingClientRect(); return r.left < 0 || r.right > innerWidth + 1; })
    .map(e => e.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
@pytest.mark.parametrize("more", ["", "?edit#edit", "?delete#delete"])
def test_nothing_of_the_page_overflows_and_no_control_is_cut(operators_window, memory, axe, size, more):
    one = operators_window()
    one.page.set_viewport_size({"width": size[0], "height": size[1]})
    page = one.open(f"/memories/{memory.pk}{more}")
    for summary in page.locator("#main .change > .change-what > details > summary").all():
        summary.click()
    assert one.sideways == 0
    assert page.evaluate(CUT) == []
    assert one.findings(axe) == []
    assert one.complaints == []


def test_a_mark_of_the_chart_opens_its_change_with_the_keys_alone(operators_window, memory):
    one = operators_window()
    page = one.open(f"/memories/{memory.pk}")
    mark = page.locator("svg.course a.course-event").nth(1)
    mark.focus()
    page.keyboard.press("Enter")
    target = page.locator(".change:target")
    assert target.count() == 1
    assert f"#{target.get_attribute('id')}" == mark.get_attribute("href")
    assert page.evaluate("getComputedStyle(document.querySelector('.change:target')).boxShadow") != "none"


def loaded(page: Any, selector: str) -> None:
    """Wait for an element of the next page, and for its scripts: a key that is pressed before them is nobody's."""
    page.wait_for_selector(selector)
    page.wait_for_load_state()


def test_the_keys_edit_deactivate_and_confirm_and_go_to_the_neighbours(operators_window, memory):
    one = operators_window()
    page = one.open(f"/memories/{memory.pk}")
    page.keyboard.press("e")
    page.wait_for_url("**?edit#edit")
    page.fill("#edit textarea", "Caddy takes 100 s to start")
    page.click("#edit button[type=submit]")
    loaded(page, "h1 >> text=Caddy takes 100 s to start")
    page.keyboard.press("d")
    loaded(page, "#state >> text=inactive")
    page.click("#toasts .toast-undo button >> nth=-1")
    loaded(page, "#state >> text='active'")  # the whole word: "inactive" has it in it, before the undo is answered
    page.keyboard.press("c")
    page.wait_for_selector("#timeline >> text=operator confirmed it")
    MemoryFactory(observation="The one before", updated_at=timezone.now() + timedelta(minutes=5))
    page.reload()
    page.keyboard.press("[")
    loaded(page, "h1 >> text=The one before")
    page.keyboard.press("]")
    page.wait_for_selector("h1 >> text=Caddy takes 100 s to start")


def test_then_and_now_opens_in_its_place_and_rolls_back(operators_window, memory, axe, album):
    first = MemoryChange.objects.filter(memory=memory).order_by("pk").first()
    one = operators_window()
    page = one.open(f"/memories/{memory.pk}")
    page.click(f"#change-{first.pk} summary")
    page.click(f"#entry-{first.pk}")
    page.wait_for_selector(f"#compare-{first.pk} ins")
    assert page.text_content(f"#compare-{first.pk} del") == "60"
    assert page.text_content(f"#compare-{first.pk} ins") == "90"
    assert one.findings(axe) == []
    album(page, picture_name("memory-compared", 1440, False))
    page.fill(f"#reason-{first.pk}", "It was right")
    page.click(f"#compare-{first.pk} [type=submit]")
    page.wait_for_selector("#toasts [data-toast]")
    assert page.text_content("h1") == "Caddy takes 60 s to start"
    page.click("#toasts .toast-undo button")
    page.wait_for_selector("h1 >> text=Caddy takes 90 s to start")
    kinds = MemoryChange.objects.filter(memory=memory).order_by("-pk").values_list("kind", flat=True)[:2]
    assert list(kinds) == ["restored", "restored"]


@pytest.mark.smoke
def test_a_held_memory_is_approved_on_its_row_and_another_rejected_on_its_page(operators_window, memory):
    first = MemoryFactory(observation="Held the first", verdict=Verdict.HOLD, verdict_reason="odd")
    second = MemoryFactory(observation="Held the second", verdict=Verdict.HOLD, verdict_reason="odd")
    one = operators_window()
    page = one.open("/memories?status=held")
    page.click(f"#memory-{first.pk}-approve")
    page.wait_for_selector("#toasts [data-toast]")
    assert "is approved" in page.text_content("#toasts")
    page = one.open(f"/memories/{second.pk}")
    page.fill("#reject-reason", "Nonsense")
    page.click("#reject")
    page.wait_for_selector(".band-sentence >> text=Rejected in review: odd.")
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.verdict, second.verdict, second.active) == (Verdict.ALLOW, Verdict.HOLD, False)


def test_history_goes_on_in_its_place(operators_window, memory):
    MemoryChange.objects.bulk_create(
        MemoryChange(memory=memory, memory_uuid=memory.uuid, kind="edited", reason=f"Number {n}") for n in range(60)
    )
    one = operators_window()
    page = one.open(f"/memories/{memory.pk}")
    page.click("#timeline [rel=next]")
    page.wait_for_selector("#timeline >> text=of watch created it.")
    assert page.locator("#timeline").count() == 1
    page.click("#timeline .pages a >> text=Latest changes")
    page.wait_for_selector("#timeline .pages a >> text=Latest changes", state="detached")


def test_the_answer_follows_what_is_chosen_and_the_address_says_it(operators_window, memory, axe):
    MemoryFactory(observation="Comes after", confidence=0.99)
    one = operators_window()
    page = one.open("/ask?agent=&view=new")
    assert page.locator(".diff-lines .is-new >> text=Comes after").count() == 1
    page.click("#ask-further summary")
    page.fill("#ask-budget", "30")
    page.click("#ask button.button-main")
    page.wait_for_selector(".ask-legend >> text=of 30")
    assert "budget=30" in page.url
    assert one.findings(axe) == []
    page.go_back()
    page.wait_for_selector(".ask-legend >> text=of 2,000")
    assert page.locator("header.side").count() == 1


def test_without_a_script_a_state_is_compared_and_had_again(chromium, live_server, memory):
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/login")
    page.fill("#id_username", "operator")
    page.fill("#id_password", "a long password")
    page.click("button[type=submit]")
    page.goto(f"/memories/{memory.pk}")
    page.click(".change >> nth=-1 >> summary")
    page.click(".entry-links a >> nth=-1")
    with page.expect_navigation():
        page.click("text=Roll back to this version")
    assert page.text_content("h1") == "Caddy takes 60 s to start"
    with page.expect_navigation():
        page.click("#toasts .toast-undo button")
    assert page.text_content("h1") == "Caddy takes 90 s to start"
    page.goto("/ask")
    page.click("#ask-further summary")
    page.fill("#ask-budget", "30")
    with page.expect_navigation():
        page.click("#ask button.button-main")
    assert page.locator(".ask-legend >> text=of 30").count() == 1
    context.close()
