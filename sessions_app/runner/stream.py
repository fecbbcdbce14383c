"""Parse one line of the CLI's stream-json, or of its transcripts. Pure: no database, no clock, no file.

Unknown types are normal and are skipped; a malformed line is counted and never fatal, nor is a field of a wrong type or
size (`accept`). Measured with CLI 2.1.330: the order of keys is not fixed, and one process may write several `init` and
`result` lines. A transcript has `sessionId` instead of `session_id`, its subagents' lines have `isSidechain`, and it
has no result line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from claudeops.lib.prices import Tokens
from sessions_app.runner import accept
from sessions_app.runner.accept import Bad, Object, timestamp

__all__ = ["timestamp"]

SYNTHETIC_MODEL = "<synthetic>"
INTERRUPTED = "[Request interrupted by user"
NO_PROMPTS = ("<command-", "<local-command-", "<bash-")
"""How a user's line begins that a local command of the CLI wrote: the model is not asked."""


@dataclass(frozen=True, slots=True)
class Init:
    """`system/init`: the start of a process. `mcp_failed` names the MCP servers that did not connect, `folder` is the
    working folder."""

    cli_session_id: str
    model: str
    version: str
    tools: int
    mcp_failed: tuple[str, ...]
    folder: str = ""


# What each line is made of is not frozen: that would cost a third of the time of a short line.


@dataclass(slots=True)
class Message:
    """The message of the model that an assistant line is a part of; each of its lines repeats it.

    `id` is empty when the line has none, `main` False for a subagent's. `stop` is its stop reason, when it is known,
    or "error": the CLI reports one. `tokens` is None when the line states no usage.
    """

    id: str
    model: str
    main: bool
    stop: str
    tokens: Tokens | None


@dataclass(slots=True)
class Text:
    """Text of the assistant. Markers are read from `accepted` text only; `refused` says why not (empty = accepted)."""

    text: str
    refused: str = ""

    @property
    def accepted(self) -> bool:
        return not self.refused


@dataclass(slots=True)
class ToolUse:
    """A tool call. `input` is its main argument, `paths` are the files that it names, `all` its arguments."""

    name: str
    input: str
    id: str = ""
    paths: tuple[str, ...] = ()
    all: Any = None


@dataclass(slots=True)
class ToolResult:
    """What a tool call brought; `id` is the call's."""

    text: str
    is_error: bool
    id: str = ""


@dataclass(slots=True)
class Prompt:
    """A user's line of the main thread: a prompt, or the results of tools. `interrupted`: the user stopped the turn."""

    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A system line for the readable log: a retry, a denied permission, a compaction, a rate limit, another model."""

    subtype: str
    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a turn. `cost_usd` is cumulative, None when the line states none; `usage`, `num_turns` and
    `duration_ms` are of this result."""

    subtype: str
    is_error: bool
    text: str
    num_turns: int
    duration_ms: int
    cost_usd: float | None
    usage: Mapping[str, int]
    errors: tuple[str, ...] = ()
    api_error_status: int | None = None
    structured: Mapping[str, Any] | None = None
    denials: tuple[str, ...] = ()


Record = Init | Text | ToolUse | ToolResult | Notice | Result


@dataclass(slots=True)
class Line:
    """One parsed line. `at` is its own time stamp (UTC), when it has one; `problem` says why it was skipped.

    `skipped` counts, by reason, the parts from which no markers are read; `bad` names the fields that were dropped.
    `message` is what an assistant line is a part of, `prompt` is set for a user's line of the main thread.
    `transcript`: it is a line of a transcript; there `cost_usd` is what the CLI states as the cost so far.
    `unread`: a part of it that an agent may have read could not be read here. `subagent` is the call whose subagent
    wrote it, `denied` the call that the CLI refused, `folder` the working folder that a line of a transcript states.
    `raw` is the record itself.
    """

    type: str = ""
    records: tuple[Record, ...] = ()
    at: datetime | None = None
    problem: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)
    bad: tuple[str, ...] = ()
    message: Message | None = None
    prompt: Prompt | None = None
    cost_usd: float | None = None
    transcript: bool = False
    unread: bool = False
    subagent: str = ""
    denied: str = ""
    folder: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)


