"""What the CLI posts when a hook fires, with the types of its fields. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from claudeops.lib import outside_json
from memories.models import Project
from sessions_app.errors import InvalidHook, UnknownHook
from sessions_app.models import Session

EVENTS = frozenset(
    (
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop"),
        *("PreCompact", "PostCompact", "Stop", "SessionEnd"),
    )
)
LONGEST_ID = 100
"""Characters of a session's or a subagent's id."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The fields of a hook's JSON. All of it comes from outside; a text that is missing is empty.

    `agent_id` and `agent_type` are the subagent's, `cwd` is the folder in which the CLI works, on its host.
    `source` is why a session starts: startup, resume, clear or compact. `by_agent`: the CLI was started by another one.
    """

    cli_session_id: str
    cwd: str = ""
    source: str = ""
    transcript_path: str = ""
    agent_id: str = ""
    agent_type: str = ""
    tool_name: str = ""
    tool_input: dict[str, Any] = field(default_factory=dict)
    prompt: str = ""
    prompt_id: str = ""
    last_assistant_message: str = ""
    agent_transcript_path: str = ""
    by_agent: bool = False


TEXTS = (
    *("cwd", "source", "transcript_path", "agent_id", "agent_type", "tool_name", "prompt", "prompt_id"),
    *("last_assistant_message", "agent_transcript_path"),
)


def known(event: str) -> str:
    """Return `event`. Raises UnknownHook for one that the CLI does not have."""
    if event not in EVENTS:
        raise UnknownHook(f"There is no hook {event[:40]!r}.", f"Known hooks: {', '.join(sorted(EVENTS))}.")
    return event


def parse(event: str, data: bytes, *, by_agent: bool = False) -> Payload:
    """Read the JSON of a hook. Raises InvalidHook."""
    try:
        fields = outside_json.loads(data)
    except ValueError as error:
        raise InvalidHook(f"The body is not JSON: {error}.", "Send the JSON that the CLI gives to a hook.") from error
    if not isinstance(fields, dict):
        raise InvalidHook("The body is no JSON object.", "Send the JSON that the CLI gives to a hook.")
    named = fields.get("hook_event_name", event)
    if named != event:
        raise InvalidHook(f"The body is that of the hook {str(named)[:40]!r}.", "Send it to the address of that hook.")
    tool_input = fields.get("tool_input")
    payload = Payload(
        cli_session_id=_text(fields.get("session_id")),
        tool_input=tool_input if isinstance(tool_input, dict) else {},
        by_agent=by_agent,
        **{name: _text(fields.get(name)) for name in TEXTS},
    )
    if not payload.cli_session_id or max(len(payload.cli_session_id), len(payload.agent_id)) > LONGEST_ID:
        raise InvalidHook(f"session_id is needed; it and agent_id have at most {LONGEST_ID} characters.")
    return payload


def _text(value: Any) -> str:
    """Return a text that every database stores: no NUL characters, no lone surrogates."""
    return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class HookCall:
    """A hook that fired at `at` (UTC). `project` is that of the folder in which the CLI works, `session` one of ours.

    `installation` is the name of the token with which the hook was installed, or `sessions` for our own sessions.
    """

    event: str
    payload: Payload
    project: Project | None
    session: Session | None
    installation: str
    at: datetime


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """`context` is a text for the model. `deny` is the reason for which a tool call is refused (PreToolUse alone).

    `tool_input` takes the place of the call's own (PreToolUse alone).
    `keep` stores the record of the answer, in the transaction that queues what can wait.
    """

    context: str = ""
    deny: str = ""
    tool_input: Mapping[str, Any] | None = None
    keep: Callable[[], object] | None = None


Handler = Callable[[HookCall], HookAnswer | None]

HANDLERS: dict[str, list[Handler]] = {event: [] for event in EVENTS}
"""By event the functions whose answer the CLI waits for: together at most 30 ms."""

LATER: dict[str, list[Callable[[HookCall], object]]] = {event: [] for event in EVENTS}
"""By event the functions that a worker calls: at least once, perhaps twice, in any order."""


def document(event: str, answers: Sequence[HookAnswer]) -> dict[str, Any]:
    """Build the JSON for the CLI. A reason to deny goes before all else; nothing to say is an empty object."""
    denied = [answer.deny for answer in answers if answer.deny]
    context = "\n\n".join(answer.context for answer in answers if answer.context)
    if denied:
        output: dict[str, Any] = {"permissionDecision": "deny", "permissionDecisionReason": "\n".join(denied)}
    elif rewritten := next((answer.tool_input for answer in answers if answer.tool_input is not None), None):
        output = {"permissionDecision": "allow", "updatedInput": dict(rewritten)}
    elif context:
        output = {"additionalContext": context}
    else:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, **output}}
