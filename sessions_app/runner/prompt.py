"""Gather what a session's prompt is composed of, from its row and what belongs to it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from claudeops.lib.secrets import mask
from memories.capture.fields import agent_id
from memories.curate.files import refresh
from memories.curate.told import NOT_CURATED, Curated, files_of, select_curated
from memories.files.instructions import section
from memories.files.sections import sections_for
from memories.files.told import NOTHING_TOLD, Told, told_to
from memories.injection import selector
from memories.injection.knowledge import NO_KNOWLEDGE, Knowledge, select_knowledge
from memories.injection.ops import Injection, budget_for, build
from memories.injection.project import Selection, select
from memories.injection.relevant import Task
from memories.injection.selector import keys_of
from memories.injection.tags import Subject
from memories.library.decisions import index as decisions
from memories.models import Project
from sessions_app.cooldowns import limits
from sessions_app.models import TASK_TEXT, Agent, Session, Trigger
from sessions_app.prompts import brief, render
from sessions_app.prompts.compose import Composed, compose
from sessions_app.prompts.digest import digest_of
from sessions_app.prompts.sections import Inputs, Workspace, outside_or_typed

log = logging.getLogger(__name__)

TAG = re.compile(r"\{[{%#].*?[}%#]\}", re.DOTALL)
"""A tag of a template, which is no word of its text."""
BEGINNING = 400
"""Characters of a template that are asked for: of more words none weighs anything."""


@dataclass(frozen=True, slots=True)
class Selected:
    """All that a session is told: operational memories in its system prompt, all others and files in its prompt.

    `told` are the texts of the prompt, which the operational memories do not repeat.
    """

    ops: Injection
    project: Selection
    agent: Told
    knowledge: Knowledge
    curated: Curated
    told: selector.Texts = selector.NOTHING

    @property
    def record(self) -> dict[str, Any]:
        """Return what a receipt says of what is in the prompt."""
        return {
            **self.project.record,
            "agent_file": self.agent.record,
            "knowledge": self.knowledge.record,
            "curated": self.curated.record,
            "included": [*self.project.included, *self.agent.included, *self.knowledge.included],
            "left_out": [*self.project.left_out, *self.agent.left_out, *self.knowledge.left_out],
        }

    def composed(self, session: Session, *, handoff_file: str, at: datetime) -> Composed:
        """Compose the prompt that has it. Raises InvalidSession."""
        return compose_for(
            session, self.project, self.agent, self.knowledge, self.curated, handoff_file=handoff_file, at=at
        )


def draft(agent: str | None, project: Project | None, tier: int | None, task: str) -> Session:
    """Return a session that is not stored, to compose its prompt. `agent` is a slug. Raises AgentNotFound."""
    by = Agent.objects.named(agent) if agent is not None else None
    project = project or (by.project if by else None)
    return Session(agent=by, project=project, tier=tier or (by.tier if by else 1), task=mask(task))


def selected_for(session: Session, *, at: datetime, budget: int | None = None) -> Selected:
    """Choose all that a session is told at `at` (aware UTC), nothing of it twice.

    What is surest of its place comes first: MEMORY.md, the agent's file, the project, knowledge, then what is
    operational. `budget` is that of the operational memories in tokens, None: the agent's own or the setting's. For a
    session that is not stored no recall is logged.
    """
    task = Task(session.task, session.agent.slug if session.agent else None, session.pk, is_preview=session.pk is None)
    curated = curated_for(session)
    told = keys_of(curated.texts)
    agent = told_for(session, told=told)
    told |= keys_of(entry["observation"] for entry in agent.included)
    project = selection_for(session, at=at, told=told)
    told |= keys_of(entry["observation"] for entry in project.included)
    knowledge = knowledge_for(session, at=at, told=told)
    told |= keys_of(entry["observation"] for entry in knowledge.included)
    own = session.agent.memory_budget if session.agent and budget is None else budget
    ops = build(budget=budget_for(own), project_id=session.project_id, at=at, task=task, told=told)
    return Selected(ops, project, agent, knowledge, curated, told)


def selection_for(session: Session, *, at: datetime, told: selector.Texts = selector.NOTHING) -> Selection:
    """Choose the memories of the session's project, by what its task is about and which paths it names."""
    return select(session.project, _subject(session), at=at, told=told)


