"""Turn parsed lines of a log into rows to write and a new state. Pure.

Credentials are masked here, before anything is read from a text or cut off it: no row holds one, or half of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from claudeops.lib import times
from claudeops.lib.prices import plain_name
from claudeops.lib.secrets import mask, mask_counted, mask_value
from memories.capture.learned import Learned, Learning, learned
from memories.capture.lines import OPENING
from memories.capture.markers import UnknownMarker, memory_from_key, memory_markers
from memories.capture.statement import Statement
from sessions_app.credit import uses
from sessions_app.models import How, LogKind
from sessions_app.runner import stream
from sessions_app.runner.accept import MOST_MILLISECONDS, added
from sessions_app.runner.exposure import MOST_CALLS, Call, Read, Reading, Rules, judge, key_of, rules
from sessions_app.runner.markers import (
    Check,
    CooldownMarker,
    EventMarker,
    markers,
    structured_checks,
    structured_events,
)
from sessions_app.runner.outcome import Spending, to_list

ENTRY_LIMIT = 4096
RESPONSE_LIMIT = 200_000
KEPT_DENIALS = 20
DENIAL_LIMIT = 200
LONGEST_FOLDER = 500
BLOCKS, PHRASES_TOO = "blocks", "blocks and phrases"
"""What is read for the memory file of the session's agent (`State.learns`); nothing where it has none."""
RECALL = "__recall"
"""How the name of the tool ends with which an agent recalls memories, whatever its server is called."""


@dataclass(slots=True)
class State:
    """Accumulators of one session. `duration_ms` is the sum of its results, `last_at` the last time stamp of its log.

    `answering` is the model that the main thread spoke to last, `turn` how far its last turn came: open, ended, error,
    or interrupted. Only a transcript states that. `before` are the outside sources of the session's task. `calls` are
    the newest calls without a result, `agents` the newest that started a subagent: `key_of` each, and the `seq` of its
    entry.
    """

    before: list[str] = field(default_factory=list)
    seq: int = 0
    tool_calls: int = 0
    results: int = 0
    duration_ms: int = 0
    spending: Spending = field(default_factory=Spending)
    reading: Reading = field(default_factory=Reading)
    calls: dict[str, int] = field(default_factory=dict)
    agents: dict[str, int] = field(default_factory=dict)
    last_at: str = ""
    answering: str = ""
    turn: str = ""
    transcript: bool = False
    last_result: dict[str, Any] | None = None
    denials: list[str] = field(default_factory=list)
    mcp_failed: list[str] = field(default_factory=list)
    recalled: bool = False
    in_project: bool = False
    learns: str = ""
    cli_session_id: str = ""
    model: str = ""
    response: str = ""
    structured: dict[str, Any] | None = None
    stats: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, by: int = 1) -> None:
        if by:
            self.stats[name] = self.stats.get(name, 0) + by


@dataclass(slots=True)
class Entry:
    """A log entry before it is stored. `at` is UTC; `offset` is its position in the raw log (bytes).

    For the others see `LogEntry`. An entry gets them when it is written and keeps them: the result names its call, the
    call is not changed. So no line touches the row of another, and each line may be ingested again.
    """

    seq: int
    at: datetime
    kind: LogKind
    text: str
    offset: int
    turn: int | None = None
    call: int | None = None
    is_error: bool = False
    tokens: int | None = None
    cost_usd: float | None = None


