"""A credential in a task or in an agent's profile is masked, and the person is told; in a tool rule it is refused."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from sessions_app.models import Agent, Session
from tests.support.factories import AgentFactory

TOKEN = "gh" + "p_" + "a1B2c3D4e" * 4
SAID = "What looks like a credential was masked: GitHub token."

pytestmark = pytest.mark.django_db


def test_a_task(client, operator):
    client.force_login(operator)
    page = client.post(reverse("sessions"), {"prompt": f"Clone with {TOKEN}"}, follow=True)
    assert SAID in page.content.decode() and "CLAUDEOPS_PASS_ENV" in page.content.decode()
    assert Session.objects.get().task == "Clone with [secret: GitHub token]"


def test_an_agent_s_prompt_in_the_admin(client, operator):
    client.force_login(operator)
    given = {"slug": "forge", "tier": 1, "runner": "claude", "schedule_kind": "none", "description": f"Uses {TOKEN}"}
    page = client.post(reverse("admin:sessions_app_agent_add"), given, follow=True)
    assert SAID in page.content.decode()
    assert Agent.objects.get().description == "Uses [secret: GitHub token]"


def test_a_tool_rule():
    agent = AgentFactory(disallowed_tools=[f"Bash(curl -H {TOKEN} *)"])
    with pytest.raises(ValidationError, match="A tool rule holds what looks like a credential"):
        agent.clean()