def told_for(session: Session, *, told: selector.Texts = selector.NOTHING) -> Told:
    """Return what the session's agent is told of its memory file; nothing without an agent, a project or a file."""
    return told_to(session.agent.slug, session.project_id, said=told) if session.agent else NOTHING_TOLD


def curated_for(session: Session) -> Curated:
    """Choose what the session is told of MEMORY.md as it is now. No error in there keeps a session from starting."""
    try:
        for file in files_of(session.project):
            refresh(file)
        return select_curated(session.project)
    except Exception:
        log.exception("session %s: the curated memory could not be read", session.pk)
        return NOT_CURATED


def knowledge_for(session: Session, *, at: datetime, told: selector.Texts = selector.NOTHING) -> Knowledge:
    """Choose what is known about the session's task or, without one, about what its agent is for.

    Without a task it is lean, with one balanced; what an alert or an escalation began is asked for more, an escalation
    also for why it was handed over.
    """
    task_brief, agent, handed = brief.read(session.brief), session.agent, _handed_over(session) or {}
    texts = (task_brief.title, session.task, str(handed.get("reason") or ""))
    task = "\n".join(part.strip() for part in texts if part.strip())
    urgent = session.trigger in (Trigger.ALERT, Trigger.ESCALATION)
    return select_knowledge(
        task or _purpose(agent, session),
        session.project,
        agent.slug if agent else None,
        profile="deep" if urgent else "balanced" if task else "lean",
        at=at,
        session_id=session.pk,
        is_preview=session.pk is None,
        told=told,
    )


def _purpose(agent: Agent | None, session: Session) -> str:
    """Return what a session without a task is about: the words of its agent and the names of its project."""
    project = session.project
    template = TAG.sub(" ", agent.prompt_template).strip()[:BEGINNING] if agent else ""
    parts = (agent and agent.name, agent and agent.description, template, project and (project.name or project.slug))
    return "\n".join(str(part).strip() for part in parts if part)


def compose_for(
    session: Session,
    selection: Selection,
    told: Told = NOTHING_TOLD,
    knowledge: Knowledge = NO_KNOWLEDGE,
    curated: Curated = NOT_CURATED,
    *,
    handoff_file: str,
    at: datetime,
) -> Composed:
    """Compose the prompt of a session, which may be one that is not stored. Raises InvalidSession."""
    agent, project = session.agent, session.project
    outside = TASK_TEXT in session.exposed_before or session.trigger == Trigger.ALERT
    inputs = Inputs(
        role="",
        task=session.task,
        task_is_outside=outside,
        task_is_alert=session.trigger == Trigger.ALERT,
        brief=brief.read(session.brief),
        workspace=Workspace(
            slug=project.slug if project else "",
            name=project.name if project else "",
            description=project.description if project else "",
            path=project.path if project else "",
            folder=agent.working_directory if agent else "",
        ),
        curated=curated.text,
        memories=selection.text,
        knowledge=knowledge.text,
        agent_memory=_of_file(told, session),
        decisions=_decisions_for(session),
        escalation=_handed_over(session),
        digest=digest_of(session),
    )
    rendering = render.rendered(
        session,
        agent,
        task=outside_or_typed(inputs),
        limits=limits.limits_text(at=at),
        handoff_file=handoff_file,
        escalation=inputs.escalation,
    )
    return compose(
        replace(
            inputs,
            role=rendering.role,
            constraints=rendering.constraints,
            output_format=rendering.output_format,
            task_in_role=rendering.task_in_role,
        )
    )


def _decisions_for(session: Session) -> tuple[str, ...]:
    """Return a line for each decision that governs what the task is about."""
    governing = decisions.governing(session.project, _subject(session)) if session.project else ()
    return tuple(map(decisions.line_of, governing))


def _subject(session: Session) -> Subject:
    task_brief = brief.read(session.brief)
    return Subject(f"{task_brief.title}\n{session.task}", (*task_brief.write_scope, *task_brief.read_first))


def _of_file(content: Told, session: Session) -> str:
    if content.file is None or session.agent is None or session.project is None:
        return ""
    return section(content.text, sections_for(agent_id(session.agent.slug), session.project.files_sections))


def _handed_over(session: Session) -> Mapping[str, Any] | None:
    parent = session.parent
    if parent is None or not parent.escalation or session.follows_as:
        return None
    return {**parent.escalation, "from_tier": parent.tier, "session": parent.pk}
