"""The lines of a Markdown file: front matter, code, comments, headings, items, and the marks of a merge. Pure.

A file is a person's: what is not edited stays byte for byte.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from claudeops.lib.tracked_file.passages import BELOW, CODE, ITEM, RULE, Heading, Passage, heading_of, passages

LARGEST = 5 * 1024 * 1024
"""Bytes of a file that is read."""
COMMENT, FRONT = "comment", "front"
"""The classes of lines in an HTML comment and in front matter, beside CODE; that of the others is ""."""
UNSEEN = (COMMENT, FRONT)
BREAK = re.compile(r"\r\n|\n|\r")
MARK = re.compile(r"(<{7,}|\|{7,}|={7,}|>{7,})(?: .*)?\Z", re.DOTALL)
"""A line that git puts between two sides: seven signs, more in a merge of merges. Others write such lines, too."""
KEY = re.compile(r"""["'\w][^:=]*(?::(?:\s|\Z)|\s*=)|\[""")
"""How the first line of data begins, in YAML and in TOML."""
FENCE = re.compile(r"\s*(`{3,}(?=[^`]*\Z)|~{3,})")

Line = tuple[str, str]
"""The text of a line, and its end."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item without an indent: its lines from `at` up to `end`, and what stands below it up to `below` (exclusive).

    `text` is that of its own lines, joined by blanks.
    """

    at: int
    end: int
    below: int
    text: str


