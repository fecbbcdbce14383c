"""What a log means for the database: lines in, rows to write and a new state out. Pure: nothing is stored here.

The state is what must be remembered between two batches; it is saved together with the offset it belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memories.capture.markers import memory_from_key, memory_markers
from memories.capture.statement import Statement
from sessions_app.models import LogKind
from sessions_app.runner import stream
from sessions_app.runner.markers import (
    Check,
    CooldownMarker,
    EventMarker,
    markers,
    structured_checks,
    structured_events,
)

ENTRY_LIMIT = 4096
RESPONSE_LIMIT = 200_000
KEPT_DENIALS = 20


@dataclass(slots=True)
class State:
    """Accumulators of one session. `cost_usd` is the last cumulative one; turns, time and usage are sums."""

    seq: int = 0
    tool_calls: int = 0
    results: int = 0
    num_turns: int = 0
    duration_ms: int = 0
    cost_usd: float = 0.0
    usage: dict[str, int] = field(default_factory=dict)
    last_result: dict[str, Any] | None = None
    denials: list[str] = field(default_factory=list)
    mcp_failed: list[str] = field(default_factory=list)
    cli_session_id: str = ""
    model: str = ""
    response: str = ""
    structured: dict[str, Any] | None = None
    stats: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, by: int = 1) -> None:
        if by:
            self.stats[name] = self.stats.get(name, 0) + by


@dataclass(frozen=True, slots=True)
class Entry:
    seq: int
    at: datetime
    kind: LogKind
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class FoundMemory:
    statement: Statement
    channel: str
    at: datetime


@dataclass(slots=True)
class Batch:
    """Rows to write for a stretch of the log."""

    entries: list[Entry] = field(default_factory=list)
    events: list[tuple[EventMarker, datetime]] = field(default_factory=list)
    cooldowns: list[tuple[CooldownMarker, str, datetime]] = field(default_factory=list)
    checks: list[tuple[Check, datetime]] = field(default_factory=list)
    memories: list[FoundMemory] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def project(line: stream.Line, offset: int, state: State, batch: Batch, *, now: datetime) -> None:
    """Take one line into `state` and `batch`. `now` (UTC) stands in where a line has no time of its own."""
    state.count("lines")
    if line.problem:
        state.count(line.problem)
        return
    # A clock that runs ahead on another machine must not date what is known into the future.
    at = min(line.at, now) if line.at else now
    for name, number in line.skipped.items():
        state.count(f"skipped_{name}", number)
    for record in line.records:
        match record:
            case stream.Text():
                _text(record, offset, at, state, batch)
            case stream.ToolUse():
                state.tool_calls += 1
                state.count("tool_calls")
                _entry(LogKind.TOOL_USE, f"{record.name}: {record.input}", offset, at, state, batch)
            case stream.ToolResult():
                prefix = "Error: " if record.is_error else ""
                _entry(LogKind.TOOL_RESULT, prefix + record.text, offset, at, state, batch)
            case stream.Notice():
                _entry(LogKind.SYSTEM, f"{record.subtype}: {record.text}", offset, at, state, batch)
            case stream.Init():
                _init(record, offset, at, state, batch)
            case stream.Result():
                _result(record, offset, at, state, batch)


def _text(record: stream.Text, offset: int, at: datetime, state: State, batch: Batch) -> None:
    if not record.text.strip():
        return
    _entry(LogKind.TEXT, record.text, offset, at, state, batch)
    if not record.accepted:
        return
    state.count("texts")
    state.response = record.text[:RESPONSE_LIMIT]
    found = markers(record.text)
    for event in found.events:
        state.count("event_markers")
        batch.events.append((event, at))
    for cooldown in found.cooldowns:
        state.count("cooldown_markers")
        batch.cooldowns.append((cooldown, cooldown.fingerprint(state.tool_calls), at))
    for malformed in found.malformed:
        state.count("malformed_cooldowns")
        batch.warnings.append(f"a cooldown marker that cannot be read: {malformed}")
    known = memory_markers(record.text)
    state.count("quoted_markers", known.quoted)
    for marker in known.found:
        state.count("memory_markers")
        batch.memories.append(FoundMemory(marker, "text", at))
    for unknown in known.unknown:
        state.count("unknown_categories")
        batch.warnings.append(f"a memory marker of the unknown category {unknown.category!r} was not stored")


def _init(record: stream.Init, offset: int, at: datetime, state: State, batch: Batch) -> None:
    state.cli_session_id = state.cli_session_id or record.cli_session_id
    state.model = state.model or record.model
    state.mcp_failed = list(record.mcp_failed)[:KEPT_DENIALS]
    text = f"Claude Code {record.version}, {record.model}, {record.tools} tools"
    _entry(LogKind.SYSTEM, text, offset, at, state, batch)


def _result(record: stream.Result, offset: int, at: datetime, state: State, batch: Batch) -> None:
    state.results += 1
    state.count("results")
    state.cost_usd = max(state.cost_usd, record.cost_usd)
    state.num_turns += record.num_turns
    state.duration_ms += record.duration_ms
    for name, number in record.usage.items():
        state.usage[name] = state.usage.get(name, 0) + number
    state.denials = [*state.denials, *record.denials][:KEPT_DENIALS]
    state.last_result = {
        "subtype": record.subtype,
        "is_error": record.is_error,
        "text": record.text[:2000],
        "errors": list(record.errors)[:10],
        "api_error_status": record.api_error_status,
    }
    if not state.response and not record.is_error:
        state.response = record.text[:RESPONSE_LIMIT]
    words = f"{record.subtype}{' (error)' if record.is_error else ''}, {record.num_turns} turns, ${record.cost_usd:.4f}"
    _entry(LogKind.RESULT, words, offset, at, state, batch)
    if record.structured is not None:
        _structured(record.structured, at, state, batch)


def _structured(answer: Mapping[str, Any], at: datetime, state: State, batch: Batch) -> None:
    state.structured = dict(answer)
    events, dropped = structured_events(_list(answer, "events", state))
    state.count("structured_events", len(events))
    batch.events.extend((event, at) for event in events)
    checks, dropped_checks = structured_checks(_list(answer, "services_checked", state))
    batch.checks.extend((check, at) for check in checks)
    state.count("structured_dropped", dropped + dropped_checks)
    for item in _list(answer, "memories", state):
        key = item.get("key") if isinstance(item, Mapping) else None
        value = item.get("value") if isinstance(item, Mapping) else None
        if not isinstance(key, str) or not isinstance(value, str) or not value.strip():
            state.count("structured_dropped")
            continue
        found = memory_from_key(key, value)
        if isinstance(found, Statement):
            state.count("structured_memories")
            batch.memories.append(FoundMemory(found, "structured", at))
        else:
            state.count("unknown_categories")
            batch.warnings.append(f"a structured memory of the unknown category {found.category!r} was not stored")


def _list(answer: Mapping[str, Any], name: str, state: State) -> list[Any]:
    value = answer.get(name)
    if isinstance(value, list):
        return value
    if value is not None:
        state.count("structured_dropped")
    return []


def _entry(kind: LogKind, text: str, offset: int, at: datetime, state: State, batch: Batch) -> None:
    state.seq += 1
    if len(text) > ENTRY_LIMIT:
        text = f"{text[:ENTRY_LIMIT]}\n… {len(text) - ENTRY_LIMIT:,} more characters in the raw log"
    batch.entries.append(Entry(state.seq, at, kind, text, offset))
