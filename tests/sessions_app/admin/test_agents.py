"""Agents in the admin: profiles that are edited, and running one now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.models import Agent, Session, Status
from tests.support.factories import AgentFactory, SessionFactory

LIST = "/admin/sessions_app/agent/"


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def posted(**changes: object) -> dict[str, object]:
    """The form of a plain agent, as a browser sends it."""
    sent = {
        "slug": "watch",
        "enabled": "on",
        "schedule_kind": "none",
        "tier": "1",
        "runner": "claude",
        "structured_response": "on",
        "allowed_tools": "",
        "disallowed_tools": "",
        "prompt_template": "",
    }
    return sent | changes


def errors(response, field: str) -> str:
    assert response.status_code == 200
    return " ".join(response.context["adminform"].form.errors.get(field, []))


def said(response) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def test_tool_rules_are_typed_one_a_line(signed_in):
    rules = "Read\n\n  Bash(docker ps *)  \r\nBash(df *, du *)\n"
    assert signed_in.post(LIST + "add/", posted(allowed_tools=rules)).status_code == 302
    agent = Agent.objects.get()
    assert agent.allowed_tools == ["Read", "Bash(docker ps *)", "Bash(df *, du *)"]
    html = signed_in.get(f"{LIST}{agent.pk}/change/").content.decode()
    assert "Read\nBash(docker ps *)\nBash(df *, du *)</textarea>" in html


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"schedule_kind": "cron", "cron": "* * *"}, "cron", "a cron expression has five"),
        ({"schedule_kind": "cron", "cron": "0 0 31 2 *"}, "cron", "not a cron expression"),
        ({"runner": "replay"}, "replay_stream", "needs a file or a folder"),
        ({"tier": "4"}, "tier", "less than or equal to 3"),
        ({"interval_seconds": "5"}, "interval_seconds", "greater than or equal to 60"),
        ({"allowed_tools": "Bash(docker ps *"}, "allowed_tools", "parenthesis"),
        ({"prompt_template": "{% if %}"}, "prompt_template", "The template cannot be read"),
        ({"slug": "two words"}, "slug", "valid"),
    ],
)
def test_bad_input_is_refused_at_its_field_and_nothing_is_saved(signed_in, changes, field, says):
    assert says in errors(signed_in.post(LIST + "add/", posted(**changes)), field)
    assert not Agent.objects.exists()


def test_a_schedule_that_was_set_here_has_its_next_run(signed_in):
    signed_in.post(LIST + "add/", posted(schedule_kind="interval", interval_seconds="3600"))
    agent = Agent.objects.get()
    assert timedelta(minutes=59) < agent.next_run_at - timezone.now() <= timedelta(minutes=60)
    signed_in.post(
        f"{LIST}{agent.pk}/change/", posted(schedule_kind="cron", cron="15 3 * * *", interval_seconds="3600")
    )
    agent.refresh_from_db()
    assert (agent.next_run_at.hour, agent.next_run_at.minute) == (3, 15)
    signed_in.post(f"{LIST}{agent.pk}/change/", posted(schedule_kind="cron", cron="15 3 * * *", enabled=""))
    agent.refresh_from_db()
    assert agent.next_run_at is None


def test_saving_another_field_does_not_touch_the_schedule_that_moved_meanwhile(signed_in):
    agent = AgentFactory(slug="watch", schedule_kind="interval", interval_seconds=3600)
    moved = timezone.now() + timedelta(minutes=7)
    Agent.objects.update(next_run_at=moved, last_run_at=moved)
    sent = posted(schedule_kind="interval", interval_seconds="3600", description="Looks after it")
    assert signed_in.post(f"{LIST}{agent.pk}/change/", sent).status_code == 302
    agent.refresh_from_db()
    assert (agent.description, agent.next_run_at, agent.last_run_at) == ("Looks after it", moved, moved)


def run(client, *agents: Agent):
    """The action of the list."""
    return client.post(LIST, {"action": "run_now", "index": "0", "_selected_action": [agent.pk for agent in agents]})


def test_the_list_says_when_it_runs_and_links_to_its_sessions(signed_in):
    agent = AgentFactory(slug="watch", schedule_kind="interval", interval_seconds=5400, tier=2)
    Agent.objects.update(next_run_at=timezone.now() + timedelta(minutes=23, seconds=30))
    AgentFactory(slug="nightly", schedule_kind="cron", cron="15 3 * * *")
    html = signed_in.get(LIST).content.decode()
    assert "every 1 h 30 min" in html
    assert ">in 23 minutes</time>" in html
    assert "<code>15 3 * * *</code> UTC" in html
    assert 'href="/agents/watch"' in signed_in.get(f"{LIST}{agent.pk}/change/").content.decode()


def test_run_now_queues_a_session_in_the_persons_name(signed_in):
    agent = AgentFactory(tier=2)
    response = run(signed_in, agent)
    session = Session.objects.get()
    assert (session.agent, session.tier, session.trigger, session.requested_by) == (agent, 2, "manual", "operator")
    assert f'href="/sessions/{session.pk}"' in said(response)


def test_a_busy_agent_is_queued_and_it_is_said_why_it_waits(signed_in):
    agent = AgentFactory(slug="watch")
    SessionFactory(agent=agent, status=Status.RUNNING)
    assert "Agent watch is busy" in said(run(signed_in, agent))


def test_run_now_for_several(signed_in):
    one, two, _other = AgentFactory(), AgentFactory(), AgentFactory()
    run(signed_in, one, two)
    assert set(Session.objects.values_list("agent", flat=True)) == {one.pk, two.pk}


def test_what_is_refused_is_said(signed_in, settings):
    settings.CLAUDEOPS_MAX_TIER = 1
    agent = AgentFactory(tier=3)
    response = run(signed_in, agent)
    assert "above the highest allowed tier" in said(response)
    assert not Session.objects.exists()


def test_who_may_edit_agents_may_not_run_them_without_the_permission(client, django_user_model):
    editor = django_user_model.objects.create_user("editor", is_staff=True)
    editor.user_permissions.set(Permission.objects.filter(codename__in=("view_agent", "change_agent")))
    client.force_login(editor)
    agent = AgentFactory()
    run(client, agent)
    assert '<option value="run_now">' not in client.get(LIST).content.decode()
    assert not Session.objects.exists()


def test_the_list_costs_the_same_with_twice_the_rows(signed_in):
    def queries(rows: int) -> int:
        for _ in range(rows):
            SessionFactory(agent=AgentFactory())
        with CaptureQueriesContext(connection) as captured:
            assert signed_in.get(LIST).status_code == 200
        return len(captured)

    queries(1)
    assert queries(5) == queries(6)


def test_a_deleted_agent_leaves_its_sessions(signed_in):
    session = SessionFactory()
    assert signed_in.post(f"{LIST}{session.agent_id}/delete/", {"post": "yes"}).status_code == 302
    session.refresh_from_db()
    assert session.agent is None
