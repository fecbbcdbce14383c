"""Call a model over HTTP, or answer from recordings.

Over HTTP: Anthropic's Messages API where the address ends with /messages, else OpenAI's chat API.

Recorded: FOLDER/ROLE/HASH.txt holds what the model said to the prompt with this hash. FOLDER/ROLE/about-NAME.txt
holds in its first line what a prompt has to contain, below it the answer; ROLE/otherwise.txt is the answer to all
other prompts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claudeops.lib.http import RequestFailed, post_json
from claudeops.lib.prices import Tokens, price_of
from memories.llm.backends.base import Failure, Reply, Request

MAX_BYTES = 1_000_000
SCHEMA = "\n\nAnswer with one JSON object and nothing else. It must fit this JSON Schema:\n"


@dataclass(frozen=True, slots=True)
class HttpBackend:
    """`url` is the whole address; `key` may be empty."""

    url: str
    key: str

    def trouble(self) -> str:
        return "" if self.url else "no address of a model is set (CLAUDEOPS_MODEL_URL)"

    def send(self, request: Request) -> Reply:
        headers, body = self._request(request)
        try:
            status, answer = post_json(self.url, body, headers, seconds=request.seconds, max_bytes=MAX_BYTES)
        except RequestFailed as failed:
            raise Failure(str(failed), late=failed.late, again=not failed.late) from None
        if status != 200:
            redirected = 300 <= status < 400
            why = "it sends elsewhere, which is not followed" if redirected else f"HTTP {status}"
            raise Failure(why, again=status in (408, 409, 429) or status >= 500)
        try:
            return self._reply(json.loads(answer))
        except (RecursionError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise Failure(type(error).__name__, again=True) from error

    @property
    def speaks_anthropic(self) -> bool:
        return self.url.rstrip("/").endswith("/messages")

    def _request(self, request: Request) -> tuple[dict[str, str], dict[str, Any]]:
        system = request.instructions
        if request.schema is not None:
            system += SCHEMA + json.dumps(request.schema, ensure_ascii=False)
        messages = [{"role": "user", "content": request.text}]
        body: dict[str, Any] = {"model": request.model, "max_tokens": request.most_tokens, "temperature": 0}
        if self.speaks_anthropic:
            headers = {"anthropic-version": "2023-06-01", "x-api-key": self.key}
            return headers, body | {"system": system, "messages": messages}
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return headers, body | {"messages": [{"role": "system", "content": system}, *messages]}

    def _reply(self, document: Any) -> Reply:
        usage = document.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        model = str(document.get("model") or "")
        if not self.speaks_anthropic:
            text = str(document["choices"][0]["message"]["content"])
            return Reply(text, None, model, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))
        text = "".join(str(block["text"]) for block in document["content"] if block.get("type", "text") == "text")
        came, went = _count(usage, "input_tokens"), _count(usage, "output_tokens")
        cost = None
        if came is not None and went is not None and "claude" in model:
            cost = price_of(model).of(Tokens(input=came, output=went))
        return Reply(text, None, model, came, went, cost)


def _count(usage: dict[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) and 0 <= value < 2**31 else None


@dataclass(frozen=True, slots=True)
class RecordedBackend:
    """`folder` holds a folder for each role."""

    folder: Path

    def trouble(self) -> str:
        if not self.folder.name:
            return "no folder of recorded answers is set (CLAUDEOPS_MODEL_RECORDINGS)"
        return "" if self.folder.is_dir() else f"there is no folder {self.folder}"

    def send(self, request: Request) -> Reply:
        path = self.path(request.role, request.prompt_hash)
        try:
            text = self._about(request)
            if text is None:
                text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            raise Failure(f"no recorded answer: {request.role}/{path.name}") from None
        return Reply(text, model="recorded", cost_usd=0.0)

    def path(self, role: str, prompt_hash: str) -> Path:
        return self.folder / role / f"{prompt_hash}.txt"

    def _about(self, request: Request) -> str | None:
        """Return the answer that does not depend on the whole prompt; None where the prompt has one of its own."""
        if self.path(request.role, request.prompt_hash).is_file():
            return None
        folder = self.folder / request.role
        for path in sorted(folder.glob("about-*.txt")):
            phrase, _, answer = path.read_text(encoding="utf-8").partition("\n")
            if phrase.strip() and phrase.strip() in request.text:
                return answer
        otherwise = folder / "otherwise.txt"
        return otherwise.read_text(encoding="utf-8") if otherwise.is_file() else None
