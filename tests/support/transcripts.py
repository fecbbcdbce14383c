"""Lines of the CLI's transcripts in its shapes (2.1.330), for tests that need one of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sessions_app.models import PromptReceipt
from sessions_app.runner.turns import prompt_hash
from tests.support.streams import stamp

SESSION = "67cde26f-17e1-4348-b9d3-bfd936af657d"
FOLDER = "/srv/shop"


def line(kind: str, *, seconds: float = 0, **record: Any) -> str:
    beside = {"isSidechain": False, "cwd": FOLDER, "sessionId": SESSION, "version": "2.1.330"}
    return json.dumps({"type": kind, "timestamp": stamp(seconds), **beside, **record}) + "\n"


def typed(words: Any, **fields: Any) -> str:
    """What a person typed; `fields` make another line of a user of it."""
    beside = {"promptSource": "typed", "origin": {"kind": "human"}}
    return line("user", **{"message": {"role": "user", "content": words}, **beside, **fields})


def says(words: str, **fields: Any) -> str:
    return _assistant({"type": "text", "text": words}, **fields)


def calls(call: str = "toolu_1", name: str = "Bash", *, fields: dict[str, Any] | None = None, **given: Any) -> str:
    content = {"type": "tool_use", "id": call, "name": name, "input": given or {"command": "docker ps"}}
    return _assistant(content, **(fields or {}))


def brings(words: str, call: str = "toolu_1", **fields: Any) -> str:
    block = {"type": "tool_result", "tool_use_id": call, "content": words, "is_error": False}
    message = {"role": "user", "content": [block]}
    return line("user", **{"message": message, "toolUseResult": {"stdout": words}, **fields})


def summary(words: str) -> str:
    return typed(words, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def attached(kind: str, **fields: Any) -> str:
    return line("attachment", attachment={"type": kind, **fields})


def write(folder: Path, *lines: str, session: str = SESSION) -> Path:
    """Write the transcript of a session below `folder`, where a CLI with this home would."""
    place = folder / ".claude" / "projects" / FOLDER.replace("/", "-")
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{session}.jsonl"
    path.write_text("".join(lines).replace(SESSION, session), encoding="utf-8")
    return path


def receipt(path: Path, *prompts: str, by_agent: bool = False) -> None:
    """Store what our hooks keep of the session of a transcript: of its start, and of the prompts that were typed."""
    beside = {"cli_session_id": path.stem, "transcript_path": str(path), "by_agent": by_agent}
    hashes = ["", *map(prompt_hash, prompts)]
    PromptReceipt.objects.bulk_create([PromptReceipt(prompt=one, **beside) for one in hashes], ignore_conflicts=True)


def _assistant(content: dict[str, Any], **fields: Any) -> str:
    message = {"id": "msg_1", "role": "assistant", "model": "claude-sonnet-5-5", "content": [content]}
    return line("assistant", **{"message": message, **fields})
