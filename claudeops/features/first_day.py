"""What the overview of an empty installation shows: the first steps, and how far each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.core.checks import CheckMessage
from django.http import HttpRequest

from memories.models import Memory
from sessions_app.agent_templates import TEMPLATES, AgentTemplate
from sessions_app.checks import cli_messages
from sessions_app.models import Agent, Session

HIDDEN = "first_day_hidden"
"""The key of the browser session under which a person has hidden the first steps."""


@dataclass(frozen=True)
class Pick:
    """A template, and the agent of its slug, if there is one."""

    template: AgentTemplate
    agent: Agent | None


@dataclass(frozen=True)
class FirstDay:
    cli: Sequence[CheckMessage]
    """What the CLI lacks on this host; empty when it is ready."""
    has_agent: bool
    picks: Sequence[Pick]


def first_day(request: HttpRequest) -> FirstDay | None:
    """Return the first steps; None when the person has hidden them, in a demo, and once anything was learned or ran.

    It looks at files of the CLI: for pages, not for polls. An installation in use costs one query, or two.
    """
    if settings.CLAUDEOPS_DEMO or request.session.get(HIDDEN):
        return None
    if Memory.objects.exists() or Session.objects.filter(ended_at__isnull=False).exists():
        return None
    agents = {agent.slug: agent for agent in Agent.objects.filter(slug__in=TEMPLATES).only("slug", "enabled")}
    picks = [Pick(template, agents.get(slug)) for slug, template in TEMPLATES.items()]
    return FirstDay(cli_messages(), bool(agents) or Agent.objects.exists(), picks)