@dataclass(frozen=True)
class Document:
    """The lines of a file. `bom`: a byte order mark stands before them."""

    lines: tuple[Line, ...] = ()
    bom: bool = False

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the document of a text; any text is one."""
        return cls(tuple(lines_of(text.removeprefix("\ufeff"))), text.startswith("\ufeff"))

    @property
    def text(self) -> str:
        return "\ufeff" * self.bom + "".join(text + end for text, end in self.lines)

    def to_bytes(self) -> bytes:
        return self.text.encode()

    @property
    def size(self) -> int:
        return len(self.to_bytes())

    @property
    def texts(self) -> list[str]:
        return [text for text, _ in self.lines]

    @property
    def line_end(self) -> str:
        return next((end for _, end in self.lines if end), "\n")

    @cached_property
    def classes(self) -> Sequence[str]:
        """Say for each line whether it stands in a fence (CODE), an HTML comment or front matter; "" for none."""
        return _classes(self.texts)

    @cached_property
    def conflict_line(self) -> int | None:
        """Return the line (from 0) at which a merge conflict begins that nobody has resolved; None without one."""
        return _conflict_line(self.texts, self.classes)

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        shown = ((at, text) for at, text in enumerate(self.texts) if not self.classes[at])
        return tuple(heading for at, text in shown if (heading := heading_of(at, text)))

    @cached_property
    def items(self) -> tuple[Item, ...]:
        return tuple(self._items())

    @cached_property
    def passages(self) -> Sequence[Passage]:
        return passages(self.texts, self.classes)

    def put(self, start: int, end: int, lines: Iterable[Line]) -> Self:
        """Return the document with `lines` in place of those from `start` up to `end`."""
        return self.patched([(start, end, lines)])

    def patched(self, blocks: Iterable[tuple[int, int, Iterable[Line]]]) -> Self:
        """Return the document with other lines in place of each block (from, up to, lines); no two of them overlap."""
        lines, at = list[Line](), 0
        for start, end, new in sorted(blocks, key=lambda block: block[:2]):
            lines += [*self.lines[at:start], *new]
            at = end
        return self._with([*lines, *self.lines[at:]])

    def with_lines(self, texts: Sequence[str], before: int | None) -> Self:
        """Return the document with lines before that of number `before` (None: at the end), between blank lines."""
        at = len(self.lines) if before is None else before
        above = [""] if at and self.lines[at - 1][0].strip() else []
        below = [""] if at < len(self.lines) else []
        return self.put(at, at, [(text, self.line_end) for text in (*above, *texts, *below)])

    def without(self, gone: Collection[int]) -> Self:
        return self._with([line for at, line in enumerate(self.lines) if at not in gone])

    def _with(self, lines: Sequence[Line]) -> Self:
        """Return a document of which each line but the last has an end, and the last has one if it had one before."""
        has_end = not self.lines or bool(self.lines[-1][1])
        last = len(lines) - 1
        ended = [(text, (end or self.line_end) if at < last or has_end else "") for at, (text, end) in enumerate(lines)]
        return replace(self, lines=tuple(ended))

    def _items(self) -> Iterator[Item]:
        at = 0
        while at < len(self.lines):
            text = self.lines[at][0]
            item = None if self.classes[at] or RULE.match(text) else ITEM.match(text)
            if item is None or item[1] or item[2][0].isdigit():
                at += 1
                continue
            end, parts = at + 1, [item[3]]
            while end < len(self.lines) and not self.classes[end]:
                text = self.lines[end][0]
                more = None if ITEM.match(text) or RULE.match(text) else BELOW.match(text)
                if more is None:
                    break
                parts.append(more[1])
                end += 1
            yield Item(at, end, self._below(end), " ".join(parts))
            at = end

    def _below(self, at: int) -> int:
        """Return the line behind the indented lines from `at`, between which blank ones may stand."""
        end = at
        while at < len(self.lines):
            text = self.lines[at][0]
            if BELOW.match(text):
                end = at + 1
            elif text.strip():
                break
            at += 1
        return end


def decode(data: bytes) -> str:
    """Return the text of a file; a byte order mark stays in it. Raises ValueError with why it cannot be read."""
    if len(data) > LARGEST:
        raise ValueError(f"it has more than {LARGEST // 1024 // 1024} MB")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError("it is in UTF-16; save it in UTF-8")
    if b"\x00" in data:
        raise ValueError("it holds NUL bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start:,} is not UTF-8") from None


def lines_of(text: str) -> list[Line]:
    lines, start = [], 0
    for match in BREAK.finditer(text):
        lines.append((text[start : match.start()], match[0]))
        start = match.end()
    return [*lines, (text[start:], "")] if start < len(text) else lines


def _conflict_line(texts: Sequence[str], hidden: Sequence[object]) -> int | None:
    """Return where a merge conflict begins; marks that all stand in a code fence or a comment are an example.

    A line of `=` alone underlines a heading; the first or the last mark alone was left behind.
    """
    begin, is_shown = None, False
    for at, text in enumerate(texts):
        mark = MARK.match(text)
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
    first = texts[0].rstrip() if texts else ""
    closing = {"---": ("---", "..."), "+++": ("+++",)}.get(first, ())
    end = next((at for at, text in enumerate(texts) if at and text.rstrip() in closing), 0)
    inside = [text for text in texts[1:end] if text.strip() and not text.lstrip().startswith("#")]
    is_data = not inside or KEY.match(inside[0]) is not None
    return end + 1 if end and is_data and not any(map(MARK.match, inside)) else 0


def _classes(texts: Sequence[str]) -> list[str]:
    """Return the class of each line.

    What is opened and never closed opens nothing: whoever types it has not finished, and the entries below are still
    there.
    """
    classes = [FRONT] * front_matter(texts)
    endless: dict[str, int] = {}  # by character, the shortest opening that nothing below closes
    while len(classes) < len(texts):
        at = len(classes)
        fence = FENCE.match(texts[at])
        opened = fence[1] if fence else "<" if texts[at].lstrip().startswith("<!--") else ""
        end = None
        if opened and endless.get(opened[0], len(opened) + 1) > len(opened):
            end = _closing(texts, at, opened)
            if end is None:
                endless[opened[0]] = len(opened)
        kind = "" if end is None else COMMENT if opened == "<" else CODE
        classes += [kind] * (1 if end is None else end + 1 - at)
    return classes


def _closing(texts: Sequence[str], begin: int, opened: str) -> int | None:
    """Return the line that closes what line `begin` opens."""
    if opened == "<":
        if "-->" in texts[begin].split("<!--", 1)[1]:
            return begin
        return next((at for at in range(begin + 1, len(texts)) if "-->" in texts[at]), None)
    for at in range(begin + 1, len(texts)):
        match = FENCE.match(texts[at])
        if match and match[1].startswith(opened) and not texts[at].strip().strip(opened[0]):
            return at
    return None
