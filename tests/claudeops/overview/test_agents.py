"""The agents of the overview: one row each, what its last runs were like, when it runs next, and its buttons."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.features.overview import agents
from claudeops.features.overview.agents import usual_of
from sessions_app.models import Agent, Session, Status, Trigger
from tests.claudeops.front import HTMX, front, piece
from tests.sessions_app.people import person
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db
EVERY = {"schedule_kind": "interval", "interval_seconds": 1800}


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def row_of(html: str, agent: Agent) -> str:
    """The row of an agent, with the one below it that says what holds it."""
    table = piece(html, "agents")
    start = table.index(f'id="agent-{agent.pk}"')
    following = table.find('id="agent-', table.index("agent-do", start))
    end = table.find('<th scope="row"', start)
    return table[start : end if end > 0 else max(following, len(table))]


def test_enabled_ones_stand_first_and_of_these_the_one_that_runs_next(signed_in):
    now = timezone.now()
    later = AgentFactory(**EVERY, next_run_at=now + timedelta(hours=5, minutes=1))
    soon = AgentFactory(**EVERY, next_run_at=now + timedelta(minutes=9, seconds=30))
    off = AgentFactory(**EVERY, enabled=False)
    asked = AgentFactory()
    late = AgentFactory(**EVERY, next_run_at=now - timedelta(minutes=20, seconds=5))
    html = front(signed_in)
    places = [html.index(f'id="agent-{agent.pk}"') for agent in (late, soon, later, asked, off)]
    assert places == sorted(places)
    assert re.search(r"due <time[^>]+>20 minutes ago</time>", row_of(html, late))
    assert ">in 9 minutes</time>" in row_of(html, soon)
    assert "paused" in row_of(html, off)
    assert "on request" in row_of(html, asked)


def test_a_row_says_the_schedule_in_words_or_as_its_expression(signed_in):
    daily = AgentFactory(schedule_kind="cron", cron="30 5 * * *")
    odd = AgentFactory(schedule_kind="cron", cron="*/7 3 * * 1#2")
    half = AgentFactory(**EVERY)
    html = front(signed_in)
    assert "daily at 05:30 UTC" in row_of(html, daily)
    assert "<code>*/7 3 * * 1#2</code> UTC" in row_of(html, odd)
    assert "every 30 min" in row_of(html, half)


def test_a_row_sums_up_the_last_runs_that_ended(signed_in):
    agent, now = AgentFactory(), timezone.now()
    outcomes = [Status.COMPLETED] * 6 + [Status.ESCALATED, Status.FAILED, Status.STOPPED, Status.RUNNING]
    for n, status in enumerate(outcomes):
        SessionFactory(
            agent=agent,
            status=status,
            queued_at=now - timedelta(hours=20 - n),
            started_at=now,
            duration_ms=1000 * (n + 30),
            cost_usd=Decimal(n) / 100,
        )
    row = row_of(front(signed_in), agent)
    assert "10 runs: 6 completed, 1 failed, 1 escalated, 1 stopped, 1 running" in row
    assert '<td class="is-number bad" data-label="success">78&nbsp;%</td>' in row
    assert '<td class="is-number" data-label="median">34 s</td>' in row
    assert '<td class="is-number" data-label="cost">$0.045</td>' in row


def test_what_nothing_is_known_of_is_a_dash():
    nothing = usual_of([])
    assert (nothing.runs, nothing.success, nothing.duration_ms, nothing.cost, nothing.level) == (
        0,
        None,
        None,
        None,
        "",
    )
    free = usual_of([Session(status=Status.COMPLETED)])
    assert (free.runs, free.success, free.duration_ms, free.cost) == (1, 100, None, None)


@pytest.mark.parametrize(("failed", "level"), [(0, ""), (2, ""), (3, "warn"), (4, "warn"), (5, "bad")])
def test_many_failures_stand_out(failed, level):
    runs = [Session(status=Status.FAILED if n < failed else Status.COMPLETED) for n in range(20)]
    assert usual_of(runs).level == level


def test_what_holds_the_next_run_back_is_said(signed_in, settings):
    every = {"schedule_kind": "interval", "next_run_at": timezone.now() + timedelta(minutes=2)}
    busy, waits = AgentFactory(slug="busy", **every), AgentFactory(slug="waits", **every)
    late = AgentFactory(slug="late", schedule_kind="interval", next_run_at=timezone.now() - timedelta(minutes=9))
    broken = AgentFactory(slug="broken", schedule_kind="cron", cron="0 0 31 2 *", next_run_at=None)
    running = SessionFactory(agent=busy, status=Status.RUNNING)
    queued = SessionFactory(agent=waits, status=Status.QUEUED, trigger="scheduled")
    html = front(signed_in)
    assert f'href="/sessions/{running.pk}" title="Agent busy is busy with session {running.pk};' in row_of(html, busy)
    assert f"Session {queued.pk} of this schedule is still queued; a further run joins it." in row_of(html, waits)
    assert "No worker checks the schedules. Start <code>manage.py runworker</code>" in row_of(html, late)
    assert "It never runs: " in row_of(html, broken)
    settings.CLAUDEOPS_DAILY_BUDGET_USD = 1.0
    free = AgentFactory(slug="free", **every)
    SessionFactory(ended_at=timezone.now(), cost_usd=Decimal("1.50"))
    assert "The daily budget is spent" in row_of(front(signed_in), free)


def test_of_many_agents_some_are_shown_and_the_number_of_all_is_said(signed_in, monkeypatch):
    monkeypatch.setattr(agents, "MOST", 3)
    AgentFactory.create_batch(4)
    AgentFactory(enabled=False)
    html = piece(front(signed_in), "agents")
    assert html.count('<th scope="row"') == 3
    assert "3 of 5; 4 enabled" in html
    assert 'id="agents-all" href="/admin/sessions_app/agent/"' in html


def test_it_asks_as_often_for_many_agents_as_for_few(signed_in):
    def queries(more: int) -> int:
        for agent in AgentFactory.create_batch(more, **EVERY, next_run_at=timezone.now()):
            SessionFactory.create_batch(3, agent=agent)
        with CaptureQueriesContext(connection) as captured:
            agents.read(timezone.now(), Decimal(0))
        return len(captured)

    assert queries(2) == queries(8) <= 7


# -- run, pause, resume ------------------------------------------------------------------------------------------------


def test_run_queues_a_session_of_the_agent_and_says_so_by_htmx_and_as_a_form(signed_in, operator):
    agent = AgentFactory()
    answer = signed_in.post(f"/agents/{agent.pk}/run", headers=HTMX)
    made = Session.objects.get()
    assert (made.agent, made.trigger, made.requested_by) == (agent, Trigger.MANUAL, operator.get_username())
    assert (answer.status_code, answer["HX-Trigger"], answer["HX-Reswap"]) == (200, "wake", "none")
    assert f'<a href="/sessions/{made.pk}">Session {made.pk}</a> is queued' in answer.content.decode()
    answer = signed_in.post(f"/agents/{agent.pk}/run")
    assert (answer.status_code, answer.url) == (302, "/")
    assert Session.objects.count() == 2


def test_a_run_that_is_refused_says_why(signed_in):
    agent = AgentFactory(runner="replay", replay_stream="")
    answer = signed_in.post(f"/agents/{agent.pk}/run", headers=HTMX).content.decode()
    assert "is not run: A replay needs a recorded stream." in answer
    assert "toast-error" in answer
    assert not Session.objects.exists()


def test_a_paused_schedule_does_not_run_and_its_undo_resumes_it(signed_in):
    agent = AgentFactory(**EVERY, next_run_at=timezone.now() + timedelta(minutes=5))
    waits = SessionFactory(agent=agent, status=Status.QUEUED, trigger=Trigger.SCHEDULED)
    answer = signed_in.post(f"/agents/{agent.pk}/pause", headers=HTMX).content.decode()
    agent.refresh_from_db()
    waits.refresh_from_db()
    assert (agent.enabled, agent.next_run_at) == (False, None)
    assert "is disabled" in waits.hold_reason
    assert f'action="/agents/{agent.pk}/resume"' in answer
    assert f"{agent.slug} is paused." in answer
    assert "paused" in row_of(front(signed_in), agent)
    again = signed_in.post(f"/agents/{agent.pk}/pause")
    assert [str(one) for one in get_messages(again.wsgi_request)] == [f"{agent.slug} is paused already."]
    signed_in.post(f"/agents/{agent.pk}/resume")
    agent.refresh_from_db()
    waits.refresh_from_db()
    assert agent.enabled
    assert agent.next_run_at is not None
    assert waits.hold_reason == ""


def test_who_may_not_do_it_is_not_offered_it_and_is_refused(client):
    agent = AgentFactory(**EVERY)
    client.force_login(person("viewer"))
    html = piece(front(client), "agents")
    assert "<form" not in html
    for verb in ("run", "pause", "resume"):
        assert client.post(f"/agents/{agent.pk}/{verb}").status_code == 403
    agent.refresh_from_db()
    assert agent.enabled
    assert not Session.objects.exists()


def test_the_buttons_need_a_post_and_an_agent(signed_in):
    agent = AgentFactory()
    for verb in ("run", "pause", "resume"):
        assert signed_in.get(f"/agents/{agent.pk}/{verb}").status_code == 405
        for pk in (agent.pk + 1, 10**30):
            assert signed_in.post(f"/agents/{pk}/{verb}").status_code == 404
