"""Select an agent's own words: lines and markers that stand in plain text. Pure; knows no marker but its opening.

Markdown is parsed with markdown-it: code, HTML, quotations (with their lazy continuation) and tables are another's
words, and so is what stands within quotation marks or in the middle of a sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

LINE_BREAK = re.compile(r"\r\n|\n|\r")
OPENING = re.compile(r"\[(?:MEMORY|EVENT|COOLDOWN):")
LONGEST = 100_000
"""Characters of a text that is parsed. In a longer one no marker is read."""
MOST_LINES = 10_000
LONGEST_PARAGRAPH = 20_000
"""Characters of a paragraph whose markers are read."""
LONGEST_BEFORE = 500
"""Characters of a line that may stand before a marker."""

# CommonMark's fence, also in list items at any depth and with any indentation: models indent code under list items.
FENCE = re.compile(r"^(\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)*)(`{3,}|~{3,})(.*)$", re.DOTALL)
IN_FENCE = "***"
"""Stands for a line that is in a fence: like a fence, a thematic break ends a paragraph and no HTML block."""

# What may stand before a marker on its line: list bullets, emphasis and other signs (no quotation mark, bracket or
# pipe), a label or a clause of the agent's own, a complete sentence, another marker's bracket.
LIST = re.compile(r"\s*(?:(?:[-*+•]|\d{1,9}[.)])\s+)*(?:\[[ xX]\]\s+)?")
BEFORE = re.compile(
    r"[^\w\"'`“”„«»‹›「」『』‘’<>()\[\]{}|\\]*"
    r"|[^\w\s]{0,9}\s*(?:(?:I|we)\s+)?(?:also\s+|now\s+|new\s+|to\s+)?"
    r"(?:not(?:e|ed|ing)|record(?:ed|ing)?|remember|stor(?:e|ing)|finding|result|memor(?:y|ies)|events?|cooldown)\s*:?"
    r"|(?:[^:]|:(?!\s))*[.!?…。！？]|(?:\[[A-Z]{5,8}:[^\[\]]{0,200}\]\s*(?:or|and|,)?\s*)+",
    re.IGNORECASE,
)
QUOTES = {sign: family for family in ('"“”„‟', "'‘’‚", "«»‹›", "「」", "『』") for sign in family}
TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]{0,40})(?![A-Za-z0-9-])")
QUOTING_TAGS = frozenset({"blockquote", "q", "pre", "code", "samp", "kbd", "script", "style", "textarea", "template"})
"""Elements that hold another's words also when nothing closes them."""

_BLOCKS = MarkdownIt("commonmark").enable("table").disable(["reference", "inline", "text_join"])
_INLINES = MarkdownIt("commonmark").disable(["autolink", "emphasis", "entity", "image", "link", "balance_pairs"])
OTHERS = frozenset({"blockquote_open", "code_block", "fence", "html_block", "table_open"})


@dataclass(frozen=True, slots=True)
class Place:
    """A marker of the agent's own: the line's number from 1, the offset of its bracket, the line."""

    number: int
    start: int
    line: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The agent's own lines, numbered from 1, and markers; all other lines are in `skipped`, to be counted."""

    lines: tuple[tuple[int, str], ...]
    markers: tuple[Place, ...] = ()
    skipped: tuple[str, ...] = ()


@lru_cache(maxsize=2)  # several readers, one after the other, ask for the same text
def accepted_lines(text: str) -> Accepted:
    """Sort the lines of `text`. A line with a marker's opening, none of which is the agent's own, is skipped."""
    lines = LINE_BREAK.split(text)
    openings = _places(lines, OPENING)
    others, own = _others(lines, openings) if _is_parsed(text, lines) else (set(), [])
    own = [(number, start) for number, start in own if may_precede(lines[number], start)]
    skipped = others | ({number for number, _ in openings} - {number for number, _ in own})
    return Accepted(
        tuple((number + 1, line) for number, line in enumerate(lines) if number not in skipped),
        tuple(Place(number + 1, start, lines[number]) for number, start in own),
        tuple(line for number, line in enumerate(lines) if number in skipped),
    )


