"""A Markdown file under git: the marks of a merge, its front matter, and the passages that belong together. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    found: list[Passage] = []
    under: list[Heading] = []
    parts: list[Part] = []  # of the passage that is being read
    indents: list[int] = []  # of the items above, in the list that is being read
    is_open = True  # whether the next line goes on in the last part

    def end() -> None:
        nonlocal parts, indents
        if parts:
            found.append(Passage(tuple(parts), tuple(under)))
        parts, indents = [], []

    def has_lead() -> bool:
        return bool(parts) and not parts[0].mark

    for at, (text, kind) in enumerate(zip(texts, classes, strict=True)):
        item = None if kind else ITEM.match(text)
        if kind == CODE:
            if parts and not parts[-1].is_code:
                parts.append(Part(at, "", parts[-1].depth, is_code=True))
            is_open = False
        elif kind or not text.strip():
            is_open = is_open and bool(kind)
        elif heading := HEADING.match(text):
            end()
            level = len(heading[1])
            under = [*(one for one in under if one.level < level), Heading(at, level, heading[2])]
        elif RULE.match(text):
            end()
        elif item:
            indent = len(item[1].expandtabs(4))
            indents = [one for one in indents if one < indent]
            if not indents and parts and not has_lead():
                end()
            if has_lead() and not any(one.mark for one in parts) and parts[-1].is_code:
                end()  # code stands between a paragraph and the list
            depth = len(indents) + has_lead()
            indents.append(indent)
            parts.append(Part(at, item[3], depth, item[2] if item[2][0].isdigit() else "-"))
            is_open = True
        elif parts and not parts[-1].is_code and is_open and (not parts[-1].mark or text[:1].isspace()):
            last = parts[-1]
            parts[-1] = replace(last, text=f"{last.text} {text.strip()}")
        elif indents and (is_open or text[:1].isspace()):
            parts.append(Part(at, text.strip(), parts[-1].depth))
            is_open = True
        else:
            end()
            parts.append(Part(at, text.strip()))
            is_open = True
    end()
    return found