GARBAGE = "garbage"
UNKNOWN = "unknown_type"

# System subtypes for the readable log; all others report progress only.
NOTICES = frozenset(
    {
        *("api_retry", "permission_denied", "compact_boundary", "informational"),
        *("model_refusal_fallback", "model_refusal_no_fallback"),
    }
)
READ = frozenset({"assistant", "user", "result", "system", "rate_limit_event", "summary", "model_refusal_fallback"})
IGNORED = frozenset(
    {
        *("stream_event", "ui_invalidate", "keep_alive", "tool_progress", "tool_use_summary", "auth_status"),
        *("control_request", "control_response", "control_cancel_request"),
    }
)
PATHS = ("file_path", "path", "notebook_path")
BOOKKEEPING = frozenset({"file-history-snapshot", "attachment", "queue-operation", "progress"})
"""Types that the CLI keeps for itself in a transcript and that may come without a session id. With one, every type that
is not read is such a type: there are some twenty, and a version adds others."""
TYPES = READ | IGNORED | BOOKKEEPING
SPOKEN = frozenset({"assistant", "user"})
TEXTS = frozenset({"nesting", "type", "message", "content", "id", "name", "text", "is_error"})
"""Fields without which what was read or called is not known."""
BLOCKS = frozenset({"text", "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"})
"""Parts of a message that are judged, or that no one but the model and the user writes."""


def parse(raw: bytes, *, include_subagents: bool = False) -> Line:
    """Parse one line, with or without its line end. Never raises."""
    if raw.isspace() or not raw:
        return Line()
    bad: Bad = []
    data = accept.load(raw, bad)
    if data is None:
        return Line(problem=GARBAGE, unread=True)
    kind = accept.text(data, "type", bad)
    at = accept.time(data, "timestamp", bad)
    records: tuple[Record, ...] = ()
    message, prompt = None, None
    skipped: dict[str, int] = {}
    problem = ""
    if kind == "assistant":
        message, records = _assistant(data, bad, skipped, include_subagents)
    elif kind == "user":
        prompt, records = _user(data, bad)
    elif kind == "result":
        records = (_result(data, bad),)
    elif kind == "system":
        records = _system(data, bad)
    elif kind == "rate_limit_event":
        records = _rate_limit(accept.mapping(data, "rate_limit_info", bad), bad)
    elif kind == "summary":
        records = (Notice(kind, accept.text(data, "summary", bad)),)
    elif kind == "model_refusal_fallback":
        records = (Notice(kind, _fallback(data, bad)),)
    elif not is_known(kind, data):
        problem = UNKNOWN
    cost = accept.dollars(data, "totalCostUSD", bad) if kind == "cost-state" else None
    line = Line(kind, records, at, problem, skipped, tuple(bad), message, prompt, cost, is_transcript(data), raw=data)
    _set_reading(line, data)
    return line


def _set_reading(line: Line, data: Object) -> None:
    """Set what a line tells of what the agent read, beside its records."""
    if line.type in SPOKEN:
        line.unread = not TEXTS.isdisjoint(line.bad) or _has_unknown_text(data.get("message"))
        line.subagent = accept.text(data, "parent_tool_use_id", [])
        line.folder = accept.text(data, "cwd", []) if line.transcript else ""
    elif line.type == "system" and data.get("subtype") == "permission_denied":
        line.denied = accept.text(data, "tool_use_id", [])
    elif "type" in line.bad:
        line.unread = True


def is_known(kind: Any, data: Object) -> bool:
    """Whether the CLI writes lines of this type."""
    return isinstance(kind, str) and (kind in TYPES or bool(kind and isinstance(data.get("sessionId"), str)))


