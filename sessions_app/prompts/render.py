"""Render the templates that a session's prompt is composed of, and the text appended to its system prompt.

Prompts are Django templates without autoescape: text for a model, not HTML. Text from outside (a task, an alert, an
escalation's context) is a value of the template, never its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.template import Context, Engine, TemplateDoesNotExist, TemplateSyntaxError

from memories.injection.escape import safe, safe_lines
from memories.taxonomy import OPS
from sessions_app.errors import InvalidSession
from sessions_app.models import Agent, Session

TIER_TEMPLATES = {1: "tier1-observe.md", 2: "tier2-investigate.md", 3: "tier3-remediate.md"}


@cache
def _engine() -> Engine:
    return Engine(dirs=[str(settings.PROMPTS_DIR)], autoescape=False)


@dataclass(frozen=True, slots=True)
class Rendered:
    """The templates of a prompt, rendered. `task_in_role`: the agent's own template says the task."""

    role: str
    constraints: str
    output_format: str
    task_in_role: bool


class _Said:
    """A value of a template that remembers whether a template asked for it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked = False

    def __call__(self) -> str:
        self.asked = True
        return self.text


def rendered(
    session: Session,
    agent: Agent | None,
    *,
    task: str,
    limits: str,
    handoff_file: str,
    escalation: Mapping[str, Any] | None,
) -> Rendered:
    """Render the templates of a session's prompt. `task` is its text, escaped; `escalation` is the parent's record.

    An agent's own template replaces the role; `{{ base }}` in it is the tier's. Raises InvalidSession for a bad one.
    """
    task_text = _Said(task)
    values = {
        "tier": session.tier,
        "max_tier": settings.CLAUDEOPS_MAX_TIER,
        "agent": agent.name or agent.slug if agent else "",
        "description": agent.description.strip() if agent else "",
        "task": task_text,
        "trigger": session.trigger,
        "dry_run": session.dry_run,
        "limits": limits,
        "categories": OPS.categories,
        "project": session.project.slug if session.project else "",
        "handoff_file": handoff_file,
        "structured": agent.structured_response if agent else True,
        "escalation": _escalation(escalation) if escalation else None,
    }
    role = _of_file(TIER_TEMPLATES[session.tier], values)
    if agent and agent.prompt_template.strip():
        try:
            template = _engine().from_string(agent.prompt_template)
            role = _render(template, {**values, "base": role})
        except (TemplateSyntaxError, TemplateDoesNotExist) as error:
            raise InvalidSession(
                f"The prompt of agent {agent.slug} cannot be rendered: {error}.",
                "Correct it in the admin, under Agents.",
            ) from error
    return Rendered(
        role=role,
        constraints=_of_file("constraints.md", values),
        output_format=_of_file("output-format.md", values),
        # A template may ask for the task without saying it (`{% if task %}`): then the prompt's own section says it.
        task_in_role=task_text.asked and bool(task) and task in role,
    )


def _of_file(name: str, values: Mapping[str, Any]) -> str:
    return re.sub(r"\n{3,}", "\n\n", _render(_engine().get_template(name), values).strip())


def _render(template: Any, values: Mapping[str, Any]) -> str:
    return str(template.render(Context(dict(values), autoescape=False)))


def _escalation(handed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an agent's own template may say of what was handed over."""
    return {
        "from_tier": handed.get("from_tier"),
        "session": handed.get("session"),
        "reason": safe(str(handed.get("reason") or "")) or "(no reason given)",
        "context": safe_lines(str(handed.get("context") or "").strip()),
        "failed_checks": [safe(str(check)) for check in handed.get("failed_checks") or []],
    }


def environment_line(session: Session) -> str:
    """Format facts about the run in one line; the same for all runs of a kind, so that the API can cache the prompt."""
    facts = {
        "CLAUDEOPS_TIER": session.tier,
        "CLAUDEOPS_MAX_TIER": settings.CLAUDEOPS_MAX_TIER,
        "CLAUDEOPS_DRY_RUN": session.dry_run,
        "CLAUDEOPS_PROJECT": session.project.slug if session.project else None,
    }
    return "Environment: " + " ".join(
        f"{name}={json.dumps(value)}" for name, value in facts.items() if value is not None
    )


def append_text(session: Session, memory_block: str) -> str:
    """Return the value of --append-system-prompt: the environment line, then the memory block, if any."""
    return "\n\n".join(filter(None, [environment_line(session), memory_block]))
