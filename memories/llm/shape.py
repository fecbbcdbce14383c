"""Read a model's answer as text or as an object of a pydantic model, also out of a fenced block or prose. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

T = TypeVar("T")

FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
THINKING = re.compile(r"<(think|thinking|analysis|scratchpad|reasoning)>", re.IGNORECASE)
MOST_STARTS, MOST_PROBLEMS = 50, 3
"""How many places in a text are tried as the start of an object, and how many problems a message names."""


class Unreadable(Exception):
    """The answer has not the expected shape. The text says why and quotes nothing of the answer."""


def without_thinking(text: str) -> str:
    """Leave out what a model thought aloud, where it says where that ends."""
    pieces, at = [], 0
    for opening in THINKING.finditer(text):
        if opening.start() < at:
            continue
        closing = re.compile(rf"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if closing is None:
            break
        pieces.append(text[at : opening.start()])
        at = closing.end()
    return "".join([*pieces, text[at:]])


def schema_of(shape: type[Any]) -> dict[str, Any] | None:
    """Return the JSON Schema of a pydantic model; None for text."""
    return shape.model_json_schema() if issubclass(shape, BaseModel) else None


def read(shape: type[T], text: str, structured: Any = None) -> T:
    """Return the answer as `shape` (str, or a pydantic model). `structured` is what the backend has parsed already.

    Of several objects in a text the first one counts that fits. Raises Unreadable.
    """
    if not issubclass(shape, BaseModel):
        if not text.strip():
            raise Unreadable("the answer is empty")
        return text.strip()  # type: ignore[return-value]
    candidates = [structured] if structured is not None else _objects(text)
    problem = ""
    for each in candidates:
        try:
            return shape.model_validate(each)
        except ValidationError as error:
            problem = problem or _problems(error)
        except RecursionError:
            problem = problem or "it is nested too deeply"
    if problem:
        raise Unreadable(f"the answer does not fit: {problem}")
    raise Unreadable("the answer holds no JSON object" if text.strip() else "the answer is empty")


def _objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects of a text: all of it, its fenced blocks, then whatever begins with a brace."""
    for piece in (text, *(match[1] for match in FENCED.finditer(text))):
        try:
            value = json.loads(piece)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(MOST_STARTS):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
            yield value
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)


def _problems(error: ValidationError) -> str:
    errors = error.errors(include_input=False, include_url=False, include_context=False)
    problems = [f"{'.'.join(str(part) for part in each['loc']) or 'answer'}: {each['msg']}" for each in errors]
    return "; ".join(problems[:MOST_PROBLEMS])