NOTHING_READ = Read()


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A statement, the channel it came by (text or structured), when it was said (UTC), and what was read by then.

    `offset` is the first byte of the line that says it. `learning` is what it was read from, for one of the agent's
    memory file.
    """

    statement: Statement
    channel: str
    at: datetime
    read: Read = NOTHING_READ
    learning: Learning | None = None
    offset: int = 0


@dataclass(slots=True)
class Batch:
    """What a batch of lines brings. `results` are the texts that statements are compared with, by the line's offset.

    `used` are the memories that the agent named as used, by id; `said` are its own texts since it recalled
    memories, with when (UTC). `records` are its records by `copied.digest_of`.
    """

    entries: list[Entry] = field(default_factory=list)
    events: list[tuple[EventMarker, datetime]] = field(default_factory=list)
    cooldowns: list[tuple[CooldownMarker, str, datetime]] = field(default_factory=list)
    checks: list[tuple[Check, datetime]] = field(default_factory=list)
    memories: list[FoundMemory] = field(default_factory=list)
    learned: list[tuple[Learned, Read, datetime]] = field(default_factory=list)
    results: dict[int, list[str]] = field(default_factory=dict)
    used: dict[int, How] = field(default_factory=dict)
    said: list[tuple[str, datetime]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    records: set[int] = field(default_factory=set)
    bad: set[str] = field(default_factory=set)


def project(
    line: stream.Line,
    offset: int,
    state: State,
    batch: Batch,
    *,
    now: datetime,
    undated: datetime | None = None,
    table: Rules | None = None,
) -> None:
    """Add one line to `state` and `batch`. `table` says what exposes; the one without settings when None.

    A line without a time stamp of its own gets `now` (UTC); with `undated` it gets the last time stamp before it, or
    `undated` when there is none.
    """
    state.count("lines")
    if line.bad:
        state.count("bad_fields", len(line.bad))
        batch.bad.update(line.bad)
    if line.unread:
        state.reading.missed()
    if line.problem:
        state.count(line.problem)
        return
    state.transcript = state.transcript or line.transcript
    at = _time_of(line, state, batch, now, undated)
    for name, number in line.skipped.items():
        state.count(f"skipped_{name}", number)
    before = len(batch.entries)
    counted = _message(line.message, offset, at, state, batch) if line.message else None
    if line.cost_usd is not None:
        state.spending.state_cost(line.cost_usd)
        _count_estimated(state)
    if line.prompt:
        state.turn = "interrupted" if line.prompt.interrupted else "open"
    _circumstances(line, state)
    for record in line.records:
        masked = _masked(record, state)
        _read(masked, offset, state, batch, table or rules())
        _record(masked, offset, at, state, batch)
    if offset in batch.results and not state.reading.is_compared(offset):
        del batch.results[offset]
    if len(batch.entries) > before:
        _place(batch.entries[before:], line, counted, state)


def pass_over(line: stream.Line, offset: int, state: State, batch: Batch, **how: Any) -> None:
    """Take from a line of copied history what its session had read and how its turn stands, and nothing that counts."""
    state.count("copied_lines")
    nothing: dict[str, Any] = {"stats": {}, "calls": {}, "agents": {}, "spending": Spending()}
    scratch, scratch_state = Batch(), replace(state, **nothing)
    project(line, offset, scratch_state, scratch, **how)
    batch.results |= scratch.results
    for name in ("turn", "transcript", "last_at", "answering", "model", "recalled"):
        setattr(state, name, getattr(scratch_state, name))


def _place(entries: Sequence[Entry], line: stream.Line, counted: dict[str, Any] | None, state: State) -> None:
    """Set the turn of a line's entries, the call whose subagent wrote them, and what they add to the estimate."""
    turn = state.spending.turns if counted is None else counted.get("turn", state.spending.turns)
    for entry in entries:
        entry.turn = turn or None
    if counted is not None and counted["usage"] and (listed := to_list(counted))[0]:
        entries[0].tokens, entries[0].cost_usd = listed
    if line.message and not line.message.main:
        agent = state.agents.get(key_of(line.subagent), 0)
        for entry in entries:
            entry.call = agent


def _called(call: stream.ToolUse, seq: int, state: State) -> None:
    """Keep the entry of a call for its result, and for the lines of a subagent that it starts."""
    key = key_of(call.id)
    starts_agent = rules().tools.get(call.name) == "subagents"
    for entries in (state.calls, state.agents) if starts_agent else (state.calls,):
        if key:
            entries[key] = seq
        if len(entries) > MOST_CALLS:
            del entries[next(iter(entries))]


def _circumstances(line: stream.Line, state: State) -> None:
    """Note what a line says beside its records that decides what the session has read."""
    if line.folder and not state.reading.folder:
        state.reading.folder = _mask(line.folder, state)[:LONGEST_FOLDER]
    if line.subagent:
        state.reading.subagent_line(line.subagent)
    if line.denied:
        state.reading.denied(line.denied)


def _read(record: stream.Record, offset: int, state: State, batch: Batch, table: Rules) -> None:
    """Count what a record brought before the agent."""
    match record:
        case stream.ToolUse():
            call = Call(record.id, record.name, record.input, record.paths)
            state.reading.call(record.id, judge(call, table, state.reading.folder))
        case stream.ToolResult():
            state.reading.result(record.id, record.text, offset)
            batch.results.setdefault(offset, []).append(record.text)
        case stream.Init():
            state.reading.folder = record.folder[:LONGEST_FOLDER] or state.reading.folder


