"""Asking a chat model over HTTP: one address, one hard time for all of it, left alone for a while after failures.

For what only helps when it answers at once (a judge, a rewrite): whatever goes wrong is `NoAnswer` with the reason.
Speaks OpenAI's chat completions and Anthropic's messages. Knows no database, no setting and no purpose.
"""

from __future__ import annotations

import http.client
import json
import logging
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from memories.calls import REDIRECTED, Call, named
from memories.capture.gate import credential

logger = logging.getLogger(__name__)

FAILURES, PAUSE = 3, 300.0
"""After so many failures in a row nothing is asked for so many seconds."""
MOST_READ = 100_000
"""Bytes of an answer that are read."""
AT_ONCE = 4
"""Threads that wait for one model in one process; a call beyond them waits for its turn, within its own time."""

T = TypeVar("T")


class NoAnswer(Exception):
    """There is no answer to use; the message says why. `late`, `resting` and `withheld` are what a caller may ask."""

    def __init__(self, why: str, *, late: bool = False, resting: bool = False, withheld: bool = False) -> None:
        super().__init__(why)
        self.late, self.resting, self.withheld = late, resting, withheld


class ChatModel:
    """The model `model` at `url` (the whole address). May be asked from several threads; threads it leaves behind end
    with the connection, and hold no process open."""

    def __init__(
        self, url: str, model: str, key: str, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.url, self.model, self.key, self.seconds = url, model, key, seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._failures = 0
        self._closed_until = 0.0

    @property
    def speaks_anthropic(self) -> bool:
        """Whether the address is of Anthropic's messages; else it is of OpenAI's chat completions."""
        return self.url.rstrip("/").endswith("/messages")

    def ask(self, prompt: str, said: Mapping[str, str], read: Callable[[str], T], most_tokens: int = 200) -> T:
        """What `read` makes of the answer to `said`, sent as JSON. Never takes longer than the model's time.

        `read` raises ValueError, KeyError, IndexError or TypeError for what is no answer; it counts as a failure,
        as no answer does. Raises NoAnswer. What looks like it holds a credential is not sent.
        """
        for text in said.values():
            if kind := credential(text):
                raise NoAnswer(f"what looks like a credential ({kind}) is not sent", withheld=True)
        if self._clock() < self._closed_until:
            raise NoAnswer("the model failed several times and is not asked for a while", resting=True)
        call = Call(self.seconds)
        try:
            found = read(self._within_time(call, self._request(prompt, said, most_tokens)))
        except (
            OSError,
            http.client.HTTPException,
            RecursionError,
            ValueError,
            KeyError,
            IndexError,
            TypeError,
        ) as error:
            raise self._failed(error) from error
        with self._lock:
            self._failures = 0
        return found

    def _within_time(self, call: Call, request: urllib.request.Request) -> str:
        """The answer's words. A socket's own time begins anew with each byte; this one does not.

        Raises TimeoutError, and what asking and reading raise.
        """
        begun = time.monotonic()
        if not self._places.acquire(timeout=self.seconds):
            raise TimeoutError
        answer: Future[str] = Future()

        def work() -> None:
            try:
                answer.set_result(self._words(json.loads(_good(*call.answer(request, MOST_READ)))))
            except BaseException as error:
                answer.set_exception(error)
            finally:
                self._places.release()

        try:
            threading.Thread(target=work, name="chat-model", daemon=True).start()
        except RuntimeError as error:  # no thread to be had
            self._places.release()
            raise OSError("no thread to ask in") from error
        try:
            return answer.result(timeout=max(0.0, self.seconds - (time.monotonic() - begun)))
        finally:
            call.hang_up()

    def _request(self, prompt: str, said: Mapping[str, str], most_tokens: int) -> urllib.request.Request:
        messages = [{"role": "user", "content": json.dumps(dict(said), ensure_ascii=False)}]
        headers = {"Content-Type": "application/json"}
        body: dict[str, Any] = {"model": self.model, "max_tokens": most_tokens, "temperature": 0}
        if self.speaks_anthropic:
            body |= {"system": prompt, "messages": messages}
            headers |= {"anthropic-version": "2023-06-01", "x-api-key": self.key}
        else:
            body |= {"messages": [{"role": "system", "content": prompt}, *messages]}
            if self.key:
                headers["Authorization"] = f"Bearer {self.key}"
        return urllib.request.Request(self.url, json.dumps(body).encode(), headers)  # noqa: S310  (checked at start)

    def _words(self, document: Any) -> str:
        if self.speaks_anthropic:
            return str(document["content"][0]["text"])
        return str(document["choices"][0]["message"]["content"])

    def _failed(self, error: Exception) -> NoAnswer:
        with self._lock:
            self._failures += 1
            if self._failures >= FAILURES:
                self._closed_until = self._clock() + PAUSE
                self._failures = 0
                logger.warning("the model %s failed %s times; it rests for %g s", self.model, FAILURES, PAUSE)
        if isinstance(getattr(error, "reason", error), TimeoutError):
            return NoAnswer(f"no answer within {self.seconds:g} s", late=True)
        return NoAnswer(f"no usable answer ({named(error)})")


def _good(status: int, body: bytes) -> bytes:
    if status != 200:
        raise OSError(REDIRECTED if 300 <= status < 400 else f"HTTP {status}")
    return body
