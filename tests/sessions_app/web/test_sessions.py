"""`/sessions`: who sees it, what it shows, how it is narrowed and paged, what a poll brings, asking for a run."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.models import Session, Status, Trigger
from tests.sessions_app.people import HTMX, person
from tests.support.factories import AgentFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db

LIST = "/sessions"
ROWS = "/sessions/rows"


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


@pytest.fixture
def operators(client):
    client.force_login(person("operator"))
    return client


def html_of(client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


def listed(client, query: str = "") -> list[int]:
    html = html_of(client, LIST + query)
    return [int(pk) for pk in re.findall(r'<tr id="session-(\d+)"', html)]


def linked(client, query: str, rel: str) -> str:
    """The query of the link to the next page or the one before."""
    return re.search(rf'href="([^"]+)" rel="{rel}"', html_of(client, LIST + query))[1].replace("&amp;", "&")


def seen(html: str) -> str:
    return re.search(r"seen=([^\"&]*)", html)[1]


def polling(html: str) -> str | None:
    found = re.search(r'id="sessions-poll" hidden hx-get="([^"]+)"', html)
    return found and found[1].replace("&amp;", "&")


def said(response) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


# -- who ---------------------------------------------------------------------------------------------------------


def test_signed_out_the_page_leads_to_the_sign_in_and_the_fragment_is_refused(client, db):
    response = client.get(LIST)
    assert response.status_code == 302
    assert response["Location"] == "/login?next=/sessions"
    assert client.get(ROWS, headers=HTMX).status_code == 403
    assert client.post(LIST, {}).status_code == 302
    assert not Session.objects.exists()


def test_a_viewer_sees_the_list_and_no_form_to_run(viewer):
    SessionFactory()
    html = html_of(viewer, LIST)
    assert 'id="session-rows"' in html
    assert 'id="run"' not in html
    assert viewer.post(LIST, {"prompt": "Look."}).status_code == 403
    assert Session.objects.count() == 1


# -- the list ----------------------------------------------------------------------------------------------------


def test_a_row_shows_status_with_its_reason_cost_turns_and_duration(viewer):
    SessionFactory(
        agent=AgentFactory(slug="watch"),
        status=Status.FAILED,
        status_reason="API error: the usage limit is reached.",
        cost_usd=Decimal("0.0312"),
        num_turns=7,
        duration_ms=83_000,
        started_at=timezone.now() - timedelta(hours=3),
    )
    html = html_of(viewer, LIST)
    for text in ("watch", "API error: the usage limit is reached.", "$0.0312", "1 min 23 s", ">3 hours ago</time>"):
        assert text in html
    assert 'aria-label="failed"' in html


def test_a_queued_session_says_why_it_waits_and_a_running_one_how_many_tools_it_called(viewer):
    SessionFactory(status=Status.QUEUED, hold_reason="Agent watch is busy with session 3.")
    SessionFactory(status=Status.RUNNING, started_at=timezone.now(), stats={"tool_calls": 4})
    html = html_of(viewer, LIST)
    assert "Agent watch is busy with session 3." in html
    assert ">4 tool calls</span>" in html


def test_without_sessions_it_says_what_to_do_next(operators):
    html = html_of(operators, LIST)
    assert "No sessions yet." in html
    assert '<details class="panel run" id="run" open>' in html


def test_when_nothing_matches_it_leads_back_to_all_sessions(viewer):
    SessionFactory()
    html = html_of(viewer, f"{LIST}?status=lost")
    assert 'No session matches. <a href="/sessions">Show all sessions</a>' in html


# -- filters -----------------------------------------------------------------------------------------------------


def test_each_filter_narrows_the_list_and_stays_in_the_form(viewer):
    project = ProjectFactory(slug="media")
    wanted = SessionFactory(
        agent=AgentFactory(slug="watch"), status=Status.FAILED, tier=2, trigger=Trigger.ALERT, project=project
    )
    Session.objects.filter(pk=wanted.pk).update(queued_at=timezone.now() - timedelta(days=3))
    other = SessionFactory()
    day = timezone.now() - timedelta(days=2)
    for query in ("status=failed", "status=went_wrong", "tier=2", "agent=watch", "trigger=alert", "project=media"):
        assert listed(viewer, f"?{query}") == [wanted.pk], query
        assert f'<option value="{query.split("=")[1]}" selected>' in html_of(viewer, f"{LIST}?{query}"), query
    assert listed(viewer, f"?until={day:%Y-%m-%dT%H:%M}") == [wanted.pk]
    assert listed(viewer, f"?since={day:%Y-%m-%dT%H:%M}") == [other.pk]
    assert listed(viewer, "?project=none") == [other.pk]
    assert listed(viewer, "?status=failed&tier=1") == []
    assert listed(viewer, "?status=&tier=&agent=&since=") == [other.pk, wanted.pk]


def test_sessions_that_are_not_finished_and_those_without_an_agent_can_be_asked_for(viewer):
    queued, running = SessionFactory(status=Status.QUEUED), SessionFactory(status=Status.RUNNING, agent=None)
    SessionFactory()
    assert listed(viewer, "?status=unfinished") == [running.pk, queued.pk]
    assert listed(viewer, "?agent=none") == [running.pk]


@pytest.mark.parametrize("query", ["status=odd", "tier=9", "agent=nobody", "trigger=odd", "project=x", "since=soon"])
def test_a_value_that_cannot_be_read_is_said_at_its_field_and_shows_no_rows(viewer, query):
    SessionFactory()
    html = html_of(viewer, f"{LIST}?{query}")
    assert 'class="errorlist"' in html
    assert "<tr id=" not in html
    assert polling(html) is None
    assert viewer.get(f"{ROWS}?{query}", headers=HTMX).status_code == 400


# -- pages -------------------------------------------------------------------------------------------------------


def test_an_older_page_asks_for_news_only_while_one_of_its_sessions_is_open(viewer):
    SessionFactory.create_batch(60)
    first = listed(viewer)
    older = linked(viewer, "", "next")
    assert polling(html_of(viewer, LIST + older)) is None
    Session.objects.filter(pk__lt=first[-1]).update(status=Status.QUEUED)
    address = polling(html_of(viewer, LIST + older))
    assert "after=" in address
    assert viewer.get(address, headers=HTMX).status_code == 204


# -- polling -----------------------------------------------------------------------------------------------------


def test_an_unchanged_poll_looks_at_the_rows_once(viewer):
    SessionFactory.create_batch(3)
    address = polling(html_of(viewer, LIST))
    with CaptureQueriesContext(connection) as queries:
        viewer.get(address, headers=HTMX)
    about = [query["sql"] for query in queries if "FROM sessions " in query["sql"].replace('"', "")]
    assert len(about) == 1


@pytest.mark.parametrize("column", ["summary", "status_reason", "hold_reason", "ingest_offset"])
def test_a_change_of_any_row_that_is_shown_ends_the_silence(viewer, column):
    first, *_ = SessionFactory.create_batch(3)
    address = polling(html_of(viewer, LIST))
    Session.objects.filter(pk=first.pk).update(**{column: 7 if column == "ingest_offset" else "Another word."})
    response = viewer.get(address, headers=HTMX)
    assert response.status_code == 200
    assert f'id="session-{first.pk}"' in response.content.decode()
    assert viewer.get(polling(response.content.decode()), headers=HTMX).status_code == 204


def test_a_poll_brings_the_changed_row_alone(viewer):
    still, moves = SessionFactory(), SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    address = polling(html_of(viewer, LIST))
    Session.objects.filter(pk=moves.pk).update(stats={"tool_calls": 2}, ingest_offset=90)
    html = html_of(viewer, address, **HTMX)
    assert f'<tr id="session-{moves.pk}" data-row="{moves.pk}" hx-swap-oob="true">' in html
    assert "2 tool calls" in html
    assert f'id="session-{still.pk}"' not in html
    assert viewer.get(polling(html), headers=HTMX).status_code == 204


@pytest.mark.parametrize(
    "change",
    [
        {"status": Status.FAILED},
        {"cost_usd": Decimal("0.01")},
        {"num_turns": 3},
        {"hold_reason": "Waits."},
        {"status_reason": "It ended."},
        {"summary": "All well."},
        {"stop_requested_by": "anna"},
    ],
)
def test_whatever_a_row_shows_of_a_session_is_news_when_it_changes(viewer, change):
    session = SessionFactory()
    address = polling(html_of(viewer, LIST))
    Session.objects.filter(pk=session.pk).update(**change)
    assert f'id="session-{session.pk}"' in html_of(viewer, address, **HTMX)


def test_new_sessions_are_held_back_when_asked_while_changes_of_the_shown_ones_come(viewer):
    shown = SessionFactory.create_batch(50)
    address = polling(html_of(viewer, LIST))
    new = SessionFactory()
    Session.objects.filter(pk=shown[0].pk).update(summary="Off the page, still in the browser")
    Session.objects.filter(pk=shown[9].pk).update(summary="All is well")
    html = html_of(viewer, f"{address}&hold=1", **HTMX)
    assert "1 new</button>" in html
    assert f'id="session-{new.pk}"' not in html
    assert 'hx-swap-oob="delete"' not in html
    for session in (shown[0], shown[9]):
        assert f'<tr id="session-{session.pk}" data-row="{session.pk}" hx-swap-oob="true">' in html
    assert viewer.get(f"{polling(html)}&hold=1", headers=HTMX).status_code == 204
    button = unescape(re.search(r'id="sessions-held-show" hx-get="([^"]+)"', html)[1])
    html = html_of(viewer, button, **HTMX)
    assert f'<tbody hx-swap-oob="afterbegin:#session-rows"><tr id="session-{new.pk}"' in html
    assert f'<tr id="session-{shown[0].pk}" hx-swap-oob="delete">' in html
    assert "</button></div>" not in html


def test_a_poll_keeps_the_filters(viewer):
    SessionFactory(status=Status.FAILED)
    address = polling(html_of(viewer, f"{LIST}?status=failed"))
    SessionFactory()
    assert viewer.get(address, headers=HTMX).status_code == 204
    SessionFactory(status=Status.FAILED)
    assert "2 sessions that match" in html_of(viewer, address, **HTMX)


# -- run now -----------------------------------------------------------------------------------------------------


def test_an_operator_runs_an_agent_now_and_is_told_that_it_is_queued(operators):
    agent = AgentFactory(slug="watch", tier=3)
    response = operators.post(LIST, {"agent": "watch", "tier": "2", "prompt": " Look at jellyfin. ", "dry_run": "on"})
    assert (response.status_code, response["Location"]) == (302, LIST)
    session = Session.objects.get()
    assert (session.agent, session.tier, session.task) == (agent, 2, "Look at jellyfin.")
    assert (session.trigger, session.requested_by, session.dry_run) == (Trigger.MANUAL, "one-operator", True)
    link = f'<a href="/sessions/{session.pk}">Session {session.pk}</a>'
    assert said(response).startswith(f"{link} is queued")
    assert link in html_of(operators, LIST)


def test_a_session_that_has_to_wait_says_why(operators):
    agent = AgentFactory(slug="watch")
    busy = SessionFactory(agent=agent, status=Status.RUNNING)
    response = operators.post(LIST, {"agent": "watch"})
    assert f"is held. Agent watch is busy with session {busy.pk}" in said(response)


def test_without_an_agent_a_session_has_the_tiers_own_profile(operators):
    operators.post(LIST, {"tier": "1", "prompt": "Look."})
    assert Session.objects.get().agent is None


def test_the_tiers_of_the_form_are_those_that_are_allowed(operators, settings):
    settings.CLAUDEOPS_MAX_TIER = 2
    assert '<option value="3">3 remediate</option>' not in html_of(operators, LIST).split('id="filters"')[0]
    response = operators.post(LIST, {"tier": "3", "prompt": "Mend it."})
    assert response.status_code == 422
    assert "Mend it." in response.content.decode()
    assert not Session.objects.exists()


def test_what_the_queue_refuses_is_said_in_the_form_with_what_to_do(operators, settings):
    AgentFactory(slug="mender", tier=3)
    settings.CLAUDEOPS_MAX_TIER = 2
    response = operators.post(LIST, {"agent": "mender"})
    html = response.content.decode()
    assert response.status_code == 422
    assert "Tier 3 is above the highest allowed tier, 2." in html
    assert "CLAUDEOPS_MAX_TIER" in html
    assert not Session.objects.exists()


def test_a_house_in_dry_run_makes_no_other_sessions(operators, settings):
    settings.CLAUDEOPS_DRY_RUN = True
    assert "enforced by CLAUDEOPS_DRY_RUN" in html_of(operators, LIST)
    operators.post(LIST, {"prompt": "Look."})
    assert Session.objects.get().dry_run