def _record(record: stream.Record, offset: int, at: datetime, state: State, batch: Batch) -> None:
    match record:
        case stream.Text():
            _text(record, offset, at, state, batch)
        case stream.ToolUse():
            state.tool_calls += 1
            state.recalled = state.recalled or record.name.endswith(RECALL)
            state.count("tool_calls")
            entry = _entry(LogKind.TOOL_USE, f"{record.name}: {record.input}", offset, at, state, batch)
            _called(record, entry.seq, state)
        case stream.ToolResult():
            prefix = "Error: " if record.is_error else ""
            entry = _entry(LogKind.TOOL_RESULT, prefix + record.text, offset, at, state, batch)
            entry.call, entry.is_error = state.calls.pop(key_of(record.id), None), record.is_error
        case stream.Notice():
            _entry(LogKind.SYSTEM, f"{record.subtype}: {record.text}", offset, at, state, batch)
        case stream.Init():
            _init(record, offset, at, state, batch)
        case stream.Result():
            _result(record, offset, at, state, batch)


def _time_of(line: stream.Line, state: State, batch: Batch, now: datetime, undated: datetime | None) -> datetime:
    at = times.happened(line.at, now) if line.at else None
    if at:
        state.last_at = at.isoformat()
        return at
    if line.at:
        state.count("bad_fields")
        batch.bad.add("timestamp")
    if undated is None:
        return now
    return datetime.fromisoformat(state.last_at) if state.last_at else min(undated, now)


def _message(record: stream.Message, offset: int, at: datetime, state: State, batch: Batch) -> dict[str, Any] | None:
    """Count the message of a line and return what is known of it; None for one that the model did not write."""
    if record.stop == "error":
        state.turn = "error" if record.main else state.turn
        return None
    counted = state.spending.message(record)
    if counted["guessed"]:
        state.count("prices_guessed")
    _count_estimated(state)
    if not record.main:
        return counted
    state.turn = "open" if record.stop in ("", "tool_use") else "ended"
    state.model = state.model or record.model
    if record.model and state.answering and plain_name(record.model) != plain_name(state.answering):
        _entry(LogKind.SYSTEM, f"model: {record.model} after {state.answering}", offset, at, state, batch)
        state.count("model_switches")
    state.answering = record.model or state.answering
    return counted


def _count_estimated(state: State) -> None:
    """Keep the number of messages whose cost is an estimate among the counters, where pages read it."""
    if state.spending.messages:
        state.stats["estimated_messages"] = state.spending.messages
    else:
        state.stats.pop("estimated_messages", None)


def _masked(record: stream.Record, state: State) -> stream.Record:
    match record:
        case stream.Text() | stream.ToolResult() | stream.Notice():
            text = _mask(record.text, state)
            return record if text is record.text else replace(record, text=text)
        case stream.ToolUse():
            both = f"{record.name}\n{record.input}"
            if mask(both) is both:
                return record
            return replace(record, name=_mask(record.name, state), input=_mask(record.input, state))
        case stream.Init():
            failed = tuple(_mask(text, state) for text in record.mcp_failed)
            return replace(record, mcp_failed=failed, folder=_mask(record.folder, state))
        case stream.Result():
            answer = None if record.structured is None else mask_value(dict(record.structured))
            state.count("secrets_masked", int(answer != record.structured))
            return replace(
                record,
                text=_mask(record.text, state),
                errors=tuple(_mask(text, state) for text in record.errors),
                denials=tuple(_mask(text, state)[:DENIAL_LIMIT] for text in record.denials),
                structured=answer,
            )


def _mask(text: str, state: State) -> str:
    masked, kinds = mask_counted(text)
    if kinds:
        state.count("secrets_masked", sum(kinds.values()))
    return masked


def _text(record: stream.Text, offset: int, at: datetime, state: State, batch: Batch) -> None:
    if not record.text.strip():
        return
    _entry(LogKind.TEXT, record.text, offset, at, state, batch)
    if not record.accepted:
        return
    state.count("texts")
    state.response = record.text[:RESPONSE_LIMIT]
    if state.recalled:
        batch.said.append((record.text, at))
    for memory_id in uses.named(record.text):
        batch.used.setdefault(memory_id, How.NAMED)
    if state.learns:
        _learned(record.text, offset, at, state, batch)
    if not OPENING.search(record.text):
        return
    agent_markers = markers(record.text)
    for event in agent_markers.events:
        state.count("event_markers")
        batch.events.append((event, at))
    for cooldown in agent_markers.cooldowns:
        state.count("cooldown_markers")
        batch.cooldowns.append((cooldown, cooldown.fingerprint(state.tool_calls), at))
    for malformed in agent_markers.malformed:
        state.count("malformed_cooldowns")
        batch.warnings.append(f"malformed cooldown marker: {malformed}")
    statements = memory_markers(record.text, in_project=state.in_project)
    state.count("quoted_markers", statements.quoted + agent_markers.quoted)
    for marker in statements.found:
        state.count("memory_markers")
        batch.memories.append(FoundMemory(marker, "text", at, state.reading.read(), offset=offset))
    for unknown in statements.unknown:
        state.count("unknown_categories")
        batch.warnings.append(f"memory marker with unknown category {unknown.category!r} was not stored{_why(unknown)}")


