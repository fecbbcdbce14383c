"""Templates of agents to begin with (templates.toml), and making an agent from one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from sessions_app import queue
from sessions_app.models import Agent


@dataclass(frozen=True)
class AgentTemplate:
    slug: str
    note: str
    """What the agent does and when, as the end of a sentence without a full stop."""
    fields: Mapping[str, Any]
    """The agent's fields, without `slug` and `enabled`."""


def _read() -> dict[str, AgentTemplate]:
    tables = tomllib.loads(Path(__file__).with_name("templates.toml").read_text(encoding="utf-8"))
    return {
        slug: AgentTemplate(slug, table.pop("note"), table | {"description": table["description"].strip()})
        for slug, table in tables.items()
    }


TEMPLATES: Mapping[str, AgentTemplate] = _read()


def create(template: AgentTemplate, *, enabled: bool) -> tuple[Agent, bool]:
    """Return the agent of the template's slug and whether it was made now; one that is there already stays as it is.

    With `enabled` its schedule begins, else it is paused. Raises ValidationError for a template that is no valid agent.
    """
    values = {**template.fields, "enabled": enabled}
    Agent(slug=template.slug, **values).full_clean(validate_unique=False)
    with transaction.atomic():
        agent, is_new = Agent.objects.get_or_create(slug=template.slug, defaults=values)
        if is_new:
            queue.reschedule(agent)
    return agent, is_new
