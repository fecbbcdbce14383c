"""Writes stream-json in the shapes of the CLI, from what an agent says and does in a scene.

Ids and times are made here; what is said is in `scenes`. Everything is derived from the scene's name, so writing
the streams again changes no byte of them.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sessions_app.demo.shapes import (
    DENIED,
    FAST_MODE_OFF,
    FIRST_REQUEST,
    NO_SUBAGENTS,
    START,
    WARM,
    Tokens,
    compact,
    init,
    model_usage,
    usage,
)


class Recorder:
    """One session's stream, line by line. Times pass by `after` (seconds the model takes) and `took` (a tool's)."""

    def __init__(self, name: str, model: str) -> None:
        self.name = name
        self.model = model
        self.lines: list[dict[str, Any]] = []
        self.made = 0
        self.now = START
        self.api_seconds = 0.0
        self.session_id = self._uuid()
        self.spent = Tokens()
        self.context, self.cached = FIRST_REQUEST, WARM
        self.tool_results = 0
        self.denials: list[dict[str, Any]] = []
        self._message: dict[str, Any] = {}
        self._request = Tokens()
        self._line("system", **init(model, self.session_id, self._uuid()))

    # What a scene is written with.

    def say(self, text: str, after: float = 2.4) -> None:
        """A text block of the agent's."""
        self._pass(after)
        self._assistant({"type": "text", "text": text}, text)

    def think(self, text: str, after: float = 3.0) -> None:
        """A thinking block, with the progress line that precedes it."""
        tokens = len(text) // 4
        self._system("thinking_tokens", estimated_tokens=tokens, estimated_tokens_delta=tokens)
        self._pass(after)
        block = {"type": "thinking", "thinking": text, "signature": self._hex(48)}
        self._assistant(block, text, thinking_duration_ms=int(after * 1000), thinking_display="updates")

    def bash(
        self, command: str, stdout: str, why: str, *, took: float = 0.4, code: int = 0, after: float = 1.1
    ) -> None:
        """A command and what it printed; with an exit code above 0 it is an error, as the CLI reports one."""
        tool = self._tool_use("Bash", {"command": command, "description": why}, after)
        self.now += timedelta(seconds=took)
        if code:
            text = f"Exit code {code}\n{stdout}"
            self._tool_result(tool, text, f"Error: {text}", is_error=True)
        else:
            done = {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
            self._tool_result(tool, stdout, done, is_error=False)

    def read(self, path: str, content: str, after: float = 1.0) -> None:
        """A file that is read."""
        tool = self._tool_use("Read", {"file_path": path}, after)
        self.now += timedelta(seconds=0.05)
        lines = content.split("\n")
        numbered = "\n".join(f"{number:6}\u2192{line}" for number, line in enumerate(lines, 1))
        file = {"filePath": path, "content": content, "numLines": len(lines), "startLine": 1, "totalLines": len(lines)}
        self._tool_result(tool, numbered, {"type": "text", "file": file}, is_error=None)

    def denied(self, command: str, why: str, after: float = 1.1) -> None:
        """A command that the session's rules refuse."""
        given = {"command": command, "description": why}
        tool = self._tool_use("Bash", given, after)
        text = DENIED.format(tool="Bash")
        self._system("permission_denied", tool_name="Bash", tool_use_id=tool, decision_reason_type="mode", message=text)
        self.denials.append({"tool_name": "Bash", "tool_use_id": tool, "tool_input": given})
        verdict = {"decision": "reject", "source": "config", "reason_type": "mode"}
        self._tool_result(tool, text, f"Error: {text}", is_error=True, verdict=verdict)

    def answer(self, structured: Mapping[str, Any], after: float = 2.6) -> None:
        """The structured answer, and the end of a good run."""
        tool = self._tool_use("StructuredOutput", dict(structured), after)
        given = "Structured output provided successfully"
        verdict = {"decision": "accept", "source": "config"}
        self._tool_result(tool, given, given, is_error=None, verdict=verdict)
        self._close_request()
        self._result(
            subtype="success",
            is_error=False,
            stop_reason="tool_use",
            terminal_reason="completed",
            more={"api_error_status": None, "result": compact(structured), "structured_output": dict(structured)},
        )

    def out_of_turns(self, limit: int) -> None:
        """The end of a run that reached its highest number of turns."""
        self._close_request()
        self._result(
            subtype="error_max_turns",
            is_error=True,
            stop_reason="tool_use",
            terminal_reason="max_turns",
            more={"errors": [f"Reached maximum number of turns ({limit})"]},
        )

    def api_error(self, status: int, text: str, retries: int = 3) -> None:
        """The end of a run whose API did not answer: retries, a synthetic message, a result that is an error."""
        self._close_request()
        for attempt in range(1, retries + 1):
            self._system(
                "api_retry",
                attempt=attempt,
                max_retries=retries,
                retry_delay_ms=500 * 2**attempt + 73 * attempt,
                error_status=status,
                error="server_error",
            )
        self._pass(9.0)
        message = {
            "id": self._uuid(),
            "container": None,
            "model": "<synthetic>",
            "role": "assistant",
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "type": "message",
            "usage": {**usage(Tokens(), 0), "service_tier": None},
            "content": [{"type": "text", "text": text}],
            "context_management": None,
        }
        marks = {"error": "server_error", "is_api_error_message": True, "api_error_status": status}
        self._line("assistant", message=message, parent_tool_use_id=None, **self._stamp(), **marks)
        self._result(
            subtype="success",
            is_error=True,
            stop_reason="stop_sequence",
            terminal_reason="api_error",
            more={"api_error_status": status, "api_error_type": "api_error", "result": text},
        )

    def text(self) -> str:
        """The whole stream as the CLI writes it."""
        return "".join(compact(line) + "\n" for line in self.lines)

    # Shapes.

    def _assistant(self, block: dict[str, Any], said: str, **more: Any) -> None:
        if not self._message:
            self._request = Tokens(input=6, written=self.context - self.cached, read=self.cached)
            self.cached = self.context
            self._message = {"id": f"msg_{self._hex(24)}", "request_id": f"req_{self._hex(20)}"}
        tokens = max(len(said) // 4, 12)
        self._request.output += tokens
        self.context += tokens
        message = {
            "id": self._message["id"],
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [block],
            "stop_reason": None,
            "stop_sequence": None,
            # A starting value: what was really written is in the result line only.
            "usage": usage(self._request, 1),
            "context_management": None,
        }
        stamp = self._stamp()
        self._line(
            "assistant",
            message=message,
            parent_tool_use_id=None,
            **stamp,
            request_id=self._message["request_id"],
            **more,
        )

    def _tool_use(self, tool: str, given: dict[str, Any], after: float) -> str:
        self._pass(after)
        name = f"toolu_{self._hex(24)}"
        self._assistant({"type": "tool_use", "id": name, "name": tool, "input": given}, compact(given))
        return name

    def _tool_result(
        self,
        tool: str,
        content: str,
        detail: Any,
        *,
        is_error: bool | None,
        verdict: dict[str, str] | None = None,
    ) -> None:
        self.now += timedelta(seconds=0.09)
        block: dict[str, Any] = {"tool_use_id": tool, "type": "tool_result", "content": content}
        if is_error is not None:
            block["is_error"] = is_error
        verdict = verdict or {"decision": "accept", "source": "config", "reason_type": "rule"}
        self._line(
            "user",
            message={"role": "user", "content": [block]},
            parent_tool_use_id=None,
            **self._stamp(),
            tool_use_result=detail,
            tool_result_meta=[{"id": tool, "permission_decision": verdict}],
        )
        self.tool_results += 1
        self.context += len(content) // 4
        self._close_request()

    def _close_request(self) -> None:
        self.spent.add(self._request)
        self._request, self._message = Tokens(), {}

    def _result(
        self, *, subtype: str, is_error: bool, stop_reason: str, terminal_reason: str, more: dict[str, Any]
    ) -> None:
        used = model_usage(self.spent, self.model) if self.spent.output else {}
        counted = {
            **usage(self.spent, self.spent.output),
            "output_tokens_details": {"thinking_tokens": 0},
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        }
        self.lines.append(
            {
                "duration_api_ms": int(self.api_seconds * 1000),
                "stop_reason": stop_reason,
                "session_id": self.session_id,
                "total_cost_usd": self.spent.cost(self.model),
                "usage": counted,
                "modelUsage": used,
                "permission_denials": self.denials,
                "terminal_reason": terminal_reason,
                **FAST_MODE_OFF,
                "subagent_stats": NO_SUBAGENTS,
                "safety_stops": 0,
                "is_error": is_error,
                "num_turns": 1 + self.tool_results,
                "subtype": subtype,
                **more,
                "ttft_ms": 900,
                "type": "result",
                "duration_ms": int((self.now - START).total_seconds() * 1000) + 620,
                "uuid": self._uuid(),
                "queued_turn_count": 0,
                "result_index": 0,
                "model_usage_since_last_result": used,
            }
        )

    def _system(self, subtype: str, **fields: Any) -> None:
        self._line("system", subtype=subtype, **fields, uuid=self._uuid(), session_id=self.session_id)

    def _line(self, kind: str, **fields: Any) -> None:
        self.lines.append({"type": kind, **fields})

    def _stamp(self) -> dict[str, str]:
        at = self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"session_id": self.session_id, "uuid": self._uuid(), "timestamp": at}

    def _pass(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.api_seconds += seconds

    def _hex(self, length: int) -> str:
        self.made += 1
        seed = f"{self.name}:{self.made}"
        return hashlib.sha256(seed.encode()).hexdigest()[:length]

    def _uuid(self) -> str:
        return str(uuid.UUID(self._hex(32), version=4))
