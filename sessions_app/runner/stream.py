"""Parse one line of the CLI's stream-json. Pure: no database, no clock, no file.

Unknown types are normal and are skipped; a malformed line is counted and never fatal. Measured with CLI 2.1.330:
the order of keys is not fixed, and one process may write several `init` and `result` lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

SYNTHETIC_MODEL = "<synthetic>"


@dataclass(frozen=True, slots=True)
class Init:
    """`system/init`: the start of a process. `mcp_failed` names the MCP servers that did not connect."""

    cli_session_id: str
    model: str
    version: str
    tools: int
    mcp_failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Text of the assistant. Markers are read from `accepted` text only; `refused` says why not (empty = accepted)."""

    text: str
    refused: str = ""

    @property
    def accepted(self) -> bool:
        return not self.refused


@dataclass(frozen=True, slots=True)
class ToolUse:
    name: str
    input: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """A system line for the readable log: a retry, a denied permission, a compaction, a rate limit."""

    subtype: str
    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a turn. `cost_usd` is cumulative; `usage`, `num_turns` and `duration_ms` are of this result."""

    subtype: str
    is_error: bool
    text: str
    num_turns: int
    duration_ms: int
    cost_usd: float
    usage: Mapping[str, int]
    errors: tuple[str, ...] = ()
    api_error_status: int | None = None
    structured: Mapping[str, Any] | None = None
    denials: tuple[str, ...] = ()


Record = Init | Text | ToolUse | ToolResult | Notice | Result


@dataclass(frozen=True, slots=True)
class Line:
    """One parsed line. `at` is its own time stamp (UTC), when it has one; `problem` says why it was skipped.

    `skipped` counts, by reason, the parts from which no markers are read.
    """

    type: str = ""
    records: tuple[Record, ...] = ()
    at: datetime | None = None
    problem: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)


GARBAGE = "garbage"
UNKNOWN = "unknown_type"

# System subtypes for the readable log; all others report progress only.
NOTICES = frozenset({"api_retry", "permission_denied", "compact_boundary", "informational"})
IGNORED = frozenset({"stream_event", "ui_invalidate"})


def parse(raw: bytes, *, include_subagents: bool = False) -> Line:
    """Parse one line, with or without its line end. Never raises."""
    text = raw.decode("utf-8", "replace").strip()
    if not text:
        return Line()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Line(problem=GARBAGE)
    if not isinstance(data, dict):
        return Line(problem=GARBAGE)
    if "\\u0000" in text or "\\ud" in text or "\\uD" in text:
        data = storable(data)
    try:
        return _line(data, include_subagents)
    except (TypeError, ValueError, AttributeError, OverflowError):  # a known type in an unknown shape
        return Line(type=_text(data.get("type")), problem=GARBAGE)


def storable(value: Any) -> Any:
    """`value` without what a database cannot store: NUL characters and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def _line(data: dict[str, Any], include_subagents: bool) -> Line:
    kind = _text(data.get("type"))
    records: tuple[Record, ...] = ()
    skipped: dict[str, int] = {}
    problem = ""
    if kind == "assistant":
        records, skipped = _assistant(data, include_subagents)
    elif kind == "user":
        records = _user(data)
    elif kind == "result":
        records = (_result(data),)
    elif kind == "system":
        records = _system(data)
    elif kind == "rate_limit_event":
        records = _rate_limit(data.get("rate_limit_info") or {})
    elif kind not in IGNORED:
        problem = UNKNOWN
    return Line(kind, records, timestamp(data.get("timestamp")), problem, skipped)


def _system(data: dict[str, Any]) -> tuple[Record, ...]:
    subtype = _text(data.get("subtype"))
    if subtype == "init":
        return (_init(data),)
    return (Notice(subtype, _notice(data)),) if subtype in NOTICES else ()


def _rate_limit(info: dict[str, Any]) -> tuple[Record, ...]:
    if info.get("status") in (None, "allowed"):
        return ()
    used = f", {info['utilization']:.0%} used" if isinstance(info.get("utilization"), int | float) else ""
    return (Notice("rate_limit", f"{info.get('status')}: {info.get('rateLimitType')} limit{used}"),)


