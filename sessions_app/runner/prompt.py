"""Gather what a session's prompt is composed of, from its row and what belongs to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from memories.capture.agent_id import agent_id
from memories.files.instructions import section
from memories.files.sections import sections_for
from memories.files.told import NOTHING_TOLD, Told, told_to
from memories.injection.project import Selection, select
from memories.injection.tags import Subject
from sessions_app.cooldowns import limits
from sessions_app.models import TASK_TEXT, Session, Trigger
from sessions_app.prompts import brief, render
from sessions_app.prompts.compose import Composed, compose
from sessions_app.prompts.digest import digest_of
from sessions_app.prompts.sections import Inputs, Workspace, outside_or_typed


def selection_for(session: Session, *, at: datetime) -> Selection:
    """Choose the memories of the session's project, by what its task is about and which paths it names."""
    given = brief.read(session.brief)
    subject = Subject(f"{given.title}\n{session.task}", (*given.write_scope, *given.read_first))
    return select(session.project, subject, at=at)


def told_for(session: Session) -> Told:
    """Return what the session's agent is told of its memory file; nothing without an agent, a project or a file."""
    return told_to(session.agent.slug, session.project_id) if session.agent else NOTHING_TOLD


def compose_for(
    session: Session, selection: Selection, told: Told = NOTHING_TOLD, *, handoff_file: str, at: datetime
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
        memories=selection.text,
        agent_memory=_of_file(told, session),
        escalation=_handed_over(session),
        digest=digest_of(session),
    )
    made = render.rendered(
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
            role=made.role,
            constraints=made.constraints,
            output_format=made.output_format,
            task_in_role=made.task_in_role,
        )
    )


def _of_file(told: Told, session: Session) -> str:
    if told.file is None or session.agent is None or session.project is None:
        return ""
    return section(told.text, sections_for(agent_id(session.agent.slug), session.project.files_sections))


def _handed_over(session: Session) -> Mapping[str, Any] | None:
    parent = session.parent
    if parent is None or not parent.escalation or session.follows_as:
        return None
    return {**parent.escalation, "from_tier": parent.tier, "session": parent.pk}