def is_transcript(data: Object) -> bool:
    kind = data.get("type")
    return "session_id" not in data and (
        "sessionId" in data or (isinstance(kind, str) and (kind == "summary" or kind in BOOKKEEPING))
    )


def session_of(data: Object) -> str:
    """Return the CLI session id that a line states; empty when it states none."""
    for name in ("session_id", "sessionId"):
        value = data.get(name)
        if isinstance(value, str):
            return value
    return ""


def _system(data: Object, bad: Bad) -> tuple[Record, ...]:
    subtype = accept.text(data, "subtype", bad)
    if subtype == "init":
        return (_init(data, bad),)
    return (Notice(subtype, _notice(subtype, data, bad)),) if subtype in NOTICES else ()


def _rate_limit(info: Object, bad: Bad) -> tuple[Record, ...]:
    status = accept.text(info, "status", bad)
    if status in ("", "allowed"):
        return ()
    part = accept.number(info, "utilization", bad)
    used = "" if part is None else f", {part:.0%} used"
    return (Notice("rate_limit", f"{status}: {accept.text(info, 'rateLimitType', bad)} limit{used}"),)


def _assistant(
    data: Object, bad: Bad, skipped: dict[str, int], include_subagents: bool
) -> tuple[Message, tuple[Record, ...]]:
    message = accept.mapping(data, "message", bad)
    model = accept.text(message, "model", bad)
    subagent = bool(data.get("parent_tool_use_id")) or data.get("isSidechain") is True
    refused = ""
    if model == SYNTHETIC_MODEL:
        refused = "synthetic"
    elif data.get("error") or data.get("is_api_error_message") or data.get("isApiErrorMessage"):
        refused = "error"
    elif subagent and not include_subagents:
        refused = "subagent"
    records: list[Record] = []
    for block in _blocks(message, bad):
        kind = block.get("type")
        if kind == "text":
            records.append(Text(accept.text(block, "text", bad), refused))
            if refused:
                skipped[refused] = skipped.get(refused, 0) + 1
        elif kind == "tool_use":
            call, arguments = accept.text(block, "id", bad), block.get("input")
            records.append(
                ToolUse(accept.text(block, "name", bad), _compact(arguments), call, _paths(arguments), arguments)
            )
        elif kind in ("thinking", "redacted_thinking"):
            skipped["thinking"] = skipped.get("thinking", 0) + 1
    if model == SYNTHETIC_MODEL:  # the CLI wrote it itself
        return Message("", "", not subagent, "error", None), tuple(records)
    stop = accept.text(message, "stop_reason", bad)
    header = Message(accept.text(message, "id", bad), model, not subagent, stop, _tokens(message, bad))
    return header, tuple(records)


def _blocks(message: Object, bad: Bad) -> list[Object]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return accept.mappings(message, "content", bad)


def _tokens(message: Object, bad: Bad) -> Tokens | None:
    if not (usage := accept.mapping(message, "usage", bad)):
        return None
    cache_writes = accept.integer(usage, "cache_creation_input_tokens", bad)
    parts = accept.mapping(usage, "cache_creation", bad)
    hour = min(accept.integer(parts, "ephemeral_1h_input_tokens", bad), cache_writes)
    return Tokens(
        input=accept.integer(usage, "input_tokens", bad),
        output=accept.integer(usage, "output_tokens", bad),
        write_5m=cache_writes - hour,
        write_1h=hour,
        read=accept.integer(usage, "cache_read_input_tokens", bad),
    )


def _user(data: Object, bad: Bad) -> tuple[Prompt | None, tuple[Record, ...]]:
    blocks = _blocks(accept.mapping(data, "message", bad), bad)
    records = tuple(
        ToolResult(
            _flat(block.get("content")), accept.flag(block, "is_error", bad), accept.text(block, "tool_use_id", bad)
        )
        for block in blocks
        if block.get("type") == "tool_result"
    )
    if data.get("isMeta") or data.get("isSidechain") or data.get("parent_tool_use_id"):
        return None, records
    text = next((str(block.get("text")) for block in blocks if block.get("type") == "text"), "")
    return None if text.startswith(NO_PROMPTS) else Prompt(text.startswith(INTERRUPTED)), records


