"""Call a chat model (OpenAI's or Anthropic's API) with a total timeout and a circuit breaker."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from claudeops.lib.http import RequestFailed, post_json
from claudeops.lib.secrets import mask

logger = logging.getLogger(__name__)

FAILURES, PAUSE = 3, 300.0
"""After so many failures in a row the model is not called for so many seconds."""
MAX_BYTES = 100_000

T = TypeVar("T")


class NoAnswer(Exception):
    """There is no usable answer; the message says why.

    `late`: the time was over. `resting`: the circuit breaker is open.
    """

    def __init__(self, why: str, *, late: bool = False, resting: bool = False) -> None:
        super().__init__(why)
        self.late, self.resting = late, resting


class ChatModel:
    """The model `model` at `url` (the whole address), given `seconds` for each answer. Several threads may share it."""

    def __init__(
        self, url: str, model: str, key: str, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.url, self.model, self.key, self.seconds = url, model, key, seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until = 0.0

    @property
    def speaks_anthropic(self) -> bool:
        return self.url.rstrip("/").endswith("/messages")

    def ask(self, prompt: str, said: Mapping[str, str], read: Callable[[str], T], most_tokens: int = 200) -> T:
        """Send `said` as JSON and return what `read` makes of the answer, within the model's time.

        `read` raises ValueError, KeyError, IndexError or TypeError for an unusable answer, which counts as a failure.
        Raises NoAnswer. Credentials are masked.
        """
        said = {name: mask(text) for name, text in said.items()}
        if self._clock() < self._closed_until:
            raise NoAnswer("the model failed several times and is not asked for a while", resting=True)
        headers, body = self._request(prompt, said, most_tokens)
        try:
            status, answer = post_json(self.url, body, headers, seconds=self.seconds, max_bytes=MAX_BYTES)
            if status != 200:
                redirected = 300 <= status < 400
                raise RequestFailed("it sends elsewhere, which is not followed" if redirected else f"HTTP {status}")
            found = read(self._words(json.loads(answer)))
        except RequestFailed as failed:
            raise self._failed(
                f"no usable answer ({failed})" if not failed.late else str(failed), failed.late
            ) from None
        except (RecursionError, ValueError, KeyError, IndexError, TypeError) as error:
            raise self._failed(f"no usable answer ({type(error).__name__})") from error
        with self._lock:
            self._failures = 0
        return found

    def _request(self, prompt: str, said: Mapping[str, str], most_tokens: int) -> tuple[dict[str, str], dict[str, Any]]:
        messages = [{"role": "user", "content": json.dumps(dict(said), ensure_ascii=False)}]
        body: dict[str, Any] = {"model": self.model, "max_tokens": most_tokens, "temperature": 0}
        if self.speaks_anthropic:
            headers = {"anthropic-version": "2023-06-01", "x-api-key": self.key}
            return headers, body | {"system": prompt, "messages": messages}
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return headers, body | {"messages": [{"role": "system", "content": prompt}, *messages]}

    def _words(self, document: Any) -> str:
        if self.speaks_anthropic:
            return str(document["content"][0]["text"])
        return str(document["choices"][0]["message"]["content"])

    def _failed(self, why: str, late: bool = False) -> NoAnswer:
        with self._lock:
            self._failures += 1
            if self._failures >= FAILURES:
                self._closed_until = self._clock() + PAUSE
                self._failures = 0
                logger.warning("the model %s failed %s times; it is not called for %g s", self.model, FAILURES, PAUSE)
        return NoAnswer(why, late=late)
