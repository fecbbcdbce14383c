"""Build the command line of a session's process. Pure.

Flags were measured with CLI 2.1.330. The prompt goes in on stdin: as an argument a leading `-` fails,
and flags that take several values swallow it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claudeops.lib.claude_cli import ARGUMENT_LIMIT


@dataclass(frozen=True, slots=True)
class Launch:
    """The values of the CLI's command line. Money in US dollars. `resume` is the CLI's session that it continues."""

    cli_session_id: str
    model: str
    allowed_tools: Sequence[str]
    disallowed_tools: Sequence[str]
    max_turns: int
    max_budget_usd: float
    append_text: str
    append_file: Path
    schema: str = ""
    resume: str = ""
    mcp_config: Path | None = None
    settings: Path | None = None


def claude_argv(binary: str, launch: Launch) -> list[str]:
    """Build the CLI's command line. The caller writes `append_text` to `append_file` when `needs_file` says so."""
    argv = [
        binary,
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--model",
        launch.model,
        "--session-id",
        launch.cli_session_id,
        "--setting-sources",
        "",
        "--strict-mcp-config",
        "--permission-mode",
        "dontAsk",
        "--max-turns",
        str(launch.max_turns),
        "--max-budget-usd",
        f"{launch.max_budget_usd:g}",
    ]
    if launch.resume:
        # A session of its own that begins with the other's conversation. A resumed one would keep its old system
        # prompt, and so the memories of then.
        argv += ["--resume", launch.resume, "--fork-session", "--system-prompt-snapshot", "off"]
    if launch.append_text:
        if needs_file(launch.append_text):
            argv += ["--append-system-prompt-file", str(launch.append_file)]
        else:
            argv += ["--append-system-prompt", launch.append_text]
    if launch.mcp_config is not None:
        argv += ["--mcp-config", str(launch.mcp_config)]
    if launch.settings is not None:
        argv += ["--settings", str(launch.settings)]
    if launch.schema:
        argv += ["--json-schema", launch.schema]
    if launch.allowed_tools:
        argv += ["--allowedTools", *launch.allowed_tools]
    if launch.disallowed_tools:
        argv += ["--disallowedTools", *launch.disallowed_tools]
    return argv


def needs_file(text: str) -> bool:
    return len(text.encode("utf-8")) > ARGUMENT_LIMIT


def replay_argv(player: Path, stream: Path, cli_session_id: str, speed: float) -> list[str]:
    """Build the command line that plays a recorded stream instead of the CLI; `speed` 1 is real time, 0 no pauses."""
    return [
        sys.executable,
        str(player),
        "--stream",
        str(stream),
        "--session-id",
        cli_session_id,
        "--speed",
        f"{speed:g}",
    ]


_STRING: dict[str, Any] = {"type": "string"}

RESPONSE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "description": "What was found and done, in one to three sentences."},
        "events": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "level": {"type": "string", "enum": ["info", "warning", "critical"]},
                    "service": _STRING,
                    "message": _STRING,
                },
                "required": ["level", "message"],
            },
        },
        "memories": {
            "type": "array",
            "description": "Durable observations only; most runs have none.",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "string", "description": "service:category, or category"},
                    "value": _STRING,
                },
                "required": ["key", "value"],
            },
        },
        "memories_used": {
            "type": "array",
            "description": "The numbers of the memories that you used: 42 for [m42].",
            "items": {"type": "integer"},
        },
        "escalation": {
            "type": "object",
            "properties": {
                "needed": {"type": "boolean"},
                "reason": _STRING,
                "context": _STRING,
                "failed_checks": {"type": "array", "items": _STRING},
            },
            "required": ["needed"],
        },
        "services_checked": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": _STRING,
                    "status": {"type": "string", "enum": ["healthy", "degraded", "unhealthy", "unknown"]},
                    "detail": _STRING,
                },
                "required": ["name", "status"],
            },
        },
    },
    "required": ["summary", "events", "memories", "escalation", "services_checked"],
}

RESPONSE_SCHEMA_JSON = json.dumps(RESPONSE_SCHEMA, separators=(",", ":"), sort_keys=True)