def _result(data: Object, bad: Bad) -> Result:
    usage = accept.mapping(data, "usage", bad)
    status = data.get("api_error_status")
    return Result(
        subtype=accept.text(data, "subtype", bad),
        is_error=accept.flag(data, "is_error", bad),
        text=accept.text(data, "result", bad),
        num_turns=accept.integer(data, "num_turns", bad, most=accept.MOST_TURNS),
        duration_ms=accept.integer(data, "duration_ms", bad, most=accept.MOST_MILLISECONDS),
        cost_usd=accept.dollars(data, "total_cost_usd", bad),
        usage={name: accept.integer(usage, name, bad) for name in usage if name.endswith("_tokens")},
        errors=accept.texts(data, "errors", bad),
        api_error_status=None if status is None else accept.integer(data, "api_error_status", bad, most=999) or None,
        structured=accept.document(data, "structured_output", bad),
        denials=tuple(
            f"{accept.text(denial, 'tool_name', bad)}: {_compact(denial.get('tool_input'))}"
            for denial in accept.mappings(data, "permission_denials", bad)
        ),
    )


def _init(data: Object, bad: Bad) -> Init:
    return Init(
        cli_session_id=session_of(data),
        model=accept.text(data, "model", bad),
        version=accept.text(data, "claude_code_version", bad),
        tools=len(accept.items(data, "tools", bad)),
        mcp_failed=tuple(
            f"{accept.text(server, 'name', bad)} ({accept.text(server, 'status', bad)})"
            for server in accept.mappings(data, "mcp_servers", bad)
            if server.get("status") not in ("connected", "pending")
        ),
        folder=accept.text(data, "cwd", bad),
    )


def _notice(subtype: str, data: Object, bad: Bad) -> str:
    if subtype == "api_retry":
        shown = [accept.as_text(data.get(name)) for name in ("error_status", "attempt", "max_retries")]
        return f"API error {shown[0]}, attempt {shown[1]} of {shown[2]}"
    if subtype == "permission_denied":
        return f"{accept.text(data, 'tool_name', bad)} denied"
    if subtype.startswith("model_refusal"):
        return _fallback(data, bad)
    return accept.as_text(data.get("content") or data.get("message") or subtype)


def _fallback(data: Object, bad: Bad) -> str:
    """Describe that a model refused and which one answers instead."""
    before, after, why = (
        next((value for name in names if (value := accept.text(data, name, bad))), "")
        for names in (
            ("original_model", "originalModel"),
            ("fallback_model", "fallbackModel"),
            ("api_refusal_category", "apiRefusalCategory"),
        )
    )
    message = f"{before or 'the model'} refused" + (f" ({why})" if why else "")
    message += f"; {after} answers instead" if after else ""
    content = accept.text(data, "content", bad)
    return f"{message}. {content}" if content else message


def _compact(value: Any) -> str:
    """Format a tool's input in one line: its main argument (a command, a path, a query), else compact JSON."""
    if isinstance(value, dict):
        for key in ("command", "file_path", "pattern", "url", "query"):
            if isinstance(value.get(key), str):
                return str(value[key])
    return "null" if value is None else accept.as_text(value)


def _paths(arguments: Any) -> tuple[str, ...]:
    if not isinstance(arguments, dict):
        return ()
    return tuple(value for key in PATHS if isinstance(value := arguments.get(key), str))


def _has_unknown_text(message: Any) -> bool:
    """Whether a message has a part of a type that is not known, such as a search that the API made itself."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return content is not None and not isinstance(content, str)
    return any(not isinstance(one, dict) or str(one.get("type")) not in BLOCKS for one in content)


def _flat(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(
            accept.as_text(block.get("text")) for block in content if isinstance(block, dict) and "text" in block
        )
    return accept.as_text(content)
