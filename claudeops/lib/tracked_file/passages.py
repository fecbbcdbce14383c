"""The passages of a Markdown text: what a reader takes together, such as a list with its lead-in. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

HEADING = re.compile(r"(#{1,6})\s+(\S.*)\Z", re.DOTALL)
ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])\s+(\S.*)\Z", re.DOTALL)
BELOW = re.compile(r"(?:  |\t)\s*(\S.*)\Z", re.DOTALL)
"""A line that belongs to the item above it."""
RULE = re.compile(r" {0,3}([-*_])\s*(?:\1\s*){2,}\Z")
CODE = "code"
"""The class of a line in a code fence; lines of other classes, such as comments, are not there for a reader."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a passage: its lines from `at` (from 0) up to `end`.

    `mark` is "-" or "1." of an item, "" of other text. `depth` counts the levels above it: an item below a lead-in has
    1, one below that 2. Code has no text.
    """

    at: int
    end: int
    text: str
    depth: int = 0
    mark: str = ""
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    at: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """What a reader takes together: a list with its lead-in, an item with what stands below it, or a paragraph.

    `under` are the headings above it, the highest first.
    """

    parts: tuple[Part, ...]
    under: tuple[Heading, ...] = ()


def heading_of(at: int, text: str) -> Heading | None:
    """Return the heading that a line is, without the signs that close it."""
    match = HEADING.match(text)
    if match is None:
        return None
    title = match[2].rstrip()
    plain = title.rstrip("#")
    closes = plain != title and plain[-1:].isspace()
    return Heading(at, len(match[1]), plain.rstrip() if closes else title)


def passages(texts: Sequence[str], classes: Sequence[str]) -> list[Passage]:
    """Return the passages of a Markdown text in its order.

    `texts` are lines without their ends; `classes` say which are not text: CODE, or another word for what a reader does
    not see. Each item of a list without a lead-in is a passage of its own.
    """
    reader = _Reader()
    for at, (text, kind) in enumerate(zip(texts, classes, strict=True)):
        reader.read(at, text, kind)
    reader.end()
    return reader.found


@dataclass(slots=True)
class _Reader:
    """Reads lines. `parts` are those of the passage that is begun, `indents` of the items above in its list.

    `is_open`: no blank line came since the last part.
    """

    found: list[Passage] = field(default_factory=list)
    under: list[Heading] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    indents: list[int] = field(default_factory=list)
    is_open: bool = True

    def end(self) -> None:
        if self.parts:
            self.found.append(Passage(tuple(self.parts), tuple(self.under)))
        self.parts, self.indents = [], []

    def read(self, at: int, text: str, kind: str) -> None:
        if kind == CODE:
            if self.parts and not self.parts[-1].is_code:
                self.parts.append(Part(at, at + 1, "", self.parts[-1].depth, is_code=True))
            self.is_open = False
        elif kind or not text.strip():
            self.is_open = False
        elif heading := heading_of(at, text):
            self.end()
            self.under = [*(one for one in self.under if one.level < heading.level), heading]
        elif RULE.match(text):
            self.end()
        elif item := ITEM.match(text):
            self._item(at, len(item[1].expandtabs(4)), item[2] if item[2][0].isdigit() else "-", item[3])
        else:
            self._text(at, text)

    def _item(self, at: int, indent: int, mark: str, text: str) -> None:
        self.indents = [one for one in self.indents if one < indent]
        begins_list = not any(one.mark for one in self.parts)
        if not self.indents and self.parts and (self.parts[0].mark or (begins_list and self.parts[-1].is_code)):
            self.end()  # an item of its own; or code stands between a paragraph and the list
        has_lead = bool(self.parts) and not self.parts[0].mark
        self.parts.append(Part(at, at + 1, text, len(self.indents) + has_lead, mark))
        self.indents.append(indent)
        self.is_open = True

    def _text(self, at: int, text: str) -> None:
        last = self.parts[-1] if self.parts and not self.parts[-1].is_code else None
        is_below = BELOW.match(text) is not None
        if last and self.is_open and (not last.mark or is_below):
            self.parts[-1] = replace(last, end=at + 1, text=f"{last.text} {text.strip()}")
        elif self.indents and (self.is_open or text[:1].isspace()):
            self.parts.append(Part(at, at + 1, text.strip(), self.parts[-1].depth))
        else:
            self.end()
            self.parts.append(Part(at, at + 1, text.strip()))
        self.is_open = True
