"""The handlers of each hook, and what they answer to the CLI. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memories.models import Project
from sessions_app.hooks.events import EVENTS, Payload
from sessions_app.models import Session


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
        found: dict[str, Any] = {"permissionDecision": "deny", "permissionDecisionReason": "\n".join(denied)}
    elif rewritten := next((answer.tool_input for answer in answers if answer.tool_input is not None), None):
        found = {"permissionDecision": "allow", "updatedInput": dict(rewritten)}
    elif context:
        found = {"additionalContext": context}
    else:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, **found}}
