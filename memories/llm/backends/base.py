"""What a backend is: it sends one request to a model and returns its words, or says why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """One call: `instructions` for the model and the `text` that it works on, both without credentials.

    `schema` is the JSON Schema of the expected object (None: text). `most_usd` is what the call may cost at most
    (None: any), for a backend that can hold it. `prompt_hash` is the SHA-256 of instructions and text.
    """

    role: str
    model: str
    instructions: str
    text: str
    prompt_hash: str
    seconds: float
    most_tokens: int
    schema: Mapping[str, Any] | None = None
    most_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `structured` is set when the backend itself read an object; figures are None when not stated.

    `model` is the full name as the backend states it, "" when it states none.
    """

    text: str
    structured: Any = None
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


class Failure(Exception):
    """There is no answer; the text says why. `late`: the time was over. `again`: another attempt may succeed.

    `paid` holds the figures of a call that cost something all the same.
    """

    def __init__(self, why: str, *, late: bool = False, again: bool = False, paid: Reply | None = None) -> None:
        super().__init__(why)
        self.late, self.again, self.paid = late, again, paid


class Backend(Protocol):
    """Calls a model. Several threads may share one."""

    def trouble(self) -> str:
        """Say what is missing before a call can be made, without making one; "" when nothing is."""

    def send(self, request: Request) -> Reply:
        """Make the call within `request.seconds`. Raises Failure."""
