"""Render a session's prompt, and the text appended to its system prompt.

Prompts are Django templates without autoescape: text for a model, not HTML. Text from outside (a task, an alert, an
escalation's context) is a value of the template, never its source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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


def render_prompt(
    session: Session, agent: Agent | None, *, limits: str, handoff_file: str, escalation: Mapping[str, Any] | None
) -> str:
    """Render the prompt of a session. `escalation` is the parent's record. Raises InvalidSession for a bad template."""
    values = {
        "tier": session.tier,
        "max_tier": settings.CLAUDEOPS_MAX_TIER,
        "agent": agent.name or agent.slug if agent else "",
        "description": agent.description.strip() if agent else "",
        "task": session.task.strip(),
        "trigger": session.trigger,
        "dry_run": session.dry_run,
        "limits": limits,
        "categories": OPS.categories,
        "project": session.project.slug if session.project else "",
        "handoff_file": handoff_file,
        "structured": agent.structured_response if agent else True,
        "escalation": _escalation(escalation) if escalation else None,
    }
    base = _render(_engine().get_template(TIER_TEMPLATES[session.tier]), values)
    if agent and agent.prompt_template.strip():
        try:
            template = _engine().from_string(agent.prompt_template)
            base = _render(template, {**values, "base": base})
        except (TemplateSyntaxError, TemplateDoesNotExist) as error:
            raise InvalidSession(
                f"The prompt of agent {agent.slug} cannot be rendered: {error}.",
                "Correct it in the admin, under Agents.",
            ) from error
    prompt = base.strip() + "\n"
    # The CLI would run a prompt that begins with a slash as a command.
    return f"Task: {prompt}" if prompt.startswith("/") else prompt


def _render(template: Any, values: Mapping[str, Any]) -> str:
    return str(template.render(Context(dict(values), autoescape=False)))


def _escalation(handed: Mapping[str, Any]) -> dict[str, Any]:
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