def in_plain_text(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Return what `pattern` matches in the agent's own plain text, anywhere in a sentence but not in quotation marks.

    The pattern must not match quotation marks or line breaks.
    """
    lines = LINE_BREAK.split(text)
    places = _places(lines, pattern)
    if not places or not _is_parsed(text, lines):
        return []
    matches = (pattern.match(lines[number], start) for number, start in _others(lines, places, pattern)[1])
    return [match[0] for match in matches if match]


def _places(lines: Sequence[str], pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    return [(number, match.start()) for number, line in enumerate(lines) for match in pattern.finditer(line)]


def _others(
    lines: Sequence[str], openings: list[tuple[int, int]], pattern: re.Pattern[str] = OPENING
) -> tuple[set[int], list[tuple[int, int]]]:
    """Return the numbers (from 0) of the lines that are another's words, and the openings in plain text."""
    others, shown = _fenced_or_quoted(lines)
    tokens = _BLOCKS.parse("\n".join(shown))
    for token in tokens:
        if token.type in OTHERS and token.map:
            others.update(range(*token.map))
    in_element = _in_elements(tokens)
    for place in in_element:
        if place_of := tokens[place].map:
            others.update(range(*place_of))
    own: list[tuple[int, int]] = []
    for place, token in enumerate(tokens):
        if token.type != "inline" or not token.map or place in in_element or not pattern.search(token.content):
            continue
        first, last = (bisect_left(openings, (line, -1)) for line in token.map)
        expected = [opening for opening in openings[first:last] if shown[opening[0]] != IN_FENCE]
        plain = list(_in_plain_text(token.content, pattern))
        if len(plain) == len(expected):  # fails closed where the parser left something out
            own += [
                (number, start)
                for (number, start), is_plain in zip(expected, plain, strict=True)
                if is_plain and number not in others
            ]
    return others, own


def _is_parsed(text: str, lines: Sequence[str]) -> bool:
    return len(text) <= LONGEST and len(lines) <= MOST_LINES


def may_precede(line: str, start: int) -> bool:
    """Whether what stands on the line before `start` leaves the rest the agent's own: nothing, a label, a sentence."""
    if start > LONGEST_BEFORE:
        return False
    before = line[:start]
    listed = LIST.match(before)
    return bool(BEFORE.fullmatch(before[listed.end() if listed else 0 :].rstrip(" \t*_")))


def _fenced_or_quoted(lines: Sequence[str]) -> tuple[set[int], list[str]]:
    """Return the lines in fences and those that begin with `>`, and the lines as the parser gets them.

    Fences are found here, because models do not indent the code of a list item as CommonMark asks for. An unclosed one
    reaches to the end.
    """
    others: set[int] = set()
    shown: list[str] = []
    fence = ""
    for number, line in enumerate(lines):
        match = FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence:
            if match and not match[1].strip() and match[2].startswith(fence) and not match[3].strip():
                fence = ""
        elif match and not ("`" in match[2] and "`" in match[3]):  # ```code``` on one line opens nothing
            fence = match[2]
        else:
            if line.lstrip().startswith(">"):
                others.add(number)
            shown.append(line)
            continue
        others.add(number)
        indented = match[1] if match else line[: len(line) - len(line.lstrip())]
        shown.append(indented + IN_FENCE)
    return others, shown


def _in_elements(tokens: Sequence[Token]) -> set[int]:
    """Return the places of the tokens between an HTML element's start and end tag, which may be in other blocks."""
    tags = [
        (place, bool(tag[1]), tag[2].lower())
        for place, token in enumerate(tokens)
        if token.type in ("inline", "html_block")
        for tag in TAG.finditer(token.content)
    ]
    closed = {name: place for place, closes, name in tags if closes}
    places: set[int] = set()
    until = -1
    for place, closes, name in tags:
        if not closes:
            end = closed.get(name, len(tokens) if name in QUOTING_TAGS else -1)
            places.update(range(max(place, until) + 1, end))
            until = max(until, end - 1)
    return places


@lru_cache(maxsize=4)
def _signs(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(f"{pattern.pattern}|[{''.join(QUOTES)}]")


def _in_plain_text(paragraph: str, pattern: re.Pattern[str]) -> Iterator[bool]:
    """For each opening of a paragraph say whether it is in plain text: not in code, a tag or quotation marks."""
    if len(paragraph) > LONGEST_PARAGRAPH:
        yield from (False for _ in pattern.finditer(paragraph))
        return
    (inline,) = _INLINES.parseInline(paragraph)
    children = inline.children or []
    closed = {tag[2].lower(): n for n, child in enumerate(children) for tag in _tags(child) if tag[1]}
    within = -1
    quote = before = ""
    signs = _signs(pattern)
    for n, child in enumerate(children):
        if child.type in ("code_inline", "html_inline"):
            within = max([within, *(closed.get(tag[2].lower(), -1) for tag in _tags(child) if not tag[1])])
            yield from (False for _ in pattern.finditer(child.content))
            before = "x"
            continue
        text = child.content or "\n"
        for sign in signs.finditer(text):
            if len(sign[0]) > 1:
                yield not quote and n > within
                continue
            last = text[sign.start() - 1] if sign.start() else before
            if quote:
                quote = "" if QUOTES[sign[0]] == quote and not _apostrophe(text, sign.start()) else quote
            elif sign[0] in "«»‹›「『" or not last or not (last.isalnum() or last in ".,;!?)]}%…"):
                quote = QUOTES[sign[0]]
        before = text[-1]


def _tags(child: Token) -> list[re.Match[str]]:
    return list(TAG.finditer(child.content)) if child.type == "html_inline" else []


def _apostrophe(text: str, place: int) -> bool:
    return text[place] in "'’" and text[place + 1 : place + 2].isalnum()
