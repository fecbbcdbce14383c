"""The hooks of the CLI that call the door, as its settings want them, and those of our own sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from django.core import signing

from sessions_app.models import Session
from sessions_app.runner import start_command

SALT = "claudeops.hooks"
MARK = "X-Claudeops-Hooks"
"""The header by which an installed hook is known as ours; its value is the name of the set."""

AGENTS, COOLDOWNS, DECISIONS, PROMPTS, OBSERVE = "agents", "cooldowns", "decisions", "prompts", "observe"
START = "SessionStart"
"""The hook that the CLI does not post by itself: it runs a command."""
SETS: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        AGENTS: (("SubagentStart", ""), ("SubagentStop", "")),
        COOLDOWNS: (("PreToolUse", "Bash"),),
        # Before a file is changed: which decisions govern it.
        DECISIONS: (("PreToolUse", "Edit|Write|MultiEdit|NotebookEdit"),),
        # For a CLI that has no SubagentStart: the memory goes into the prompt that the tool gives to the subagent.
        PROMPTS: (("PreToolUse", "Agent|Task"), ("SubagentStop", "")),
        # A whole session: what it is told when it starts and by its prompts, and that it can be observed.
        OBSERVE: ((START, ""), ("UserPromptSubmit", ""), ("PreCompact", ""), ("SessionEnd", "")),
    }
)
"""By name the hooks that belong together: (event, matcher of the tool, or empty)."""

TIMEOUT = 3
"""Seconds after which the CLI goes on without an answer."""


def hook_token(session: Session) -> str:
    """Return the token of a session's hooks; the door takes it while the session runs."""
    return signing.dumps(str(session.uuid), salt=SALT)


def groups(
    name: str, *, url: str, token: str, token_file: str = "", fail_closed: bool = False
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (event, entry of the CLI's settings) of a set. `url` is the server's; a token `$NAME` is a variable's name.

    `token_file` is the path of the file from which a command reads any other token. With `fail_closed` a tool call is
    refused when the door does not answer.
    """
    for event, matcher in SETS[name]:
        address = f"{url.rstrip('/')}/hooks/{event}"
        hook: dict[str, Any] = {"type": "http", "url": address, "timeout": TIMEOUT}
        if event == START:
            place = token if token.startswith("$") else token_file
            script = start_command.command(name, url=address, token=place)
            hook = {"type": "command", "command": script, "timeout": TIMEOUT}
        else:
            hook["headers"] = {"Authorization": f"Bearer {token}", MARK: name}
            if token.startswith("$"):
                hook["allowedEnvVars"] = [token[1:]]
            if fail_closed and name == COOLDOWNS:
                hook["onFailure"] = "block"
        yield event, {**({"matcher": matcher} if matcher else {}), "hooks": [hook]}


def settings_of(session: Session, *, url: str, sets: list[str]) -> dict[str, Any]:
    """Build the settings with the hooks of one of our sessions."""
    hooks: dict[str, list[Any]] = {}
    for name in sets:
        for event, group in groups(name, url=url, token=hook_token(session)):
            hooks.setdefault(event, []).append(group)
    return {"hooks": hooks}
