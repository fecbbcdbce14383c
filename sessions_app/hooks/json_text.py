"""Edit a JSON text in place: what is not touched stays byte for byte, comments and trailing commas too. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

WHITESPACE = " \t\r\n"
_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: `text[start:end]`. An object or array has `members`."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()

    def last(self, name: str) -> Member | None:
        """Return the member of an object with this name; of several the last, which is the one that counts."""
        return next((one for one in reversed(self.members) if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Member:
    """An element of an array or a pair of an object, from its key on. `comma` is the offset of the one behind it."""

    start: int
    name: str
    node: Node
    comma: int | None

    @property
    def end(self) -> int:
        return self.node.end


def parse(text: str) -> Node:
    """Parse a JSON text, which may have comments, trailing commas and a byte order mark. Raises ValueError."""
    reader = _Reader(text, text.startswith("\ufeff"))
    reader.skip()
    try:
        found = reader.value()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    reader.skip()
    if reader.at != len(text):
        raise reader.wrong("more text than one value")
    return found


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, int(at)

    def wrong(self, what: str) -> ValueError:
        before = self.text[: self.at]
        line, column = before.count("\n") + 1, self.at - before.rfind("\n")
        return ValueError(f"{what} at line {line}, column {column}")

    def skip(self) -> None:
        """Skip whitespace and comments."""
        if found := _TRIVIA.match(self.text, self.at):
            self.at = found.end()

    def next_is(self, character: str) -> bool:
        return self.text.startswith(character, self.at)

    def value(self) -> Node:
        start = self.at
        if self.next_is("{"):
            members = tuple(self.members("}"))
            return Node(start, self.at, {one.name: one.node.value for one in members}, members)
        if self.next_is("["):
            members = tuple(self.members("]"))
            return Node(start, self.at, [one.node.value for one in members], members)
        return self.scalar()

    def scalar(self) -> Node:
        start = self.at
        try:
            value, self.at = _DECODER.raw_decode(self.text, start)
        except ValueError:
            raise self.wrong("no JSON value") from None
        return Node(start, self.at, value)

    def members(self, closing: str) -> Iterator[Member]:
        self.at += 1
        self.skip()
        while not self.next_is(closing):
            start, name = self.at, ""
            if closing == "}":
                name = self.key()
            node = self.value()
            self.skip()
            comma = self.at if self.next_is(",") else None
            yield Member(start, name, node, comma)
            if comma is None:
                break
            self.at += 1
            self.skip()
        if not self.next_is(closing):
            raise self.wrong(f"no comma and no {closing}")
        self.at += 1

    def key(self) -> str:
        if not self.next_is('"'):
            raise self.wrong("no key in quotation marks")
        name = str(self.scalar().value)
        self.skip()
        if not self.next_is(":"):
            raise self.wrong("no colon behind a key")
        self.at += 1
        self.skip()
        return name


def append(text: str, container: Node, item: str, lead: str) -> str:
    """Put `item` behind the last member of a container, after `lead`: a line break and the indentation.

    In an empty container there is no `lead`; `is_made_around` tells by that that the container was there before. Only
    the outermost one, which is never removed, has it when there is room for lines.
    """
    if not container.members:
        inside = text[container.start + 1 : container.end - 1]
        outermost = not text[: container.start].strip("\ufeff" + WHITESPACE)
        at = container.start + 1
        return text[:at] + (lead if outermost and "\n" in inside else "") + item + text[at:]
    last = container.members[-1]
    end = last.end if last.comma is None else last.comma + 1
    found = _REST_OF_LINE.match(text, end)
    at = found.end() if found else end
    if last.comma is None:
        return text[: last.end] + "," + text[last.end : at] + lead + item + text[at:]
    return text[:at] + lead + item + "," + text[at:]


def remove(text: str, container: Node, index: int) -> str:
    """Take out a member, with the comma and the whitespace that `append` put there."""
    member = container.members[index]
    start = len(text[: member.start].rstrip(WHITESPACE))
    cuts = [(start, member.end)]
    following = container.members[index + 1 :]
    if member.comma is not None:
        cuts.append((member.comma, member.comma + 1))
        if following and index == 0 and start == member.start:
            # The next one is now the first: it stands where this one stood, directly behind the bracket.
            cuts.append((len(text[: following[0].start].rstrip(WHITESPACE)), following[0].start))
    elif index and (comma := container.members[index - 1].comma) is not None:
        cuts.append((comma, comma + 1))
    for cut_start, cut_end in sorted(cuts, reverse=True):
        text = text[:cut_start] + text[cut_end:]
    return text


def is_made_around(text: str, container: Node) -> bool:
    """Whether a container was made for its one member: it holds nothing else, and `append` put the member on a line."""
    if len(container.members) != 1:
        return False
    member = container.members[0]
    before, behind = text[container.start + 1 : member.start], text[member.end : container.end - 1]
    return bool(before) and not (before + behind).strip(WHITESPACE)
