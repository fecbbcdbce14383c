"""The sessions' pages in a real browser: a session that really runs, followed to its end; the list that follows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.utils import timezone

from sessions_app import queue
from sessions_app.log.entries import PAGE
from sessions_app.models import InjectionReceipt, LogEntry, Runner, Session, Status, Trigger
from tests.support.factories import AgentFactory, CooldownActionFactory, EventFactory, SessionFactory
from tests.support.processes import call, wait_for
from tests.support.streams import init, result, text, tool_result, tool_use, write

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURES = os.environ.get("SCREENSHOTS", "")
"""A folder for pictures of the pages; none are taken without."""

PATIENCE = 60_000
SCREENS = [(1440, False), (1440, True), (360, True), (360, False)]
"""The last is a telephone: what is pressed after a look at all of them is pressed there."""

AT_END = """() => {
    const box = document.getElementById("log-box");
    return box.scrollHeight - box.scrollTop - box.clientHeight < 40;
}"""


@pytest.fixture
def operators_window(window, operator):
    def new(**options):
        one = window(**options)
        one.page.set_default_timeout(PATIENCE)
        one.enter(operator)
        return one

    return new


def says(session: Session, *texts: str, kind: str = "text") -> None:
    last = LogEntry.objects.filter(session=session).count()
    LogEntry.objects.bulk_create(
        LogEntry(session=session, seq=last + number, at=timezone.now(), kind=kind, text=words, offset=0)
        for number, words in enumerate(texts, start=1)
    )


def numbers(page) -> list[int]:
    return page.eval_on_selector_all("#log-lines > li[id^='line-']", "all => all.map(li => Number(li.id.slice(5)))")


def picture(one, name: str) -> None:
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        one.page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)


def test_a_session_that_runs_is_followed_line_by_line_to_its_end(operators_window, tmp_path, settings):
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    settings.CLAUDEOPS_DATA_DIR.mkdir()
    lines = [init()]
    for number in range(12):
        lines += [text(f"Step {number}.", seconds=number / 2), tool_use(f"docker ps {number}")]
        lines += [tool_result(f"NAMES\nservice-{number}\nUp")]
    lines += [text("[EVENT:warning:jellyfin] It **hangs**", seconds=7), result()]
    stream = write(tmp_path / "stream.jsonl", *lines)
    agent = AgentFactory(slug="watch", runner=Runner.REPLAY, replay_stream=str(stream))
    session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by="anna", wake=False)

    one = operators_window()
    page = one.open(f"/sessions/{session.pk}")
    assert page.text_content("#state") == "queued"
    worker = call(
        "from django.conf import settings\nsettings.CLAUDEOPS_REPLAY_SPEED = 2.5\n"
        f"from sessions_app.runner.run import run_session\nrun_session({session.pk})"
    )
    try:
        page.wait_for_selector("#line-3")
        assert Session.objects.get(pk=session.pk).status == Status.RUNNING
        page.wait_for_function("() => document.querySelector('#state').textContent === 'running'")
        one.context.set_offline(True)  # the connection is lost for a while …
        wait_for(lambda: LogEntry.objects.filter(session=session).count() > 20)
        page.wait_for_function("() => document.querySelector('#connection').textContent.includes('cannot be reached')")
        one.context.set_offline(False)  # … and comes back
        page.wait_for_selector("#log-next[data-ended]", state="attached")
        page.wait_for_function("() => document.querySelector('#state').textContent === 'completed'")
    finally:
        worker.wait(60)
    total = LogEntry.objects.filter(session=session).count()
    assert total == 39
    assert numbers(page) == list(range(1, total + 1))
    assert "End of log. Session completed." in page.text_content("#log-state")
    page.click("#tab-answer")
    page.wait_for_url("**?tab=answer")
    assert page.text_content("#tabs strong") == "hangs"
    assert page.locator("mark.marker-event").text_content() == "[EVENT:warning:jellyfin]"
    page.click("#tab-events")
    page.wait_for_selector("#tabs >> text=It **hangs**")
    assert page.locator("[hx-trigger*=every]").count() == 0  # nothing asks any more
    # What was asked for while there was no connection is on the console; that is meant, and nothing else is there.
    assert all("ERR_INTERNET_DISCONNECTED" in said or ": htmx:" in said for said in one.complaints)
    one.complaints.clear()


def test_the_log_scrolls_on_for_a_reader_at_its_end_and_stays_for_one_who_reads(operators_window):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    says(session, *(f"Line {number}" for number in range(60)))
    one = operators_window()
    page = one.open(f"/sessions/{session.pk}")
    page.wait_for_function(AT_END)
    says(session, "New.")
    page.wait_for_selector("#line-61")
    page.wait_for_function(AT_END)
    assert page.locator("#log-newest").is_hidden()
    page.evaluate("document.getElementById('log-box').scrollTop = 100")
    says(session, "Newer.")
    page.wait_for_selector("#line-62", state="attached")
    assert page.evaluate("document.getElementById('log-box').scrollTop") == 100
    page.click("#log-newest")
    page.wait_for_function(AT_END)


def test_earlier_lines_come_when_asked_for_and_what_was_read_stays_in_place(operators_window):
    session = SessionFactory()
    says(session, *(f"Line {number}" for number in range(2 * PAGE + 10)))
    one = operators_window()
    page = one.open(f"/sessions/{session.pk}")
    assert numbers(page) == list(range(PAGE + 11, 2 * PAGE + 11))
    for first in (11, 1):
        page.click(".log-more a")
        page.wait_for_selector(f"#line-{first}", state="attached")
    assert numbers(page) == list(range(1, 2 * PAGE + 11))
    assert page.locator(".log-more").count() == 0


def test_the_list_follows_what_runs_and_keeps_the_place_and_the_focus(operators_window):
    first, second = SessionFactory(), SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    one = operators_window()
    page = one.open("/sessions")
    page.focus(f"#session-{second.pk}-link")
    page.evaluate(f"document.getElementById('session-{first.pk}').dataset.same = 'yes'")
    new = SessionFactory(status=Status.QUEUED, hold_reason="Waits for somebody.")
    Session.objects.filter(pk=second.pk).update(status=Status.FAILED, status_reason="It broke.")
    page.wait_for_function(f"() => document.getElementById('session-{second.pk}').textContent.includes('It broke.')")
    assert page.evaluate("document.activeElement.id") == f"session-{second.pk}-link"
    assert page.locator(f"#session-{new.pk}").count() == 0
    page.click("#sessions-held >> text=1 new")
    page.wait_for_selector(f"#session-{new.pk}")
    order = page.eval_on_selector_all("#session-rows > tr", "rows => rows.map(row => row.id)")
    assert order == [f"session-{pk}" for pk in (new.pk, second.pk, first.pk)]
    assert page.get_attribute(f"#session-{first.pk}", "data-same") == "yes"
    assert page.text_content("#sessions-count").strip() == "3 sessions"


@pytest.mark.smoke
def test_an_operator_runs_an_agent_reads_that_it_is_held_and_stops_it(operators_window):
    agent = AgentFactory(slug="watch")
    SessionFactory(agent=agent, status=Status.RUNNING, started_at=timezone.now())
    one = operators_window()
    page = one.open("/sessions")
    page.click("#run > summary")
    page.select_option("#run select[name=agent]", "watch")
    page.fill("#run textarea", "Look at jellyfin.")
    page.click("#run .button-main")
    page.wait_for_selector("#toasts a")
    assert "is held. Agent watch is busy" in page.text_content("#toasts")
    page.click("#toasts a")
    page.wait_for_url("**/sessions/*")
    page.click("#stop-button")
    page.wait_for_function("() => document.querySelector('#state').textContent === 'stopped'")
    assert Session.objects.get(task="Look at jellyfin.").status == Status.STOPPED


def test_a_filter_is_in_the_address_and_back_leads_back(operators_window):
    SessionFactory(status=Status.FAILED, ended_at=timezone.now())
    running = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    one = operators_window()
    page = one.open("/sessions")
    for width, most in ((390, 420), (1440, 209)):
        one.show(width, dark=False)
        assert page.locator("#session-rows > tr").first.bounding_box()["y"] < most
    page.click("#more-filters summary")
    page.select_option("#filters select[name=status]", "failed")
    page.wait_for_url("**status=failed**")
    assert page.locator("#session-rows > tr").count() == 1
    page.go_back()
    page.wait_for_url("**/sessions")
    assert page.locator("#session-rows > tr").count() == 2
    page.fill("[data-search]", "ended:24h status:went_wrong")
    page.press("[data-search]", "Enter")
    page.wait_for_url("**/sessions?ended=24h&status=went_wrong")
    page.click(".views >> text=Failed last night")
    page.wait_for_url("**status=went_wrong&ended=**")
    assert page.locator(".views [aria-current]").text_content().split() == ["Failed", "last", "night", "1"]
    page.click(".views >> text=All")
    page.click(f"[aria-label='Stop session {running.pk}']")
    page.wait_for_selector(f"#session-{running.pk} >> text=stop requested by")


def test_the_pages_fit_any_screen(operators_window):
    agent = AgentFactory(slug="homelab-watch")
    now = timezone.now()
    session = SessionFactory(
        agent=agent,
        status=Status.ESCALATED,
        status_reason="Escalated to a higher tier: " + "averyveryverylongword" * 8,
        response="## Found\n\n| a | b |\n|--|--:|\n| 1 | 2 |\n\nAll `well`.",
        cost_usd="0.0312",
        num_turns=7,
        duration_ms=83_000,
        prompt="You observe. " * 200,
        task="Look at jellyfin.",
        usage={"input_tokens": 12345, "output_tokens": 678, "cache_read_input_tokens": 99999},
        stats={"lines": 40, "tool_calls": 8, "bad_fields": 1, "estimated_messages": 3},
        started_at=now,
        ended_at=now,
        cli_session_id="67cde26f-17e1-4348-b9d3-bfd936af657d",
    )
    SessionFactory(parent=session, tier=2, agent=agent, status=Status.RUNNING, started_at=now, stats={"tool_calls": 3})
    SessionFactory(agent=agent, status=Status.QUEUED, hold_reason="Agent homelab-watch is busy with session 2.")
    SessionFactory(agent=agent, status=Status.FAILED, status_reason="x" * 300, started_at=now, duration_ms=5000)
    entry = {"id": 1, "uuid": "x", "service": "jellyfin", "category": "timing", "confidence": 0.9, "reason": ""}
    InjectionReceipt.objects.create(
        session=session,
        text="text " * 300,
        sha256="a" * 64,
        budget=2000,
        tokens=412,
        included=[entry | {"observation": "Takes 60 s to start after a restart"}] * 3,
        left_out=[
            entry | {"observation": "Left out", "reason": "the budget is full with memories of higher confidence"}
        ],
        counts={"eligible": 4, "included": 3, "over_budget": 1},
    )
    EventFactory(session=session, level="critical", message="Down " + "x" * 200)
    CooldownActionFactory(session=session)
    says(session, "Claude Code 2.1.330, claude-sonnet-5-5, 12 tools", kind="system")
    says(session, "I look at **jellyfin**.\n[MEMORY:timing:jellyfin] Takes 60 s to start")
    says(session, "Bash: docker ps --format '{{.Names}}' " + "y" * 200, kind="tool_use")
    says(session, "NAMES\njellyfin\ncaddy", "Error: no such container\n" + "z" * 400, kind="tool_result")
    says(session, "success, 7 turns, $0.0312", kind="result")
    one = operators_window()

    def look(name: str) -> None:
        for width, dark in SCREENS:
            one.show(width, dark)
            assert one.sideways == 0, (name, width)
            picture(one, f"{name}-{width}-{'dark' if dark else 'light'}")

    for name, path in (
        ("sessions", "/sessions"),
        ("session", f"/sessions/{session.pk}"),
        ("log", f"/sessions/{session.pk}/log"),
    ):
        one.open(path)
        look(name)
    one.open("/sessions?status=lost")
    one.page.click("#run > summary")
    look("sessions-run")
