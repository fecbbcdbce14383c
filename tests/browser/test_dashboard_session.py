"""The page of a session in a real browser: every tab and the comparison on any screen, by keys, without JavaScript, and
without a connection."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from memories.models import MemoryChange
from sessions_app.models import LogEntry, Session, Status
from tests.browser.conftest import SCREENS
from tests.support.factories import EventFactory, MemoryFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TABS = ("learned", "injected", "events", "prompt", "answer")


@pytest.fixture
def night(house):
    """The house's session went wrong after a good run, learned something that waits, and can be handed over."""
    agent = house.agent
    Session.objects.filter(agent=agent, status=Status.RUNNING).update(status=Status.COMPLETED)
    good = SessionFactory(
        agent=agent,
        queued_at=house.queued_at - timedelta(hours=1),
        duration_ms=60_000,
        num_turns=5,
        prompt="You observe.\n" * 9 + "Look at caddy.",
    )
    SessionFactory(status=Status.FAILED, status_reason="The session reached its limit of turns: 30.")
    held = MemoryFactory(verdict="hold", verdict_reason="it changes a schedule", observation="The prune " + "x" * 150)
    MemoryChange.objects.create(memory=held, memory_uuid=held.uuid, kind="created", session=house)
    EventFactory(session=good, message="All well")
    Session.objects.filter(pk=house.pk).update(
        status=Status.FAILED,
        status_reason="The session reached its limit of turns: Reached maximum number of turns (20).",
        num_turns=20,
        duration_ms=252_000,
        cost_usd=Decimal("0.142"),
        usage={"input_tokens": 74_900, "cache_read_input_tokens": 61_300, "output_tokens": 3_900},
        cli_session_id="67cde26f-17e1-4348-b9d3-bfd936af657d",
        error="Error: " + "averyveryverylongword" * 20,
        task="Check the backup of " + "y" * 90,
        structured={"summary": "x" * 300},
        host="nas",
        pid=20_417,
    )
    house.refresh_from_db()
    return house


def test_every_tab_and_the_comparison_fit_every_screen_and_have_no_barrier(operators_window, night, axe, album):
    one = operators_window()
    faults = []
    for path in (*(f"/sessions/{night.pk}?tab={tab}" for tab in TABS), f"/sessions/{night.pk}/compare"):
        one.open(path)
        faults += one.faults(axe, album, f"session-{path.rpartition('=')[2].replace('/', '-')}")
    assert faults == []


def test_the_outcome_leads_and_the_first_tab_stands_above_the_fold(operators_window, night):
    one = operators_window()
    page = one.open(f"/sessions/{night.pk}")
    assert page.text_content("h1") == "The session reached its limit of turns: Reached maximum number of turns (20)"
    assert page.locator(".todo >> text=Hand over to tier 2").is_visible()
    for width, most in ((1440, 320), (390, 760)):
        one.show(width, dark=False)
        assert page.locator("#tabs").bounding_box()["y"] < most


@pytest.mark.smoke
def test_a_tab_is_swapped_is_in_the_address_and_back_leads_back(operators_window, night):
    one = operators_window()
    page = one.open(f"/sessions/{night.pk}")
    page.evaluate("document.querySelector('h1').dataset.same = 'yes'")
    page.click("#tab-events")
    page.wait_for_url("**?tab=events")
    page.wait_for_selector("#tabs >> text=Service checks")
    assert page.get_attribute("#tab-events", "aria-current") == "true"
    page.click("#tab-prompt")
    page.wait_for_selector("#tabs >> text=Complete prompt")
    assert page.get_attribute("h1", "data-same") == "yes"
    page.go_back()
    page.wait_for_selector("#tabs >> text=Service checks")


def test_what_a_session_learned_takes_two_clicks(operators_window, night):
    one = operators_window()
    page = one.open("/sessions")
    page.click(f"#session-{night.pk}-link")
    page.click("#tab-learned")
    page.wait_for_selector("#tabs >> text=it changes a schedule")


def test_keys_alone_lead_to_the_neighbours_to_the_comparison_and_run_it_again(operators_window, night):
    one = operators_window()
    page = one.open(f"/sessions/{night.pk}")
    before = page.get_attribute("#neighbour-before", "href")
    page.keyboard.press("[")
    page.wait_for_url(f"**{before}")
    page.keyboard.press("]")
    page.wait_for_url(f"**/sessions/{night.pk}")
    page.keyboard.press("c")
    page.wait_for_url("**/compare")
    page.go_back()
    page.wait_for_selector("#again-button")
    number = Session.objects.count()
    page.keyboard.press("Control+r")  # the browser's
    page.wait_for_selector("#again-button")
    assert Session.objects.count() == number
    page.keyboard.press("r")
    page.wait_for_selector("#state >> text=queued")
    assert Session.objects.count() == number + 1
    page.keyboard.press("s")
    page.wait_for_selector("#state >> text=stopped")


