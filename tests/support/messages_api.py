"""A Messages API for the tests: the Claude Code CLI talks to it as if to the real one, over HTTP on this machine.

A test writes a script of turns for a prompt; every request is kept, so that a test can read what the CLI sent.
Knows nothing of claudeops.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Text:
    """The model says something."""

    text: str

    def content(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text}


@dataclass(frozen=True)
class Thinking:
    """The model thinks aloud; nothing in it is its answer."""

    text: str

    def content(self) -> dict[str, Any]:
        return {"type": "thinking", "thinking": self.text, "signature": "c2lnbmVk"}


@dataclass(frozen=True)
class ToolUse:
    """The model asks for a tool: Bash, StructuredOutput, Agent, …"""

    name: str
    input: Mapping[str, Any]

    def content(self) -> dict[str, Any]:
        return {
            "type": "tool_use",
            "id": f"toolu_{uuid.uuid4().hex[:24]}",
            "name": self.name,
            "input": dict(self.input),
        }


def bash(command: str) -> ToolUse:
    return ToolUse("Bash", {"command": command, "description": "what the test asked for"})


def structured(**answer: Any) -> ToolUse:
    """The structured response that `--json-schema` asks for."""
    return ToolUse("StructuredOutput", answer)


Block = Text | Thinking | ToolUse


@dataclass(frozen=True)
class Turn:
    """One answer of the model.

    `stop_reason` follows from the blocks when it is empty. `held`, when given, is set by the test to let the
    answer go; `delay` (seconds) is for answers that are merely slow. Both end when the server closes.
    The tokens are what the CLI counts its cost from.
    """

    blocks: Sequence[Block]
    stop_reason: str = ""
    held: threading.Event | None = None
    delay: float = 0
    input_tokens: int = 1000
    output_tokens: int = 50

    @property
    def reason(self) -> str:
        return self.stop_reason or (
            "tool_use" if any(isinstance(block, ToolUse) for block in self.blocks) else "end_turn"
        )


@dataclass(frozen=True)
class Failure:
    """An answer that is an error of the API. The CLI tries again as often as it is told to, so it comes again."""

    status: int
    kind: str = "api_error"
    message: str = "the test's own error"
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1


Answer = Turn | Failure


def says(*texts: str, **options: Any) -> Turn:
    return Turn([Text(text) for text in texts], **options)


def answers(*blocks: Block, **options: Any) -> Turn:
    return Turn(blocks, **options)


@dataclass(frozen=True)
class Request:
    """One POST /v1/messages, as it came in. `key` names the script that answered it."""

    key: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def system(self) -> str:
        """The system prompt, its blocks joined by newlines."""
        system = self.body.get("system", "")
        return system if isinstance(system, str) else "\n".join(block.get("text", "") for block in system)

    @property
    def prompt(self) -> str:
        """Everything in the first user message: the prompt and what the CLI puts around it."""
        return first_user_text(self.body)

    @property
    def cli_session_id(self) -> str:
        """The session id the CLI was started with."""
        return self.headers.get("X-Claude-Code-Session-Id", "")

    @property
    def tool_results(self) -> list[str]:
        """What the tools answered so far, as the model sees it."""
        found = []
        for message in self.body.get("messages", []):
            content = message.get("content")
            for block in content if isinstance(content, list) else []:
                if block.get("type") == "tool_result":
                    found.append(text_of(block.get("content", "")))
        return found


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or [] if isinstance(block, dict))


def first_user_text(body: Mapping[str, Any]) -> str:
    for message in body.get("messages", []):
        if message.get("role") == "user":
            return text_of(message.get("content", ""))
    return ""


class Script:
    """The turns of one prompt, in order. After them `then` answers for ever, if there is one."""

    def __init__(self, key: str, turns: Sequence[Answer], then: Answer | None) -> None:
        self.key, self.then = key, then
        self.waiting: list[Answer] = []
        for turn in turns:
            self.waiting.extend([turn] * (turn.times if isinstance(turn, Failure) else 1))

    def next(self) -> Answer | None:
        return self.waiting.pop(0) if self.waiting else self.then


class MessagesApi:
    """The server. `with MessagesApi() as api`, then `api.script(...)` and a CLI started with `api.environment`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.surprises: list[str] = []
        self.scripts: list[Script] = []
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"api": self}))
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> MessagesApi:
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """What the CLI needs in its environment to come here, without an account."""
        return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "only-for-the-tests"}

    def script(self, key: str, *turns: Answer, then: Answer | None = None) -> None:
        """Answer the conversation whose first user message holds `key` with `turns`, one a request.

        A request beyond them gets `then`; without it, it is answered with an error and kept in `surprises`.
        Where several keys fit, the one written last answers.
        """
        with self.changed:
            self.scripts.insert(0, Script(key, turns, then))

    def answer(self, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        prompt = first_user_text(body)
        with self.changed:
            script = next((one for one in self.scripts if one.key in prompt), None)
            self.requests.append(Request(script.key if script else "", body, headers))
            found = script.next() if script else None
            if found is None:
                why = f"the script of {script.key!r} has no further turn" if script else "no script fits the prompt"
                self.surprises.append(f"{why}: {prompt[:300]!r}")
                found = Failure(400, "invalid_request_error", why)
            self.changed.notify_all()
        return found

    def to(self, key: str) -> list[Request]:
        """The requests that were answered from the script of `key`, in order."""
        with self.changed:
            return [request for request in self.requests if request.key == key]

    def wait_for_request(self, key: str, number: int = 1, timeout: float = 60) -> Request:
        """Wait until `number` requests of the script of `key` have come in, and give that one."""
        with self.changed:
            came = self.changed.wait_for(lambda: len([r for r in self.requests if r.key == key]) >= number, timeout)
        if not came:
            raise AssertionError(
                f"request {number} of {key!r} did not come within {timeout:g} s; "
                f"{len(self.requests)} came in all, surprises: {self.surprises}"
            )
        return self.to(key)[number - 1]


class Handler(BaseHTTPRequestHandler):
    """One connection of the CLI."""

    api: MessagesApi
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Quiet: what came in is in `requests`."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.fail(Failure(404, "not_found_error", "there is only /v1/messages here"))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        try:
            if path == "/v1/messages":
                self.messages(body)
            elif path == "/v1/messages/count_tokens":
                self.send_json(200, {"input_tokens": len(json.dumps(body)) // 4})
            else:
                self.do_GET()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the CLI was ended in the middle of an answer

    def messages(self, body: dict[str, Any]) -> None:
        answer = self.api.answer(body, dict(self.headers.items()))
        if isinstance(answer, Failure):
            self.fail(answer)
            return
        self.hold(answer)
        message = {
            "id": f"msg_{uuid.uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "claude"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": answer.input_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 1,
            },
        }
        if body.get("stream"):
            self.stream(answer, message)
        else:
            message["content"] = [block.content() for block in answer.blocks]
            message["stop_reason"] = answer.reason
            message["usage"] = {**message["usage"], "output_tokens": answer.output_tokens}
            self.send_json(200, message)

    def hold(self, answer: Turn) -> None:
        """Keep the CLI waiting for as long as the answer says, or until the server closes."""
        if answer.delay:
            self.api.closing.wait(answer.delay)
        while answer.held is not None and not answer.held.wait(0.05) and not self.api.closing.is_set():
            pass

    def stream(self, answer: Turn, message: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("request-id", f"req_{uuid.uuid4().hex[:20]}")
        self.end_headers()
        for event in events(answer, message):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def fail(self, failure: Failure) -> None:
        self.send_json(
            failure.status,
            {"type": "error", "error": {"type": failure.kind, "message": failure.message}},
            failure.headers,
        )

    def send_json(self, status: int, document: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def events(answer: Turn, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The server-sent events of one answer, as the API documents them."""
    yield {"type": "message_start", "message": message}
    yield {"type": "ping"}
    for index, block in enumerate(answer.blocks):
        content = block.content()
        match content["type"]:
            case "text":
                empty = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": part} for part in pieces(content["text"])]
            case "thinking":
                empty = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": part} for part in pieces(content["thinking"])]
                deltas.append({"type": "signature_delta", "signature": content["signature"]})
            case _:
                empty = {**content, "input": {}}
                arguments = json.dumps(content["input"])
                deltas = [{"type": "input_json_delta", "partial_json": part} for part in pieces(arguments)]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": answer.reason, "stop_sequence": None},
        "usage": {"output_tokens": answer.output_tokens},
    }
    yield {"type": "message_stop"}


def pieces(text: str, size: int = 400) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]