def _assistant(data: dict[str, Any], include_subagents: bool) -> tuple[tuple[Record, ...], dict[str, int]]:
    message = data.get("message") or {}
    refused = ""
    if message.get("model") == SYNTHETIC_MODEL:
        refused = "synthetic"
    elif data.get("error") or data.get("is_api_error_message"):
        refused = "error"
    elif data.get("parent_tool_use_id") and not include_subagents:
        refused = "subagent"
    records: list[Record] = []
    skipped: dict[str, int] = {}
    content = message.get("content") or []
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for block in content:
        kind = block.get("type")
        if kind == "text":
            records.append(Text(_text(block.get("text")), refused))
            if refused:
                skipped[refused] = skipped.get(refused, 0) + 1
        elif kind == "tool_use":
            records.append(ToolUse(_text(block.get("name")), _compact(block.get("input"))))
        elif kind in ("thinking", "redacted_thinking"):
            skipped["thinking"] = skipped.get("thinking", 0) + 1
    return tuple(records), skipped


def _user(data: dict[str, Any]) -> tuple[Record, ...]:
    content = (data.get("message") or {}).get("content")
    if not isinstance(content, list):
        return ()
    return tuple(
        ToolResult(_flat(block.get("content")), bool(block.get("is_error")))
        for block in content
        if block.get("type") == "tool_result"
    )


def _result(data: dict[str, Any]) -> Result:
    usage = data.get("usage") or {}
    structured = data.get("structured_output")
    return Result(
        subtype=_text(data.get("subtype")),
        is_error=bool(data.get("is_error")),
        text=_text(data.get("result")),
        num_turns=int(data.get("num_turns") or 0),
        duration_ms=int(data.get("duration_ms") or 0),
        cost_usd=float(data.get("total_cost_usd") or 0.0),
        usage={k: v for k, v in usage.items() if k.endswith("_tokens") and isinstance(v, int)},
        errors=tuple(_text(error) for error in data.get("errors") or ()),
        api_error_status=data.get("api_error_status") if isinstance(data.get("api_error_status"), int) else None,
        structured=structured if isinstance(structured, dict) else None,
        denials=tuple(
            f"{denial.get('tool_name')}: {_compact(denial.get('tool_input'))}"[:200]
            for denial in data.get("permission_denials") or ()
        ),
    )


def _init(data: dict[str, Any]) -> Init:
    servers = data.get("mcp_servers") or []
    return Init(
        cli_session_id=_text(data.get("session_id")),
        model=_text(data.get("model")),
        version=_text(data.get("claude_code_version")),
        tools=len(data.get("tools") or ()),
        mcp_failed=tuple(
            f"{server.get('name')} ({server.get('status')})"
            for server in servers
            if server.get("status") not in ("connected", "pending")
        ),
    )


def _notice(data: dict[str, Any]) -> str:
    if data.get("subtype") == "api_retry":
        return f"API error {data.get('error_status')}, attempt {data.get('attempt')} of {data.get('max_retries')}"
    if data.get("subtype") == "permission_denied":
        return f"{data.get('tool_name')} denied"
    return _text(data.get("content") or data.get("message") or data.get("subtype"))


def timestamp(value: Any) -> datetime | None:
    """An ISO 8601 time stamp (also with nanoseconds) as UTC; None when `value` is none."""
    if not isinstance(value, str) or len(value) < 19:
        return None
    try:
        found = datetime.fromisoformat(value)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _compact(value: Any) -> str:
    """A tool's input in one line: its main argument (a command, a path, a query), else compact JSON."""
    if isinstance(value, dict):
        for key in ("command", "file_path", "pattern", "url", "query"):
            if isinstance(value.get(key), str):
                return str(value[key])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(block.get("text")) for block in content if isinstance(block, dict) and "text" in block)
    return _text(content)