def test_without_javascript_tabs_neighbours_and_actions_work(operators_window, night):
    one = operators_window(java_script_enabled=False)
    page = one.open(f"/sessions/{night.pk}")
    with page.expect_navigation():
        page.click("#tab-injected")
    assert page.url.endswith("?tab=injected#tabs")
    assert page.locator("#tabs .injected").is_visible()
    with page.expect_navigation():
        page.click("#compare-link")
    assert page.locator("#prompt-title").is_visible()
    page.go_back()
    with page.expect_navigation():
        page.click("text=Hand over to tier 2")
    assert Session.objects.filter(parent=night, tier=2).exists()
    assert "goes first" in page.text_content("#toasts")


def test_an_open_session_keeps_the_tab_that_is_read_while_news_come(operators_window):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    one = operators_window()
    page = one.open(f"/sessions/{session.pk}")
    page.click("#tab-events")
    page.wait_for_selector("#tabs >> text=No events yet.")
    EventFactory(session=session, level="warning", message="Jellyfin hangs")
    MemoryChange.objects.create(
        memory=(memory := MemoryFactory()), memory_uuid=memory.uuid, kind="created", session=session
    )
    Session.objects.filter(pk=session.pk).update(ingest_offset=10)
    page.wait_for_selector("#tabs >> text=Jellyfin hangs")
    assert page.text_content("#tab-learned") == "Learned 1"
    assert page.get_attribute("#tab-events", "aria-current") == "true"


def test_a_call_of_a_running_session_leads_to_its_line_and_stays_with_the_focus_while_news_come(operators_window, axe):
    started = timezone.now() - timedelta(minutes=2)
    session = SessionFactory(status=Status.RUNNING, started_at=started, agent__slug="watch")

    def add(seq, kind, text, **fields):
        fields = {"at": started + timedelta(seconds=seq), "turn": seq, "offset": 0, "is_error": False, **fields}
        LogEntry.objects.create(session=session, seq=seq, kind=kind, text=text, **fields)

    for seq in range(1, 80):
        add(seq, "text", f"Line {seq}")
    add(80, "tool_use", "Bash: curl -fsS " + "averyveryverylongword" * 10)
    add(81, "tool_result", "Error: Exit code 22", call=80, is_error=True)
    for seq in range(82, 120):
        add(seq, "text", f"Line {seq}")
    add(120, "tool_use", "Bash: sleep 90")
    one = operators_window()
    for width, _, dark in SCREENS:
        one.show(width, dark)
        page = one.open(f"/sessions/{session.pk}")
        assert (one.sideways, one.cut) == (0, [])
        assert one.findings(axe) == []
    one.show(1440, False)
    page = one.open(f"/sessions/{session.pk}")
    page.evaluate("window.isSame = true")
    page.focus("#call-80")
    page.keyboard.press("Enter")
    page.wait_for_selector("#line-80.is-line")
    assert page.url.endswith("?line=80#line-80")
    add(121, "tool_use", "Read: /etc/caddy/Caddyfile")
    Session.objects.filter(pk=session.pk).update(ingest_offset=10)
    page.wait_for_selector("#call-121")
    assert page.evaluate("[window.isSame, document.activeElement.id]") == [True, "call-80"]
    assert page.locator("#line-80").is_visible()
    assert page.locator("#log-following").is_hidden()
    page = operators_window(java_script_enabled=False).open(f"/sessions/{session.pk}")
    page.click("#call-80")
    page.wait_for_selector("#line-80.is-line")


def test_without_a_connection_nothing_turns_and_stop_is_off_with_the_reason(operators_window):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now(), agent__slug="watch")
    LogEntry.objects.create(session=session, seq=1, at=timezone.now(), kind="text", text="Looking.", offset=0)
    one = operators_window()
    one.page.emulate_media(reduced_motion="no-preference")
    page = one.open(f"/sessions/{session.pk}")
    turning = "() => document.querySelector('.band > .i').getAnimations().length"
    assert page.evaluate(turning) == 1
    one.context.set_offline(True)
    page.wait_for_selector("text=Off: the server cannot be reached.")
    assert page.locator("#stop-button").is_disabled()
    assert page.text_content("#state").startswith("was running at ")
    assert page.evaluate(turning) == 0
    page.keyboard.press("s")
    one.context.set_offline(False)
    page.wait_for_function("() => document.querySelector('#state').textContent === 'running'")
    assert page.locator("#stop-button").is_enabled()
    assert page.locator("text=Off: the server cannot be reached.").count() == 0
    assert page.evaluate(turning) == 1
    session.refresh_from_db()
    assert session.stop_requested_at is None
    assert all("ERR_INTERNET_DISCONNECTED" in said or ": htmx:" in said for said in one.complaints)
    one.complaints.clear()
