"""What a session is told: the prompt (stdin) and what is appended to the system prompt.

Prompts are Django templates rendered with autoescape off: they are text for a model, not HTML. Whatever comes
from outside (a task, an alert, an escalation's context) goes in as a value, never as template source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings
from django.template import Context, Engine, TemplateDoesNotExist, TemplateSyntaxError

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
    """The whole prompt of a session.

    `limits` is the cooldowns' text, `escalation` what the parent handed over. Raises InvalidSession when the
    agent's own template cannot be rendered.
    """
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
                f"The prompt of agent {agent.slug} cannot be rendered: {error}.", "Mend it in the admin, under Agents."
            ) from error
    prompt = base.strip() + "\n"
    # The CLI runs a prompt that begins with a slash command.
    return f"Task: {prompt}" if prompt.startswith("/") else prompt


def _render(template: Any, values: Mapping[str, Any]) -> str:
    return str(template.render(Context(dict(values), autoescape=False)))


def _escalation(handed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "from_tier": handed.get("from_tier"),
        "session": handed.get("session"),
        "reason": str(handed.get("reason") or "").strip() or "(no reason given)",
        "context": str(handed.get("context") or "").strip(),
        "failed_checks": [str(check) for check in handed.get("failed_checks") or []],
    }


def environment_line(session: Session) -> str:
    """One line of facts about the run. Nothing in it changes between two runs of the same kind: prompts stay cached."""
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
    """What goes to --append-system-prompt: the environment, then the memory block when there is one."""
    return "\n\n".join(filter(None, [environment_line(session), memory_block]))
