"""A chat model over HTTP with a circuit breaker of its own, for the judge and the rewriter."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from claudeops.lib.secrets import mask
from memories.llm.backends import Failure, HttpBackend, Request

logger = logging.getLogger(__name__)

FAILURES, PAUSE = 3, 300.0
"""After so many failures in a row the model is not called for so many seconds."""

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
        self.model, self.seconds = model, seconds
        self._backend = HttpBackend(url, key)
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until = 0.0

    def ask(self, prompt: str, said: Mapping[str, str], read: Callable[[str], T], most_tokens: int = 200) -> T:
        """Send `said` as JSON and return what `read` makes of the answer, within the model's time.

        `read` raises ValueError, KeyError, IndexError or TypeError for an unusable answer, which counts as a failure.
        Raises NoAnswer. Credentials are masked.
        """
        text = json.dumps({name: mask(value) for name, value in said.items()}, ensure_ascii=False)
        if self._clock() < self._closed_until:
            raise NoAnswer("the model failed several times and is not asked for a while", resting=True)
        try:
            found = read(self._backend.send(Request("", self.model, prompt, text, "", self.seconds, most_tokens)).text)
        except Failure as failed:
            why = str(failed) if failed.late else f"no usable answer ({failed})"
            raise self._failed(why, failed.late) from None
        except (RecursionError, ValueError, KeyError, IndexError, TypeError) as error:
            raise self._failed(f"no usable answer ({type(error).__name__})") from error
        with self._lock:
            self._failures = 0
        return found

    def _failed(self, why: str, late: bool = False) -> NoAnswer:
        with self._lock:
            self._failures += 1
            if self._failures >= FAILURES:
                self._closed_until = self._clock() + PAUSE
                self._failures = 0
                logger.warning("the model %s failed %s times; it is not called for %g s", self.model, FAILURES, PAUSE)
        return NoAnswer(why, late=late)