def _learned(text: str, offset: int, at: datetime, state: State, batch: Batch) -> None:
    """Take what the agent learned for its memory file."""
    learning = learned(text, phrases=state.learns == PHRASES_TOO)
    if not (learning.found or learning.refused or learning.replaces):
        return
    state.count("learnings", len(learning.found))
    read = state.reading.read()
    batch.memories += [FoundMemory(one.statement, "text", at, read, one, offset) for one in learning.found]
    batch.learned.append((learning, read, at))


def _init(record: stream.Init, offset: int, at: datetime, state: State, batch: Batch) -> None:
    state.cli_session_id = state.cli_session_id or record.cli_session_id
    state.model = state.model or record.model
    state.mcp_failed = list(record.mcp_failed)[:KEPT_DENIALS]
    text = f"Claude Code {record.version}, {record.model}, {record.tools} tools"
    _entry(LogKind.SYSTEM, text, offset, at, state, batch)


def _result(record: stream.Result, offset: int, at: datetime, state: State, batch: Batch) -> None:
    state.results += 1
    state.count("results")
    state.spending.result(record)
    _count_estimated(state)
    state.duration_ms = added(state.duration_ms, record.duration_ms, MOST_MILLISECONDS)
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
    cost = "no cost stated" if record.cost_usd is None else f"${record.cost_usd:.4f}"
    text = f"{_ended(record)}, {record.num_turns} turns, {cost}"
    _entry(LogKind.RESULT, text, offset, at, state, batch).is_error = record.is_error
    if record.structured is not None:
        _structured(record.structured, offset, at, state, batch)


def _ended(record: stream.Result) -> str:
    """Say how a turn ended. The CLI also writes the subtype "success" beside an error, such as one of the API."""
    if not record.is_error:
        return record.subtype
    return "failed" if record.subtype == "success" else f"failed: {record.subtype}"


def _structured(answer: Mapping[str, Any], offset: int, at: datetime, state: State, batch: Batch) -> None:
    state.structured = dict(answer)
    events, dropped = structured_events(_list(answer, "events", state))
    state.count("structured_events", len(events))
    batch.events.extend((event, at) for event in events)
    checks, dropped_checks = structured_checks(_list(answer, "services_checked", state))
    batch.checks.extend((check, at) for check in checks)
    state.count("structured_dropped", dropped + dropped_checks)
    ids, dropped_ids = uses.answered(_list(answer, "memories_used", state))
    state.count("structured_dropped", dropped_ids)
    for memory_id in ids:
        batch.used.setdefault(memory_id, How.ANSWERED)
    for item in _list(answer, "memories", state):
        key = item.get("key") if isinstance(item, Mapping) else None
        value = item.get("value") if isinstance(item, Mapping) else None
        if not isinstance(key, str) or not isinstance(value, str) or not value.strip():
            state.count("structured_dropped")
            continue
        statement = memory_from_key(key, value, in_project=state.in_project)
        if isinstance(statement, Statement):
            state.count("structured_memories")
            batch.memories.append(FoundMemory(statement, "structured", at, state.reading.read(), offset=offset))
        else:
            state.count("unknown_categories")
            why = _why(statement)
            batch.warnings.append(f"structured memory with unknown category {statement.category!r} was not stored{why}")


def _why(unknown: UnknownMarker) -> str:
    return f": {unknown.reason}" if unknown.reason else ""


def _list(answer: Mapping[str, Any], name: str, state: State) -> list[Any]:
    value = answer.get(name)
    if isinstance(value, list):
        return value
    if value is not None:
        state.count("structured_dropped")
    return []


def _entry(kind: LogKind, text: str, offset: int, at: datetime, state: State, batch: Batch) -> Entry:
    state.seq += 1
    if len(text) > ENTRY_LIMIT:
        text = f"{text[:ENTRY_LIMIT]}\n… {len(text) - ENTRY_LIMIT:,} more characters in the raw log"
    entry = Entry(state.seq, at, kind, text, offset)
    batch.entries.append(entry)
    return entry
