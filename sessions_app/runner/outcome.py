"""Decide the status of a run and its reason by exit code, last result and who ended it; count what it spent. Pure.

A run completed when the exit code is 0 AND there is a result AND its `is_error` is false. (Measured: an API error
comes as subtype `success` with is_error true; SIGINT gives exit code 0 without a result.)

A result line replaces the estimate of what was spent. Its cost is cumulative; its turns and usage are its own. An
estimate counts each message of the model once, with the usage of its last line, at the model's price; the CLI writes
the first count of a message's output there, so an estimate is rather low.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from claudeops.lib.prices import Tokens, price_of
from sessions_app.models import Status
from sessions_app.runner.accept import MOST_DOLLARS, MOST_TOKENS, MOST_TURNS, added
from sessions_app.runner.stream import Message, Result


class EndedBy(StrEnum):
    ITSELF = ""
    DEADLINE = "deadline"
    STOP = "stop"
    LINGER = "linger"
    FULL_DISK = "full_disk"


@dataclass(frozen=True, slots=True)
class LastResult:
    subtype: str
    is_error: bool
    text: str = ""
    errors: Sequence[str] = ()
    api_error_status: int | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """Facts about an ended process. `exit_code` is None when its parent was gone; times are in seconds.

    `turn`, of a transcript, says how far its last turn came: open, ended, error or interrupted. `full_disk` says that
    the disk was full at the end; empty when it had room.
    """

    exit_code: int | None
    result: LastResult | None
    ended_by: EndedBy = EndedBy.ITSELF
    stopped_by: str = ""
    timeout: float = 0
    linger: float = 0
    stderr: str = ""
    denials: Sequence[str] = ()
    mcp_failed: Sequence[str] = ()
    turn: str = ""
    full_disk: str = ""


ERROR_SUBTYPES = {
    "error_max_turns": "reached its limit of turns",
    "error_max_budget_usd": "reached its cost limit",
    "error_max_structured_output_retries": "gave no valid structured answer",
    "error_during_execution": "was interrupted",
}


TURNS = {
    "ended": (Status.COMPLETED, ""),
    "interrupted": (Status.STOPPED, "Its user interrupted the last turn."),
    "error": (Status.FAILED, "The transcript ends with an error of the API or the CLI."),
    "open": (Status.LOST, "The transcript ends in the middle of a turn."),
}
"""How a transcript ended, which has no result line, by how far its last turn came."""


def outcome(ending: Ending) -> tuple[Status, str]:
    """Return (status, reason). The reason is for people; of a completed run it holds remarks only, or is empty."""
    if ending.ended_by is EndedBy.STOP:
        return Status.STOPPED, f"Stopped by {ending.stopped_by or 'an operator'}."
    if ending.ended_by is EndedBy.DEADLINE:
        return Status.TIMED_OUT, f"Ended at its time limit of {ending.timeout:g} seconds."
    result = ending.result
    if ending.full_disk and (ending.ended_by is EndedBy.FULL_DISK or result is None):
        return Status.FAILED, f"Ended: {ending.full_disk}"
    if result is not None and result.is_error:
        return Status.FAILED, _error(result)
    if result is not None and ending.ended_by is EndedBy.LINGER:
        remark = f"Ended {ending.linger:g} seconds after its result, because it did not exit by itself."
        return Status.COMPLETED, " ".join(filter(None, [remark, _remarks(ending)]))
    if ending.exit_code is None:
        if result is not None:
            return Status.COMPLETED, _remarks(ending)
        if ending.turn:
            return TURNS.get(ending.turn, TURNS["open"])
        return Status.LOST, "The log ends without a result: the process ended while no worker followed it."
    if ending.exit_code == 0 and result is not None:
        return Status.COMPLETED, _remarks(ending)
    return Status.FAILED, _exit(ending.exit_code, ending)


def _error(result: LastResult) -> str:
    if result.subtype in ERROR_SUBTYPES:
        detail = "; ".join(result.errors)
        return f"The session {ERROR_SUBTYPES[result.subtype]}" + (f": {detail}." if detail else ".")
    text = (result.text or "; ".join(result.errors) or result.subtype).strip()
    status = f" (HTTP {result.api_error_status})" if result.api_error_status else ""
    return f"The API or the CLI reported an error{status}: {_cut(text)}"


def _exit(code: int, ending: Ending) -> str:
    number = -code if code < 0 else code - 128 if 128 < code < 160 else 0
    if number:
        name = signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        after = "after its result" if ending.result is not None else "before its result"
        return f"The process was ended by {name}{hint} from outside claudeops, {after}."
    if code == 0:
        return "The process exited with code 0 and without a result: it was interrupted (SIGINT)."
    after = "after its result" if ending.result is not None else "without a result"
    detail = f": {_cut(ending.stderr)}" if ending.stderr.strip() else "."
    return f"The process exited with code {code} {after}{detail}"


def _remarks(ending: Ending) -> str:
    remarks = []
    if ending.denials:
        shown = ", ".join(ending.denials[:3]) + (" …" if len(ending.denials) > 3 else "")
        noun = "tool call was" if len(ending.denials) == 1 else "tool calls were"
        remarks.append(f"{len(ending.denials)} {noun} denied: {shown}.")
    if ending.mcp_failed:
        remarks.append(f"MCP servers not connected: {', '.join(ending.mcp_failed)}.")
    return " ".join(remarks)


def _cut(text: str, limit: int = 600) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


OPEN = 64
"""Messages that may still get another line: those of subagents run beside each other."""


@dataclass(slots=True)
class Spending:
    """`open` holds the newest messages: id, dollars, turns, tokens, its turn, what log entries have of it.

    `carried_usd` is what the conversation had cost before the session that continues it: result lines include it.

    `messages` is how many the estimate counts, `turns` how many messages the main thread has had.
    """

    carried_usd: float = 0.0
    stated_usd: float = 0.0
    stated_turns: int = 0
    stated_usage: dict[str, int] = field(default_factory=dict)
    estimated_usd: float = 0.0
    estimated_turns: int = 0
    estimated_usage: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    turns: int = 0
    open: list[dict[str, Any]] = field(default_factory=list)

    @property
    def cost_usd(self) -> float:
        return min(self.stated_usd + self.estimated_usd + sum(one["usd"] for one in self.open), MOST_DOLLARS)

    @property
    def num_turns(self) -> int:
        return min(self.stated_turns + self.estimated_turns + sum(one["turns"] for one in self.open), MOST_TURNS)

    @property
    def usage(self) -> dict[str, int]:
        total = dict(self.stated_usage)
        for one in (self.estimated_usage, *(one["usage"] for one in self.open)):
            _add(total, one)
        return total

    def message(self, message: Message) -> dict[str, Any]:
        """Count one line of a message and return it. `guessed`: its price is one, its model is not in the table."""
        entry = next((one for one in reversed(self.open) if message.id and one["id"] == message.id), None)
        if entry is None:
            self.turns += message.main
            entry = {"id": message.id, "usd": 0.0, "turns": int(message.main), "usage": {}, "stated": False}
            entry |= {"turn": self.turns, "listed": [0, 0.0]}
            self.open.append(entry)
            self.messages += 1
            self._close(len(self.open) - OPEN)
        entry["guessed"] = False
        if message.tokens is None or entry["stated"]:
            return entry
        price = price_of(message.model)
        entry["usd"] = min(price.of(message.tokens), MOST_DOLLARS)
        entry["usage"] = _usage(message.tokens)
        entry["guessed"] = not price.known
        return entry

    def result(self, result: Result) -> None:
        """Replace the estimate by what a result line states; its cost stays estimated when the line states none."""
        if result.cost_usd is None:
            self.stated_usd = self.cost_usd
        else:
            self.stated_usd = max(self.stated_usd, result.cost_usd - self.carried_usd)
            self.messages = 0
        self.stated_turns = added(self.stated_turns, result.num_turns, MOST_TURNS)
        _add(self.stated_usage, result.usage)
        self.estimated_usd, self.estimated_turns, self.estimated_usage = 0.0, 0, {}
        for one in self.open:
            one.update(usd=0.0, turns=0, usage={}, stated=True)

    def state_cost(self, usd: float) -> None:
        """Take the cost so far that a transcript states; its turns and usage stay counted from messages."""
        self.stated_usd = max(self.stated_usd, usd)
        self.estimated_usd, self.messages = 0.0, 0
        for one in self.open:
            one.update(usd=0.0, stated=True)

    def _close(self, number: int) -> None:
        for one in self.open[: max(number, 0)]:
            self.estimated_usd += one["usd"]
            self.estimated_turns += one["turns"]
            _add(self.estimated_usage, one["usage"])
        del self.open[: max(number, 0)]


def to_list(counted: dict[str, Any]) -> tuple[int, float]:
    """Return the tokens and dollars of a message that no log entry has yet, and note that one has them now."""
    if counted["stated"]:
        return 0, 0.0
    tokens, usd = sum(counted["usage"].values()), counted["usd"]
    listed_tokens, listed_usd = counted.get("listed", (tokens, usd))  # a version that did not list stored it
    counted["listed"] = [tokens, usd]
    return max(tokens - listed_tokens, 0), max(usd - listed_usd, 0.0)


def _usage(tokens: Tokens) -> dict[str, int]:
    """Name the tokens as the result line does."""
    return {
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.write_5m + tokens.write_1h,
        "cache_read_input_tokens": tokens.read,
        "output_tokens": tokens.output,
    }


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        total[name] = added(total.get(name, 0), number, MOST_TOKENS)
