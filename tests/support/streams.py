"""Lines of stream-json in the CLI's shapes, for tests that need a stream of their own."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SESSION = "67cde26f-17e1-4348-b9d3-bfd936af657d"
START = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def line(**record: Any) -> str:
    return json.dumps({"session_id": SESSION, **record}) + "\n"


def stamp(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def init(**fields: Any) -> str:
    record = {"cwd": "/srv", "tools": ["Bash"], "mcp_servers": [], "model": "claude-sonnet-5-5"}
    return line(type="system", subtype="init", claude_code_version="2.1.330", **{**record, **fields})


def text(words: str, *, seconds: float | None = None, model: str = "claude-sonnet-5-5", **fields: Any) -> str:
    message = {"id": "msg_1", "role": "assistant", "model": model, "content": [{"type": "text", "text": words}]}
    when = {} if seconds is None else {"timestamp": stamp(seconds)}
    return line(**{"type": "assistant", "message": message, "parent_tool_use_id": None, **when, **fields})


def thinking(words: str) -> str:
    message = {"id": "msg_1", "model": "claude-sonnet-5-5", "content": [{"type": "thinking", "thinking": words}]}
    return line(type="assistant", message=message)


def tool_use(command: str = "docker ps", name: str = "Bash") -> str:
    content = [{"type": "tool_use", "id": "toolu_1", "name": name, "input": {"command": command}}]
    return line(type="assistant", message={"id": "msg_1", "model": "claude-sonnet-5-5", "content": content})


def tool_result(words: str, *, is_error: bool = False) -> str:
    content = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": words, "is_error": is_error}]
    return line(type="user", message={"role": "user", "content": content})


def user(words: str) -> str:
    return line(type="user", message={"role": "user", "content": [{"type": "text", "text": words}]})


def result(words: str = "Done.", **fields: Any) -> str:
    record = {
        "subtype": "success",
        "is_error": False,
        "num_turns": 2,
        "duration_ms": 1000,
        "total_cost_usd": 0.05,
        "usage": {"input_tokens": 100, "output_tokens": 20},
        "permission_denials": [],
        "result": words,
    }
    return line(type="result", **{**record, **fields})


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines), encoding="utf-8")
    return path
