"""Delegation to subagents: an agent is told its memory file when it starts, and what it learned is taken when it stops.

Its memory arrives with the answer to SubagentStart, which the CLI puts before the subagent; the receipt is kept in the
same call. What can wait is a worker's.
"""

from __future__ import annotations

import hashlib
from functools import partial

from memories.capture.fields import agent_id
from memories.capture.learned import Refused
from memories.capture.statement import Provenance
from memories.files.capture import capture, note_refused
from memories.files.instructions import briefing
from memories.files.sync import sync_file
from memories.files.told import Told, told
from memories.models import AgentFile, Project, Source
from sessions_app.hooks import receipts
from sessions_app.hooks.events import HANDLERS, LATER, HookAnswer, HookCall
from sessions_app.hooks.observing import TranscriptReading, read_transcript
from sessions_app.models import HookReceipt

START, STOP, BY_PROMPT = "SubagentStart", "SubagentStop", "PreToolUse"
DELEGATES = ("Agent", "Task")
"""The names of the tool that starts a subagent, in the versions of the CLI."""
NO_ANSWER = "the subagent ended without an answer"


def brief(call: HookCall) -> HookAnswer | None:
    """Tell a subagent what its memory file says and how to add to it; nothing without a project, or while it is off."""
    name = agent_id(call.payload.agent_type)
    content = _told(call, name)
    if content is None:
        return None
    text = briefing(content.text)
    return HookAnswer(context=text, keep=partial(_keep, call, name, content, text, call.payload.agent_id))


def brief_by_prompt(call: HookCall) -> HookAnswer | None:
    """Put the same before the prompt that the Agent tool gives to a subagent, for a CLI without SubagentStart."""
    arguments, prompt = call.payload.tool_input, call.payload.tool_input.get("prompt")
    kind = arguments.get("subagent_type")
    if call.payload.tool_name not in DELEGATES or not isinstance(prompt, str) or not isinstance(kind, str):
        return None
    name = agent_id(kind)
    content = _told(call, name)
    if content is None:
        return None
    text = briefing(content.text)
    part = hashlib.sha256(f"{name}\n{prompt}".encode()).hexdigest()  # the subagent has no id yet

    def keep() -> None:
        _keep(call, name, content, text, part)
        receipts.count(
            HookReceipt.objects.filter(cli_session_id=call.payload.cli_session_id, event=call.event, part=part)
        )

    return HookAnswer(tool_input={**arguments, "prompt": f"{text}\n\n{prompt}"}, keep=keep)


def _told(call: HookCall, agent: str) -> Told | None:
    """Return what an agent is told; None without a project, or while its file is off."""
    if call.project is None or not agent:
        return None
    file = AgentFile.objects.filter(project=call.project, agent=agent).first()
    if file is None:
        return Told()
    file.project = call.project  # known already: not read again
    return told(file) if file.enabled else None


def _keep(call: HookCall, agent: str, content: Told, text: str, part: str) -> None:
    receipts.keep(call, part=part, text=text, included=content.included, agent=agent)


def prepare(call: HookCall) -> None:
    """Count what a subagent was told, and make the file of an agent that runs for the first time."""
    name = agent_id(call.payload.agent_type)
    if call.project is None or not name:
        return
    receipts.count(HookReceipt.objects.filter(**_of(call), event=START))
    sync_file(call.project, name, create=True)


def learn(call: HookCall) -> None:
    """Take what a subagent learned from its last message, with what it had read, and bring its file in step."""
    name = agent_id(call.payload.agent_type)
    if call.project is None or not name or not _is_on(call.project, name):
        return
    origin = f"hook:{call.payload.cli_session_id}:{call.payload.agent_id}"
    answer = call.payload.last_assistant_message
    reading = read_transcript(call.payload.agent_transcript_path, call.project)
    provenance = _provenance(call, name, reading)
    if not answer.strip():
        note_refused(Refused("block", "", NO_ANSWER), provenance, origin=origin, at=call.at)
        return
    capture(
        answer,
        project=call.project,
        agent=name,
        origin=origin,
        provenance=provenance,
        at=call.at,
        supported=reading.said,
    )
    sync_file(call.project, name, by=provenance.actor, create=True)


def _provenance(call: HookCall, agent: str, reading: TranscriptReading) -> Provenance:
    """Return the provenance of what a subagent says: what it had read, and what it was told."""
    of_session = HookReceipt.objects.filter(cli_session_id=call.payload.cli_session_id, agent=agent)
    # Told by its prompt, a receipt does not know which of the session's subagents of this name it was.
    receipt = HookReceipt.objects.filter(**_of(call), event=START).first() or of_session.filter(event=BY_PROMPT).first()
    return Provenance(
        Source.RUN,
        f"agent:{agent}",
        session_id=call.session.pk if call.session else None,
        tier=call.session.tier if call.session else 0,
        project_id=call.project.pk if call.project else None,
        agent=agent,
        channel="hook",
        at=call.at,
        exposure=reading.exposure,
        exposed_to=reading.sources,
        told=frozenset(entry["id"] for entry in receipt.included) if receipt else frozenset(),
        origin=f"session:{call.payload.cli_session_id}",
    )


def _of(call: HookCall) -> dict[str, str]:
    return {"cli_session_id": call.payload.cli_session_id, "part": call.payload.agent_id}


def _is_on(project: Project, agent: str) -> bool:
    return not AgentFile.objects.filter(project=project, agent=agent, enabled=False).exists()


HANDLERS[START].append(brief)
HANDLERS[BY_PROMPT].append(brief_by_prompt)
LATER[START].append(prepare)
LATER[STOP].append(learn)
