"""Decide the status of a run and its reason from the exit code, the last result and who ended it. Pure.

A run completed when the exit code is 0 AND there is a result AND its `is_error` is false. (Measured: an API error comes
as subtype `success` with is_error true; SIGINT gives exit code 0 without a result.)
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sessions_app.models import Status


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
