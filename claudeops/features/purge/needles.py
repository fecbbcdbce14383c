"""Find texts wherever they stand, whole or cut short, and put a fixed mark in their place. Pure.

A text is found in any case, with any white space between its words, and as JSON or HTML escapes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from memories.capture.text import fold
from memories.lifecycle.forgotten import MARK

SHORTEST = 8
"""A shorter text stands in many others that have nothing to do with it: it is looked for as a whole word."""
BEFORE_WORD = r"(?:(?<!\w)|(?<=\\[nrtfv])|(?<=\\u00[01ab][0-9a-f])|(?<=\\u20[0-9a-f][0-9a-f]))"
AFTER_WORD = r"(?!\w|\\+u00[c-f][0-9a-f])"
"""What is no letter or an escape of something else. Scripts of WITHOUT_BLANKS have no such boundaries."""
WITHOUT_BLANKS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")
EXAMPLES, AROUND = 20, 60
"""So many places of a short text are shown before it is removed, with so many characters on both sides."""
HEAD = 24
"""Characters of the beginning of a text by which a copy that was cut short is known."""
FEW = 25
"""So many texts are looked for one by one; more of them by the words of what is read."""
MOST_WORDS = 2

SPACE = r"(?:\s|\\+[nrtfv]|\\+u00[01a][0-9a-f]|&nbsp;)+"
ESCAPED = {"'": r"&#x27;|&#39;|\\*'", '"': r'&quot;|\\*"', "<": "&lt;|<", ">": "&gt;|>", "&": "&amp;|&", "\\": r"\\+"}
CUT = re.compile(r"\s*(?:…|\.\.\.|\\+u2026|&hellip;)")
WORD = re.compile(r"[a-z0-9]{3,}")
TOKENS = re.compile(r"\\+u[0-9a-f]{4}|\\+[nrtfv]|([a-z0-9]{3,})")
"""The words of a text; what an escape ends with is no part of one."""

Span = tuple[int, int]


class Needle:
    """One text to find, folded to one line."""

    def __init__(self, text: str) -> None:
        self.text = fold(text)
        self.head = self.text[:HEAD].rstrip()
        lower = _ascii_lower(self.head)
        # The longest words of its beginning: each copy has them, in a database as well. () when it has none.
        self.words = sorted(set(WORD.findall(lower)), key=lambda word: (-len(word), word))[:MOST_WORDS]
        inner = [word for part in lower.split(" ")[1:-1] for word in WORD.findall(part)]
        # Its longest word that has other words of it on both sides; "" when there is none.
        self.inner_word = max(inner, key=len, default="")

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], re.Pattern[str], list[re.Pattern[str]]]:
        """The whole text, its head, and each character behind that."""
        units = [SPACE if char == " " else _unit(char) for char in self.text]
        before, after = (
            edge if len(self.text) < SHORTEST and _has_boundary(char) else ""
            for edge, char in ((BEFORE_WORD, self.text[:1]), (AFTER_WORD, self.text[-1:]))
        )
        start = len(self.head)
        wanted = (f"{before}{''.join(units)}{after}", "".join(units[:start]), *units[start:])
        whole, head, *rest = (re.compile(pattern, re.IGNORECASE) for pattern in wanted)
        return whole, head, rest

    def spans(self, text: str, *, cut_at: int | None = None) -> Iterator[Span]:
        """Yield where it stands. With `cut_at` a text of that length was cut at its end."""
        whole, head, rest = self.patterns
        starts = set()
        for match in whole.finditer(text):
            starts.add(match.start())
            yield match.span()
        for match in head.finditer(text) if len(self.text) > HEAD else ():
            if match.start() in starts:
                continue
            at = match.end()
            for unit in rest:
                if (more := unit.match(text, at)) is None:
                    break
                at = more.end()
            if CUT.match(text, at) or (cut_at is not None and at == len(text) >= cut_at):
                yield match.start(), at


class Needles:
    """Texts to find. Those shorter than SHORTEST are left out, unless `short` says that they are meant, too.

    `query` is one of the texts that is meant in any case. Of a short one `examples` get the places in columns.
    """

    def __init__(self, texts: Iterable[str], *, short: bool = False, query: str = "") -> None:
        folded = sorted({fold(text) for text in texts} - {""}, key=lambda text: (-len(text), text))
        self.all = [Needle(text) for text in folded if short or len(text) >= SHORTEST or text == fold(query)]
        self.too_short = len(folded) - len(self.all)
        self.shows_examples = 0 < len(fold(query)) < SHORTEST
        self.examples: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.all)

    @property
    def searched_by_words(self) -> list[list[str]] | None:
        """For a database: the words that a row must have, for each text; None when it must read all rows."""
        word_lists = [needle.words for needle in self.all]
        return word_lists if len(word_lists) <= FEW and all(word_lists) else None

    @cached_property
    def _by_word(self) -> dict[str, list[Needle]]:
        by_word: dict[str, list[Needle]] = {}
        for needle in self.all:
            by_word.setdefault(needle.inner_word, []).append(needle)
        return by_word

    def _possible(self, lower: str) -> list[Needle]:
        needles = self.all
        if len(needles) > FEW:
            named = self._by_word.keys() & {"", *TOKENS.findall(lower)}
            needles = [needle for word in named for needle in self._by_word[word]]
        return [needle for needle in needles if all(word in lower for word in needle.words)]

    def may_be_in(self, lines: bytes) -> bool:
        """Whether it is worth a look at each of the lines; False is certain."""
        return b"\\u" in lines or bool(self._possible(lines.lower().decode("latin-1")))

    def spans(self, text: str, *, cut_at: int | None = None) -> list[Span]:
        """Return where any of them stands, in order; those that overlap are one."""
        possible = self._possible(_ascii_lower(text))
        joined: list[Span] = []
        for start, end in sorted(span for needle in possible for span in needle.spans(text, cut_at=cut_at)):
            if joined and start < joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return joined

    def are_in(self, value: Any) -> bool:
        return bool(self.removed(value)[1])

    def removed(self, value: Any, *, cut_at: int | None = None) -> tuple[Any, int]:
        """Return a value of a column (text, or plain data with texts) with marks in their places, and how many."""
        if isinstance(value, str):
            spans = self.spans(value, cut_at=cut_at)
            if spans and self.shows_examples and len(self.examples) < EXAMPLES:
                start, end = spans[0]
                example = fold(value[max(0, start - AROUND) : end + AROUND])
                self.examples += [example] if example not in self.examples else []
            for start, end in reversed(spans):
                value = value[:start] + MARK + value[end:]
            return value, len(spans)
        if isinstance(value, list | tuple):
            items = [self.removed(item) for item in value]
            return type(value)(item for item, _ in items), sum(count for _, count in items)
        if isinstance(value, dict):
            pairs = [(self.removed(name), self.removed(item)) for name, item in value.items()]
            return {name[0]: item[0] for name, item in pairs}, sum(name[1] + item[1] for name, item in pairs)
        return value, 0

    def removed_from_line(self, line: bytes) -> tuple[bytes, int]:
        """Return a line of a file as long as before, with marks in their places, and how many.

        A line that was JSON stays JSON, also where the text was written with escapes that nobody needs.
        """
        text = line.decode("utf-8", "surrogateescape")
        spans = self.spans(text)
        parts, at = [], 0
        for start, end in spans:
            parts += [_bytes(text[at:start]), filled(len(_bytes(text[start:end])))]
            at = end
        new = b"".join([*parts, _bytes(text[at:])])
        parsed = _json(line) if spans or b"\\u" in line else None
        if parsed is None:
            return new, len(spans)
        value, count = self.removed(parsed)
        still = _json(new) if spans else parsed
        if still is not None and not self.are_in(still):
            return new, len(spans)
        body = line.rstrip(b"\r\n")
        replacement = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        if len(replacement) > len(body):  # no JSON of ours is longer than theirs, but for a replaced surrogate
            replacement = b"{}"
        return replacement.ljust(len(body)) + line[len(body) :], count


def filled(length: int) -> bytes:
    """Return a mark of so many bytes."""
    return MARK.encode().ljust(length) if length >= len(MARK) else b"*" * length


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _has_boundary(char: str) -> bool:
    return (char.isalnum() or char == "_") and not WITHOUT_BLANKS.match(char)


def _unit(char: str) -> str:
    if char in ESCAPED:
        return f"(?:{ESCAPED[char]}|\\\\+u{ord(char):04x})"
    if char == "/":
        return r"\\*/"
    if char.isascii():
        return re.escape(char)
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escape = "".join(rf"\\+u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return f"(?:{re.escape(char)}|{escape})"


def _ascii_lower(text: str) -> str:
    """Lower case as a database does that knows ASCII alone."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _json(line: bytes) -> Any:
    """Return the object or array of a line; None when it is none."""
    if not line.lstrip().startswith((b"{", b"[")):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
