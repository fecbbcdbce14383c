"""What an empty installation shows first: three steps and how far each is, until something was learned or ran."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.features.first_day import first_day
from sessions_app.agent_templates import TEMPLATES
from sessions_app.models import Agent, ScheduleKind, Status
from tests.claudeops.front import FRAGMENT, front
from tests.sessions_app.people import HTMX, person
from tests.support.factories import AgentFactory, MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db

SHOWN = 'id="first-day"'
DONE, TO_DO = "</svg>done", "</svg>to do"
CREATE = 'action="/agents/from-template/{}"'


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


@pytest.fixture(autouse=True)
def no_cli(settings):
    settings.CLAUDEOPS_CLAUDE_BIN = "claude-that-is-not-there"


@pytest.fixture
def cli(settings, tmp_path, monkeypatch):
    """A CLI that is installed and signed in."""
    binary = tmp_path / "claude"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    settings.CLAUDEOPS_CLAUDE_BIN = str(binary)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")


def step(html: str, name: str) -> str:
    found = re.search(rf'<li id="first-{name}">.*?(?=<li id="first-|</section>)', html)
    assert found, name
    return found.group()


def test_an_empty_installation_says_what_to_do_first_and_all_of_it_is_to_do(signed_in):
    html = front(signed_in)
    for name in ("cli", "agent", "import"):
        assert TO_DO in step(html, name)
        assert DONE not in step(html, name)
    assert "python manage.py session import" in step(html, "import")
    for slug in TEMPLATES:
        assert CREATE.format(slug) in step(html, "agent")


def test_a_cli_that_is_missing_is_named_with_what_to_do(signed_in):
    html = step(front(signed_in), "cli")
    assert "claude-that-is-not-there" in html
    assert "npm install" in html
    assert "python manage.py doctor" in html


def test_a_cli_that_is_ready_is_done(signed_in, cli):
    html = step(front(signed_in), "cli")
    assert DONE in html
    assert TO_DO not in html
    assert "doctor" not in html


def test_only_the_page_looks_for_the_cli_and_never_its_poll(signed_in, settings):
    answer = signed_in.get(FRAGMENT, headers=HTMX).content.decode()
    assert 'id="overview"' in answer
    assert SHOWN not in answer
    assert "claude-that-is-not-there" not in answer


@pytest.mark.parametrize("slug", TEMPLATES)
def test_an_agent_is_created_from_each_template_and_its_schedule_begins(signed_in, cli, slug):
    before = timezone.now()
    answer = signed_in.post(f"/agents/from-template/{slug}")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    agent = Agent.objects.get()
    agent.full_clean()
    assert (agent.slug, agent.tier, agent.enabled) == (slug, 1, True)
    assert agent.schedule_kind != ScheduleKind.NONE
    assert agent.description
    assert agent.next_run_at is not None
    assert before < agent.next_run_at <= before + timedelta(days=4)
    html = front(signed_in)
    assert f"Created {slug}: its schedule runs." in html
    made = step(html, "agent")
    assert DONE in made
    assert f'href="/agents/{slug}"' in made
    assert CREATE.format(slug) not in made


def test_the_tools_of_a_template_cannot_write():
    for template in TEMPLATES.values():
        for rule in template.fields.get("allowed_tools", []):
            assert not re.match(r"Write|Edit|NotebookEdit|Bash\(git .*\*", rule), rule


def test_an_agent_is_paused_until_the_cli_is_ready_and_can_be_resumed_here(signed_in):
    signed_in.post("/agents/from-template/host-watch")
    agent = Agent.objects.get()
    assert (agent.enabled, agent.next_run_at) == (False, None)
    html = front(signed_in)
    assert "Created host-watch, paused: the CLI is not ready on this host." in html
    assert "created, paused" in step(html, "agent")
    assert f'action="/agents/{agent.pk}/resume"' in step(html, "agent")
    signed_in.post(f"/agents/{agent.pk}/resume")
    assert "created, paused" not in step(front(signed_in), "agent")


def test_a_template_is_used_once_and_an_agent_of_its_name_stays_as_it_is(signed_in, cli):
    AgentFactory(slug="host-watch", name="Mine", tier=2)
    answer = signed_in.post("/agents/from-template/host-watch", follow=True)
    assert "There is an agent host-watch already; it was left as it is." in answer.content.decode()
    agent = Agent.objects.get()
    assert (agent.name, agent.tier) == ("Mine", 2)


def test_htmx_gets_a_message(signed_in, cli):
    answer = signed_in.post("/agents/from-template/host-watch", headers=HTMX)
    assert answer.status_code == 200
    assert b"Created host-watch" in answer.content


def test_a_template_that_there_is_not_is_404_and_reading_creates_nothing(signed_in):
    assert signed_in.post("/agents/from-template/no-such-template").status_code == 404
    assert signed_in.get("/agents/from-template/host-watch").status_code == 405
    assert not Agent.objects.exists()


def test_an_agent_that_was_made_otherwise_is_done_too(signed_in):
    AgentFactory(slug="mine")
    assert DONE in step(front(signed_in), "agent")


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_add_agents_sees_the_steps_and_no_buttons(client, role):
    AgentFactory(slug="host-watch", enabled=False)
    client.force_login(person(role))
    html = step(front(client), "agent")
    assert "host-watch" in html
    assert "<form" not in html
    assert "/admin/sessions_app/agent/add/" not in html
    assert client.post("/agents/from-template/backup-check").status_code == 403
    assert Agent.objects.count() == 1


def test_it_is_gone_once_a_session_has_ended(signed_in):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    assert SHOWN in front(signed_in)
    session.status, session.ended_at = Status.FAILED, timezone.now()
    session.save()
    assert SHOWN not in front(signed_in)


def test_it_is_gone_once_there_is_a_memory_and_in_a_demo(signed_in, settings):
    settings.CLAUDEOPS_DEMO = True
    assert SHOWN not in front(signed_in)
    settings.CLAUDEOPS_DEMO = False
    assert SHOWN in front(signed_in)
    MemoryFactory()
    assert SHOWN not in front(signed_in)


def test_it_is_hidden_by_one_person_until_the_next_sign_in(signed_in, operator):
    assert signed_in.get("/first-day/hide").status_code == 405
    answer = signed_in.post("/first-day/hide")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert SHOWN not in front(signed_in)
    again = Client()
    again.force_login(operator)
    assert SHOWN in front(again)
    answer = again.post("/first-day/hide", headers=HTMX)
    assert (answer.status_code, answer.content) == (200, b"")
    assert SHOWN not in front(again)
    assert Client().post("/first-day/hide").headers["Location"].startswith("/login")


@pytest.mark.parametrize(("rows", "most"), [(MemoryFactory, 1), (lambda: SessionFactory(ended_at=timezone.now()), 2)])
def test_an_installation_in_use_pays_one_look_or_two(rf, rows, most):
    for _ in range(3):
        rows()
    request = rf.get("/")
    request.session = {}
    with CaptureQueriesContext(connection) as asked:
        assert first_day(request) is None
    assert len(asked) == most
    for query in asked:
        assert "LIMIT 1" in query["sql"]
