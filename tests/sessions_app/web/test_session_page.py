"""`/sessions/{id}`: what the page of one session shows, what is new on it, stopping it, running it again."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import MemoryChange
from sessions_app.models import InjectionReceipt, LogEntry, ServiceCheck, Session, Status, Trigger
from tests.factories import AgentFactory, CooldownActionFactory, EventFactory, MemoryFactory, SessionFactory
from tests.sessions_app.people import HTMX, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


@pytest.fixture
def operators(client):
    client.force_login(person("operator"))
    return client


def url(session: Session, more: str = "") -> str:
    return f"/sessions/{session.pk}{more}"


def html_of(client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


def live(html: str) -> str | None:
    found = re.search(r'id="session-poll" hidden hx-get="([^"]+)"', html)
    return found and found[1]


def said(response) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def full(session: Session, rows: int = 3) -> Session:
    """A session with everything that can hang on one."""
    for number in range(rows):
        EventFactory(session=session, message=f"Event {number}")
        CooldownActionFactory(session=session)
        ServiceCheck.objects.create(session=session, service=f"service-{number}", status="ok", healthy=True)
        memory = MemoryFactory(session=session)
        MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind="created", session=session)
        SessionFactory(parent=session, tier=2)
        LogEntry.objects.create(
            session=session, seq=number + 1, at=timezone.now(), kind="text", text=f"Line {number}", offset=number
        )
    return session


def receipt(session: Session, rows: int = 2) -> InjectionReceipt:
    entry = {"id": 1, "uuid": "x", "service": None, "category": "timing", "confidence": 0.9, "observation": "Told so"}
    return InjectionReceipt.objects.create(
        session=session,
        text="## Operational Memory",
        sha256="ab" * 32,
        budget=2000,
        tokens=412,
        included=[entry | {"id": number + 1, "reason": ""} for number in range(rows)],
        left_out=[entry | {"observation": "Left out so", "reason": "the budget of 2,000 tokens is full"}],
        counts={"eligible": 18, "included": rows, "over_budget": 16, "held": 0},
    )


# -- who ---------------------------------------------------------------------------------------------------------


def test_signed_out_the_page_leads_to_the_sign_in_and_the_fragment_is_refused(client):
    session = SessionFactory(status=Status.RUNNING)
    assert client.get(url(session)).status_code == 302
    assert client.get(url(session, "/live"), headers=HTMX).status_code == 403
    for more in ("/stop", "/again"):
        assert client.post(url(session, more)).status_code == 302
        assert client.post(url(session, more), headers=HTMX).status_code == 403
    session.refresh_from_db()
    assert session.stop_requested_at is None
    assert Session.objects.count() == 1


def test_a_viewer_sees_the_page_and_can_neither_stop_nor_run_again(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    html = html_of(viewer, url(session))
    assert "stop-button" not in html
    assert "again-button" not in html
    for more in ("/stop", "/again"):
        assert viewer.post(url(session, more)).status_code == 403
        assert viewer.post(url(session, more), headers=HTMX).status_code == 403
        assert viewer.get(url(session, more)).status_code == 405
    session.refresh_from_db()
    assert session.stop_requested_at is None
    assert Session.objects.count() == 1


@pytest.mark.parametrize("pk", [1, 2**63, 10**30])
def test_a_session_that_is_not_there_is_not_found(viewer, pk):
    assert viewer.get(f"/sessions/{pk}").status_code == 404
    assert viewer.get(f"/sessions/{pk}/live").status_code == 404
    assert viewer.get(f"/sessions/{pk}/log").status_code == 404


# -- what it shows -----------------------------------------------------------------------------------------------


def test_the_page_shows_status_reason_cost_turns_tokens_and_duration(viewer):
    session = SessionFactory(
        status=Status.TIMED_OUT,
        status_reason="It ran longer than 60 s.",
        cost_usd=Decimal("1.25"),
        num_turns=9,
        duration_ms=61_000,
        usage={"input_tokens": 12_345, "output_tokens": 67},
        stats={"lines": 7},
        error="Killed.",
        prompt="You observe.",
        task="Look at jellyfin.",
    )
    html = html_of(viewer, url(session))
    for text in (
        "timed out</span>",
        "It ran longer than 60 s.",
        "$1.25",
        "<dd>9</dd>",
        "12,345",
        "1 min 1 s",
        "Killed.",
        "You observe.",
        "Look at jellyfin.",
    ):
        assert text in html
    assert '<details id="told-prompt"><summary>' in html


def test_a_held_session_says_why(viewer):
    session = SessionFactory(status=Status.QUEUED, hold_reason="Agent watch is busy with session 3.")
    html = html_of(viewer, url(session))
    assert "Held: Agent watch is busy with session 3." in html
    assert "The receipt is written when the session starts." in html


def test_the_chain_of_escalation_is_a_tree_from_its_first_session_to_its_last(viewer):
    first = SessionFactory(status=Status.ESCALATED, agent=AgentFactory(slug="watch"))
    second = SessionFactory(parent=first, tier=2, escalation={"reason": "postgres is down"}, status=Status.ESCALATED)
    third = SessionFactory(parent=second, tier=3, status=Status.RUNNING)
    stranger = SessionFactory()
    for one in (first, second, third):
        html = html_of(viewer, url(one))
        chain = re.search(r'class="panel chain-tree".*?</nav>', html, re.DOTALL)[0]
        assert re.findall(r'<li class="chain-(\d)">', chain) == ["0", "1", "2"]
        assert re.findall(r"#(\d+) ", chain) == [str(first.pk), str(second.pk), str(third.pk)]
        assert f'<strong aria-current="page">#{one.pk} ' in chain
    assert "postgres is down" in html_of(viewer, url(second))
    assert "chain-tree" not in html_of(viewer, url(stranger))


def test_a_ring_of_parents_ends(viewer):
    first, second = SessionFactory(), SessionFactory()
    Session.objects.filter(pk=first.pk).update(parent=second)
    Session.objects.filter(pk=second.pk).update(parent=first)
    assert "chain-tree" in html_of(viewer, url(first))


def test_the_receipt_tells_what_was_injected_in_which_place_and_what_was_left_out_and_why(viewer):
    session = SessionFactory()
    receipt(session)
    html = html_of(viewer, url(session))
    for text in (
        "412 of 2,000 tokens",
        "ab" * 32,
        'title="number 2 of 18 by confidence">2</span>',
        "Told so",
        "Left out so",
        "the budget of 2,000 tokens is full",
        '<strong class="number">16</strong> over budget',
        "## Operational Memory",
    ):
        assert text in html


def test_the_answer_is_rendered_and_can_do_no_harm(viewer):
    answer = "## Found\n\n**two** <script>alert(1)</script> [x](javascript:alert(1)) ![y](https://t.example/y.png)"
    session = SessionFactory(response=answer, summary="<b>bold</b>", structured={"summary": "</pre><script>"})
    html = html_of(viewer, url(session))
    assert "<h4>Found</h4>" in html
    assert "<strong>two</strong>" in html
    body = html.split("<main")[1].split("</main>")[0]
    assert "<script" not in body
    assert 'javascript:alert(1)"' not in body
    assert "<img" not in body


def test_everything_that_came_of_it_is_there(viewer):
    session = full(SessionFactory(), rows=1)
    html = html_of(viewer, url(session))
    for text in ("Memories created", "Event 0", "Remediations", "Service checks", "service-0", "Line 0"):
        assert text in html
    assert MemoryChange.objects.get().memory.observation in html


def test_the_number_of_queries_does_not_depend_on_what_hangs_on_it(viewer):
    few, many = full(SessionFactory(), 3), full(SessionFactory(), 6)
    for more in ("", "/live", "/log"):
        html_of(viewer, url(few, more))
        with CaptureQueriesContext(connection) as first:
            html_of(viewer, url(few, more))
        with CaptureQueriesContext(connection) as second:
            html_of(viewer, url(many, more))
        assert len(first) == len(second), more


# -- what is new -------------------------------------------------------------------------------------------------


def test_an_ended_session_asks_for_nothing(viewer):
    html = html_of(viewer, url(SessionFactory()))
    assert live(html) is None
    assert "hx-trigger" not in html.split("<main")[1].split("</main>")[0]


def test_while_nothing_changes_a_poll_brings_nothing(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    response = viewer.get(live(html_of(viewer, url(session))), headers=HTMX)
    assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize(
    "change",
    [
        {"status": Status.FAILED},
        {"ingest_offset": 10},
        {"hold_reason": "Waits."},
        {"stop_requested_by": "anna"},
        {"cost_usd": Decimal("0.1")},
    ],
)
def test_what_an_ingest_a_stop_or_an_end_writes_is_news(viewer, change):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    address = live(html_of(viewer, url(session)))
    Session.objects.filter(pk=session.pk).update(**change)
    assert viewer.get(address, headers=HTMX).status_code == 200


def test_a_poll_brings_the_pieces_that_changed_and_the_next_poll(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now(), task="Look.")
    address = live(html_of(viewer, url(session)))
    EventFactory(session=session, message="Jellyfin hangs")
    Session.objects.filter(pk=session.pk).update(ingest_offset=10)
    html = html_of(viewer, address, **HTMX)
    assert '<div id="piece-results" hx-swap-oob="true">' in html
    assert "Jellyfin hangs" in html
    assert "piece-told" not in html
    assert viewer.get(live(html), headers=HTMX).status_code == 204


def test_a_child_that_moves_is_news_for_its_open_parent(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    child = SessionFactory(parent=session, status=Status.QUEUED)
    address = live(html_of(viewer, url(session)))
    Session.objects.filter(pk=child.pk).update(status=Status.RUNNING)
    assert "piece-head" in html_of(viewer, address, **HTMX)


def test_the_end_brings_the_answer_and_no_further_poll(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    address = live(html_of(viewer, url(session)))
    Session.objects.filter(pk=session.pk).update(
        status=Status.COMPLETED, response="**All well.**", ended_at=timezone.now()
    )
    html = html_of(viewer, address, **HTMX)
    assert "<strong>All well.</strong>" in html
    assert live(html) is None
    assert "hx-trigger" not in html


# -- stop, run again ---------------------------------------------------------------------------------------------


def test_an_operator_stops_a_running_session(operators):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    other = SessionFactory(status=Status.RUNNING)
    response = operators.post(url(session, "/stop"))
    assert (response.status_code, response["Location"]) == (302, url(session))
    assert said(response) == f"Session {session.pk} is stopping; it ends within seconds."
    session.refresh_from_db()
    other.refresh_from_db()
    assert session.stop_requested_by == "one-operator"
    assert other.stop_requested_at is None
    html = html_of(operators, url(session))
    assert "Stop requested by one-operator" in html
    assert "stop-button" not in html


def test_an_operator_stops_a_queued_session_at_once(operators):
    session = SessionFactory(status=Status.QUEUED)
    operators.post(url(session, "/stop"))
    session.refresh_from_db()
    assert session.status == Status.STOPPED


def test_stopping_what_has_ended_is_said_and_changes_nothing(operators):
    session = SessionFactory()
    response = operators.post(url(session, "/stop"))
    assert said(response) == f"Session {session.pk} has already ended (completed)."
    session.refresh_from_db()
    assert session.status == Status.COMPLETED


def test_run_again_asks_for_a_session_like_this_one_and_leads_to_it(operators):
    session = SessionFactory(agent__tier=2, tier=2, task="Look at jellyfin.", dry_run=True, model="sonnet")
    response = operators.post(url(session, "/again"))
    made = Session.objects.exclude(pk=session.pk).get()
    assert response["Location"] == url(made)
    assert (made.agent, made.tier, made.task, made.dry_run) == (session.agent, 2, "Look at jellyfin.", True)
    assert (made.trigger, made.requested_by, made.model) == (Trigger.MANUAL, "one-operator", "sonnet")
    assert f"Session {made.pk}</a> is queued" in said(response)


def test_what_cannot_be_run_again_is_refused_in_words(operators, settings):
    session = SessionFactory(tier=3)
    settings.CLAUDEOPS_MAX_TIER = 1
    response = operators.post(url(session, "/again"))
    assert response["Location"] == url(session)
    assert "is not run again: Tier 3 is above the highest allowed tier, 1." in said(response)
    assert Session.objects.count() == 1


def test_an_escalation_is_not_run_again_above_its_agents_tier(operators):
    session = SessionFactory(agent__tier=1, agent__slug="watch", tier=2)
    response = operators.post(url(session, "/again"))
    assert "is not run again: Tier 2 is above the tier of the agent watch, 1." in said(response)
    assert Session.objects.count() == 1


def test_the_page_says_what_the_session_has_read(viewer):
    reading = {"exposure": "outside", "sources": ["logs: web", "<b>"]}
    session = SessionFactory(ingest_state={"reading": reading})
    assert "<dt>Has read</dt><dd>outside text (logs: web, &lt;b&gt;)</dd>" in html_of(viewer, url(session))
    assert "<dt>Has read</dt><dd>nothing from outside</dd>" in html_of(viewer, url(SessionFactory()))
