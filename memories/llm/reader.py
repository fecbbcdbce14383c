"""Read a model's answer: as text, as an object of a pydantic model (also out of prose), or part by part. Pure.

The parts of this module are what tolerant readers of answers in tags, JSON or lines have in common. An answer is text
from a model that has read hostile text: whatever it holds becomes text, a number or one of our words.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memories.capture.text import SPACE, SURROGATE, fold

T = TypeVar("T")

LONGEST = 200_000
"""Characters of an answer that are read; one of 8,000 tokens has far fewer."""
MOST_UNREAD = 40
MOST_FAILURES = 20
"""How many places in a text are tried in vain as the start of JSON."""
LONGEST_NOTHING = 400
EMPHASIS = re.compile(r"(\*\*|__|\*|_|`)(?=\S)(.+)(?<=\S)\1\Z", re.DOTALL)
BROKEN = object()
FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
THINKING = re.compile(r"<(think|thinking|analysis|scratchpad|reasoning)>", re.IGNORECASE)
MOST_PROBLEMS = 3
"""How many problems a message names."""


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
    yield from (value for _, value in json_values(text, "{") if value is not BROKEN)


def _problems(error: ValidationError) -> str:
    errors = error.errors(include_input=False, include_url=False, include_context=False)
    problems = [f"{'.'.join(str(part) for part in each['loc']) or 'answer'}: {each['msg']}" for each in errors]
    return "; ".join(problems[:MOST_PROBLEMS])


@dataclass(slots=True)
class Unread:
    """What of an answer could not be read, each a sentence for people, once."""

    unread: list[str] = field(default_factory=list)

    def cannot(self, what: str) -> None:
        if what in self.unread:
            return
        if len(self.unread) < MOST_UNREAD:
            self.unread.append(what)
        elif len(self.unread) == MOST_UNREAD:
            self.unread.append("more could not be read")

    def begin(self, answer: str, tag: re.Pattern[str], escaped: re.Pattern[str]) -> str:
        """Return the text of an answer, with the tags that a model escaped."""
        if len(answer) > LONGEST:
            self.cannot(f"the answer has {len(answer):,} characters; the first {LONGEST:,} were read")
        text = without_thinking(answer[:LONGEST].replace("\r\n", "\n").replace("\r", "\n"))
        return html.unescape(text) if not tag.search(text) and escaped.search(text) else text


def json_values(text: str, openings: str = r"{\[") -> Iterator[tuple[int, Any]]:
    """Yield the JSON values of a text with the places where they begin, BROKEN for what looks like one and is none."""
    decoder, failures, end = json.JSONDecoder(), 0, 0
    for start in re.finditer(f"[{openings}]", text):
        if start.start() < end:
            continue
        if failures >= MOST_FAILURES:
            return
        try:
            value, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            failures, value = failures + 1, BROKEN
        yield start.start(), value


def in_one_line(text: str) -> str:
    """Return one line without entities. What is invisible stays: who hides characters hides what the text says."""
    return SPACE.sub(" ", SURROGATE.sub("\ufffd", html.unescape(text))).strip()


def without_marks(line: str) -> str:
    """Return a line without the emphasis and the quotation marks that stand around all of it."""
    if (match := EMPHASIS.match(line)) and match[1] not in match[2]:
        line = match[2]
    quoted = len(line) > 1 and line[:1] in '"“' and line[-1:] in '"”' and line.count('"') in (0, 2)
    return line[1:-1].strip() if quoted else line.strip()


def bare(text: str, tag: re.Pattern[str]) -> str:
    """Return what an answer says beside its tags and marks; "" when that is nothing."""
    rest = fold(tag.sub(" ", text)).strip("`*_.[](){} ")
    return "" if rest.lower() in ("xml", "json") else rest


def cut(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
