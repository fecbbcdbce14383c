"""A Markdown file under git: the marks of a merge, its front matter, and the passages that belong together. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

MARK = re.compile(r"(<{7,}|\|{7,}|={7,}|>{7,})(?: .*)?\Z", re.DOTALL)
"""A line that git puts between two sides: seven signs, more in a merge of merges. Others write such lines, too."""
KEY = re.compile(r"""["'\w][^:=]*(?::(?:\s|\Z)|\s*=)|\[""")
"""How the first line of data begins, in YAML and in TOML."""


def conflict_line(texts: Sequence[str], hidden: Sequence[object]) -> int | None:
    """Return the line (from 0) at which a merge conflict begins that nobody has resolved; None without one.

    `texts` are lines without their ends, `hidden` says which stand in a code fence or a comment: marks that all stand
    there are an example. A line of `=` alone underlines a heading; the first or the last mark alone was left behind.
    """
    begin, is_shown = None, False
    for at, text in enumerate(texts):
        mark = MARK.match(text.removeprefix("\ufeff"))
        sign = mark[1][0] if mark else " "
        if sign in "<>" and not hidden[at]:
            return at if begin is None else begin
        if sign == "<":
            begin, is_shown = at, False
        elif begin is not None and sign in "|=":
            is_shown = is_shown or not hidden[at]
        elif begin is not None and sign == ">":
            if is_shown:
                return begin
            begin = None
    return None


def front_matter(texts: Sequence[str]) -> int:
    """Return how many lines at the beginning are front matter, in YAML or TOML, its delimiters included.

    A rule may begin a document as well: what follows is data when its first line is a key.
    """
    first = texts[0].removeprefix("\ufeff").rstrip() if texts else ""
    closing = {"---": ("---", "..."), "+++": ("+++",)}.get(first, ())
    end = next((at for at, text in enumerate(texts) if at and text.rstrip() in closing), 0)
    inside = [text for text in texts[1:end] if text.strip() and not text.lstrip().startswith("#")]
    is_data = not inside or KEY.match(inside[0]) is not None
    return end + 1 if end and is_data and not any(map(MARK.match, inside)) else 0


HEADING = re.compile(r" {0,3}(#{1,6})\s+(\S.*?)\s*#*\s*\Z", re.DOTALL)
ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])\s+(\S.*)\Z", re.DOTALL)
RULE = re.compile(r" {0,3}([-*_])\s*(?:\1\s*){2,}\Z")
CODE = "code"
"""The class of a line in a code fence; lines of other classes, such as comments, are not there for a reader."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a passage that begins in line `at` (from 0). `mark` is "-" or "1." of an item, "" of other text.

    `depth` counts the levels above it: an item below a lead-in has 1, one below that 2. Code has no text.
    """

    at: int
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
                self.parts.append(Part(at, "", self.parts[-1].depth, is_code=True))
            self.is_open = False
        elif kind or not text.strip():
            self.is_open = self.is_open and bool(kind)
        elif heading := HEADING.match(text):
            self.end()
            level = len(heading[1])
            self.under = [*(one for one in self.under if one.level < level), Heading(at, level, heading[2])]
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
        self.parts.append(Part(at, text, len(self.indents) + has_lead, mark))
        self.indents.append(indent)
        self.is_open = True

    def _text(self, at: int, text: str) -> None:
        last = self.parts[-1] if self.parts and not self.parts[-1].is_code else None
        is_indented = text[:1].isspace()
        if last and self.is_open and (not last.mark or is_indented):
            self.parts[-1] = replace(last, text=f"{last.text} {text.strip()}")
        elif self.indents and (self.is_open or is_indented):
            self.parts.append(Part(at, text.strip(), self.parts[-1].depth))
        else:
            self.end()
            self.parts.append(Part(at, text.strip()))
        self.is_open = True
