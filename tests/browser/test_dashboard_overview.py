"""The overview in a real browser: what happens appears by itself, in its place; nothing that is in use moves away."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from claudeops.lib import humanize
from memories.lifecycle import verbs
from memories.models import ModelCall
from sessions_app.models import Agent, LogEntry, Session, Status
from tests.browser.test_dashboard_pages import picture_name
from tests.support.factories import AgentFactory, EventFactory, MemoryFactory, SessionFactory, StageFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SOON = 20_000


def told(page: Any) -> list[str]:
    """The entries of the feed, from the top."""
    return page.eval_on_selector_all("#feed-entries > li", "all => all.map(entry => entry.id)")


def test_what_is_written_while_the_page_is_open_appears_in_the_feed_in_its_order(operators_window):
    page = operators_window().open("/")
    before = told(page)
    assert len(before) == len(set(before)) > 0
    event = EventFactory(level="warning", service="caddy", message="The certificate ends in 3 days.")
    page.wait_for_selector(f"#feed-e{event.pk}", timeout=SOON)
    change = verbs.edit(MemoryFactory(), by="anna", observation="It needs 40 s to start")
    assert change is not None
    page.wait_for_selector(f"#feed-m{change.pk} >> text=It needs 40 s to start", timeout=SOON)
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now(), heartbeat_at=timezone.now())
    page.wait_for_selector(f"#feed-s{session.pk}", timeout=SOON)
    page.wait_for_selector(f"#running-{session.pk}", timeout=SOON)
    Session.objects.filter(pk=session.pk).update(
        status=Status.FAILED, ended_at=timezone.now(), status_reason="The disk is full."
    )
    page.wait_for_selector(f"#feed-d{session.pk} >> text=The disk is full.", timeout=SOON)
    page.wait_for_selector(f"#failed-{session.pk}", timeout=SOON)
    assert page.locator(f"#running-{session.pk}").count() == 0
    keys = [f"d{session.pk}", f"m{change.pk}", f"e{event.pk}"]
    assert told(page) == [*(f"feed-{key}" for key in keys), *before]


def test_many_that_are_written_at_the_same_moment_are_each_shown_once(operators_window):
    page = operators_window().open("/")
    before, at = told(page), timezone.now()
    written = [EventFactory(session=None, created_at=at) for _ in range(6)]
    page.wait_for_selector(f"#feed-e{written[0].pk}", timeout=SOON)
    written += [EventFactory(session=None, created_at=at) for _ in range(6)]
    page.wait_for_selector(f"#feed-e{written[-1].pk}", timeout=SOON)
    assert told(page) == [*(f"feed-e{event.pk}" for event in reversed(written)), *before]


@pytest.mark.smoke
def test_the_first_entry_of_an_empty_house_appears_without_a_reload(window, operator):
    one = window()
    one.enter(operator)
    one.open("/")
    assert "Nothing has happened yet." in one.page.text_content(".feed")
    event = EventFactory(session=None, message="The first of all")
    one.page.wait_for_selector(f"#feed-e{event.pk}", timeout=SOON)
    another = EventFactory(session=None, message="And another")
    one.page.wait_for_selector(f"#feed-e{another.pk}", timeout=SOON)
    assert told(one.page) == [f"feed-e{another.pk}", f"feed-e{event.pk}"]


def test_the_place_and_the_focus_are_kept_while_entries_come_in(operators_window):
    EventFactory.create_batch(40)
    page = operators_window(width=360).open("/")
    last = page.locator("#feed-entries > li").nth(15)
    name = str(last.get_attribute("id"))
    last.locator("a").first.focus()
    last.scroll_into_view_if_needed()
    where = page.evaluate("id => document.getElementById(id).getBoundingClientRect().top", name)
    event = EventFactory(message="A new one")
    page.wait_for_selector(f"#feed-e{event.pk}", state="attached", timeout=SOON)
    assert page.evaluate("document.activeElement.closest('li').id") == name
    # Its feed has grown above it; what is looked at has not moved away.
    page.wait_for_function(
        "([id, top]) => Math.abs(document.getElementById(id).getBoundingClientRect().top - top) < 60", arg=[name, where]
    )


def test_the_last_line_of_a_running_session_is_followed(operators_window, house):
    session = Session.objects.get(status=Status.RUNNING)
    page = operators_window().open("/")
    link = page.locator(f"#running-{session.pk}")
    link.focus()
    LogEntry.objects.create(session=session, seq=1, at=timezone.now(), kind="text", text="Looking at caddy", offset=0)
    Session.objects.filter(pk=session.pk).update(ingest_offset=20)
    page.wait_for_selector("#piece-running >> text=Looking at caddy", timeout=SOON)
    assert page.evaluate("document.activeElement.id") == f"running-{session.pk}"


def test_ages_grow_older_while_nothing_happens(operators_window):
    event = EventFactory(session=None, created_at=timezone.now() - timedelta(seconds=20), message="A while ago")
    page = operators_window().open("/events")
    age = f"#event-{event.pk} time"
    first = page.text_content(age)
    page.wait_for_function("([age, first]) => document.querySelector(age).textContent !== first", arg=[age, first])
    assert page.text_content(age).endswith(" ago")


def test_the_browser_says_an_age_as_the_server_does(operators_window):
    page = operators_window().open("/feed")
    begun = timezone.now().replace(microsecond=0)
    spans = (0, 4, 7, 59, 60, 119, 3600, 7300, 86_000, 180_000, 5_300_000, 70_000_000, -40, -4000, -400_000)
    times = [begun - timedelta(seconds=span) for span in spans]
    page.evaluate(
        "all => document.querySelector('h1').innerHTML ="
        " all.map(at => `<time datetime=${at} title=x>9 eras ago</time>`)",
        [at.isoformat() for at in times],
    )
    page.wait_for_function("() => !document.querySelector('h1').textContent.includes('eras')")
    said = page.eval_on_selector_all("h1 time", "all => all.map(age => age.textContent)")
    # Whenever it was looked at since, it is what the server would have said then.
    moments = [begun + timedelta(seconds=n) for n in range(-3, int((timezone.now() - begun).total_seconds()) + 4)]
    for at, text in zip(times, said, strict=True):
        assert text in {humanize.ago(at, moment) for moment in moments}


@pytest.mark.parametrize(("width", "dark"), [(1440, True), (360, False)])
def test_the_feeds_page_has_no_barrier_and_fits(operators_window, axe, album, width, dark):
    one = operators_window(width=width, dark=dark)
    page = one.open("/feed")
    assert one.findings(axe) == []
    assert one.sideways == 0
    album(page, picture_name("feed", width, dark))


@pytest.mark.parametrize("width", [1440, 1280, 390])
def test_a_long_schedule_and_a_long_name_push_no_button_of_an_agent_out_of_its_table(operators_window, width):
    agent = AgentFactory(slug="the-one-that-looks-after-the-certificates", schedule_kind="cron")
    Agent.objects.update(cron="15 3,7,11,15,19,23 * * 1-5", schedule_kind="cron", enabled=True)
    Agent.objects.update(next_run_at=timezone.now() - timedelta(minutes=28))
    for number in range(20):
        at = timezone.now() - timedelta(hours=number + 1)
        SessionFactory(agent=agent, queued_at=at, started_at=at, ended_at=at, duration_ms=313_000, cost_usd="0.1598")
    page = operators_window(width=width).open("/")
    hidden = page.eval_on_selector(".agents .table-box", "box => box.scrollWidth - box.clientWidth")
    assert hidden == 0
    assert page.locator(f"#agent-switch-{agent.pk}").is_visible()


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_what_waits_for_models_fits_and_leads_to_their_calls(operators_window, axe, settings, width, dark):
    settings.CLAUDEOPS_MODEL_URL = "http://127.0.0.1:9/v1/chat/completions"
    settings.CLAUDEOPS_MODEL_OBSERVER = "http:a-model-with-a-name-that-is-longer-than-most-of-them-are"
    StageFactory(name="call")
    for _ in range(3):
        ModelCall.objects.create(
            role="observer",
            backend="http",
            model="a-model-with-a-name-that-is-longer-than-most-of-them-are",
            prompt_hash="a" * 64,
            outcome="failed",
            error="no-answer-" * 40,
        )
    one = operators_window(width=width, dark=dark)
    page = one.open("/")
    assert "1 transcript part waiting" in page.inner_text("#model-observer")
    assert one.findings(axe) == []
    assert one.sideways == 0
    page.focus("#model-calls")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/memories/modelcall/")
    assert one.sideways == 0
