"""The parts of stream-json that do not depend on what is said: the fields of CLI 2.1.330, tokens and prices."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

CWD = "/srv/homelab"
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)

# Dollars a million tokens: input, output, cache written, cache read.
PRICES = {
    "claude-haiku-4-5": (1.0, 5.0, 1.25, 0.1),
    "claude-sonnet-4-5": (3.0, 15.0, 3.75, 0.3),
    "claude-opus-4-5": (5.0, 25.0, 6.25, 0.5),
}
WARM, FIRST_REQUEST = 11_000, 12_600
"""Tokens of a first request: the tools, read from the cache of an earlier run, and all of it with the prompt."""

TOOLS = [
    *("Task", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterWorktree", "ExitWorktree", "ListAgents"),
    *("Monitor", "NotebookEdit", "Read", "ReportFindings", "ScheduleWakeup", "SendMessage", "Skill"),
    *("StructuredOutput", "TaskStop", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write"),
]
COMMANDS = ["agents", "clear", "compact", "config", "context", "init", "mcp", "model", "review", "usage"]
NO_SUBAGENTS = {
    "spawned": 0,
    "requested": {"background": 0, "foreground": 0, "unset": 0},
    "started_in_background": 0,
    "max_depth": 0,
    "spawned_by_subagents": 0,
    "completed": 0,
    "failed": 0,
    "killed": {"parent": 0, "user": 0, "system": 0},
    "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0},
    "by_type": {},
}
FAST_MODE_OFF = {"fast_mode_state": "off", "fast_mode_disabled_reason": "sdk_opt_in_required"}
DENIED = (
    "Permission to use {tool} has been denied because Claude Code is running in don't ask mode. IMPORTANT: You *may* "
    "attempt to accomplish this action using other tools that might naturally be used to accomplish this goal, e.g. "
    "using head instead of cat. But you *should not* attempt to work around this denial in malicious ways."
)


@dataclass(slots=True)
class Tokens:
    """Tokens of a request, or of all of them."""

    input: int = 0
    output: int = 0
    written: int = 0
    read: int = 0

    def add(self, other: Tokens) -> None:
        self.input += other.input
        self.output += other.output
        self.written += other.written
        self.read += other.read

    def cost(self, model: str) -> float:
        amounts = (self.input, self.output, self.written, self.read)
        return round(sum(n * price for n, price in zip(amounts, PRICES[model], strict=True)) / 1_000_000, 8)


def usage(tokens: Tokens, output: int) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.read,
        "output_tokens": output,
        "service_tier": "standard",
    }


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def init(model: str, session_id: str, own_id: str) -> dict[str, Any]:
    """How a process introduces itself."""
    return {
        "subtype": "init",
        "cwd": CWD,
        "session_id": session_id,
        "tools": TOOLS,
        "mcp_servers": [],
        "model": model,
        "permissionMode": "dontAsk",
        "slash_commands": COMMANDS,
        "apiKeySource": "ANTHROPIC_API_KEY",
        "claude_code_version": "2.1.330",
        "output_style": "default",
        "agents": ["claude", "Explore", "general-purpose", "Plan"],
        "skills": [],
        "plugins": [],
        "analytics_disabled": True,
        "product_feedback_disabled": True,
        "uuid": own_id,
        "memory_paths": {"auto": "/home/agent/.claude/projects/-srv-homelab/memory/"},
        "original_cwd": CWD,
        "additional_directories": [],
        **FAST_MODE_OFF,
        "view_mode": "default",
    }


def model_usage(tokens: Tokens, model: str) -> dict[str, Any]:
    """What each model of a run was used for: here there is one."""
    return {
        model: {
            "inputTokens": tokens.input,
            "outputTokens": tokens.output,
            "cacheReadInputTokens": tokens.read,
            "cacheCreationInputTokens": tokens.written,
            "webSearchRequests": 0,
            "costUSD": tokens.cost(model),
            "contextWindow": 200_000,
            "maxOutputTokens": 64_000,
            "canonicalModel": model,
            "provider": "firstParty",
            "costBasis": "list",
        }
    }
