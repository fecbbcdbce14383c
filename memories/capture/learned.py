"""Find what an agent says that it learned: blocks, JSON and phrases in its answer. Pure; `learned` is the door.

Another's words (quotations, code, tables, HTML) are not read, as for markers. JSON may be the whole of a fence: it says
by its key what it is. What is not taken has a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from markdown_it import MarkdownIt

from memories.capture.lines import LONGEST, QUOTING_TAGS, accepted_lines, may_precede
from memories.capture.statement import Statement
from memories.capture.text import fold
from memories.taxonomy import AGENT

Form = Literal["block", "remember", "memories", "phrase"]

SHORTEST_CONTENT, LONGEST_CONTENT = 6, 100
"""Characters of one learning (DESIGN section 4: 5 < length ≤ 100)."""
MOST = 50
"""Learnings of one answer; the others are refused."""
OTHER = "learning"

SIGN = re.compile(r"#|remember|memories|:", re.IGNORECASE)
SAYS_SO = re.compile(r"^#{1,6} ?(?:add to memory|memorize|remember):|\{\s?\"(?:remember|memories)\"", re.I | re.M)
# Of lines without the blanks around them.
HEADER = re.compile(r"#{1,6}\s?\**\s?(?:add to memory|memorize|remember)\s?\**:?\**\s?:?\Z", re.IGNORECASE)
FIELD = re.compile(r"(?:[-*+]\s+)?\**\s?(type|content)\s?\**\s?:\s?\**(.*)\Z", re.IGNORECASE)
CLOSING = re.compile(r"#{1,6}\Z")
LONGEST_LINE = 2_000
"""Characters of a line that is read as a part of a block, or as a phrase."""
PLACEHOLDER = re.compile(r"<[^<>]{1,80}>\Z|\.{3}\Z|…\Z")
PHRASE = re.compile(
    r"(?:[-*+]\s+)?\**(discovered pattern|best practice|mistake|architecture)\**\s?:\s?\**\s?(.+)\Z",
    re.IGNORECASE,
)
PHRASES = {
    "discovered pattern": "pattern",
    "best practice": "guideline",
    "mistake": "mistake",
    "architecture": "architecture",
}
KEYS: dict[str, Form] = {"remember": "remember", "memories": "memories"}
KEY = re.compile(r"\"(?:remember|memories)\"", re.IGNORECASE)
OBJECT = re.compile(r"^[ \t]{0,8}\{|\{\s{0,8}\"(?:remember|memories)\"", re.IGNORECASE | re.MULTILINE)
"""Where an object may begin: at the beginning of a line, or with one of the keys."""
MOST_OBJECTS = 10
JSON_FENCES = frozenset({"", "json", "jsonc", "json5"})
"""The languages of a fence that is read."""
QUOTING = re.compile(rf"<(?:{'|'.join(sorted(QUOTING_TAGS))})\b", re.IGNORECASE)
"""An element that quotes may hold fences too: beside one no fence is read."""

_DECODER = json.JSONDecoder()
_FENCES = MarkdownIt("commonmark").disable(["inline", "reference", "text_join"])


@dataclass(frozen=True, slots=True)
class Learning:
    """One thing that an agent learned; `category` is of the agent taxonomy. `text` is as written, for the gate."""

    form: Form
    category: str
    text: str

    @property
    def statement(self) -> Statement:
        return Statement(self.category, self.text, taxonomy=AGENT.slug)


@dataclass(frozen=True, slots=True)
class Refused:
    """What was not taken, and why, for a person."""

    form: Form
    text: str
    reason: str


@dataclass(slots=True)
class Learned:
    """What an answer brings. `replaces`: it states the whole memory; what it leaves out is to be deactivated."""

    found: list[Learning] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    replaces: bool = False


def learned(answer: str, *, phrases: bool = False) -> Learned:
    """Return what `answer` says was learned, each once. `phrases`: the four legacy phrases count too. Never raises."""
    result = Learned()
    if not SIGN.search(answer):
        return result
    if len(answer) > LONGEST:
        if SAYS_SO.search(answer):
            result.refused.append(Refused("block", answer[:100], f"the answer is longer than {LONGEST:,} characters"))
        return result
    accepted = accepted_lines(answer)
    lines = [(number, line.strip()) for number, line in accepted.lines if len(line) <= LONGEST_LINE]
    _blocks(lines, result)
    skipped = sum(1 for line in accepted.skipped if len(line) <= LONGEST_LINE and HEADER.match(line.strip()))
    if skipped:
        result.refused.append(
            Refused("block", "", f"{skipped} block{'s' * (skipped > 1)} in code or a quotation: another's words")
        )
    _json(answer, accepted.lines, result)
    if phrases:
        for _, line in lines:
            if match := PHRASE.match(line):
                _take(result, "phrase", PHRASES[match[1].lower()], match[2].strip("* "))
    return result


def _blocks(lines: Sequence[tuple[int, str]], result: Learned) -> None:
    """Read the blocks: the header, Type and Content, up to a line with # alone, a blank line after the content, or
    a line that is another's words."""
    place = 0
    while place < len(lines):
        number, line = lines[place]
        place += 1
        if HEADER.match(line) is None:
            continue
        fields: dict[str, str] = {}
        while place < len(lines) and lines[place][0] == number + 1:
            number, line = lines[place]
            if HEADER.match(line) or (not line and "content" in fields):
                break
            place += 1
            if CLOSING.match(line):
                break
            if match := FIELD.match(line):
                fields.setdefault(match[1].lower(), match[2].strip("* "))
        if "content" not in fields:
            result.refused.append(Refused("block", "", "the block has no line Content: …"))
            continue
        _take(result, "block", fields.get("type", ""), fields["content"])


def _take(result: Learned, form: Form, kind: str, text: str) -> None:
    first_line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    content = fold(first_line)
    if PLACEHOLDER.match(content) or PLACEHOLDER.match(kind.strip()):
        result.refused.append(Refused(form, content[:LONGEST_CONTENT], "a placeholder of the form, not a learning"))
    elif not SHORTEST_CONTENT <= len(content) <= LONGEST_CONTENT or len(first_line) > LONGEST_LINE:
        how = "shorter than 6" if len(content) < SHORTEST_CONTENT else "longer than 100"
        result.refused.append(Refused(form, content[:300], f"{how} characters"))
    elif len(result.found) >= MOST:
        result.refused.append(Refused(form, content, f"more than {MOST} learnings in one answer"))
    else:
        plain = fold(kind).strip("[]<>\"'`*. ").lower()
        if all(fold(one.text).lower() != content.lower() for one in result.found):
            result.found.append(Learning(form, plain if plain in AGENT.categories else OTHER, first_line))


def _json(answer: str, lines: Sequence[tuple[int, str]], result: Learned) -> None:
    """Read the JSON objects with one of the keys: a whole fence, or inline in the agent's own lines."""
    if not KEY.search(answer):
        return
    fences = [token for token in _FENCES.parse(answer) if token.type == "fence" and KEY.search(token.content)]
    quoting = QUOTING.search(answer)
    for fence in fences:
        value = _decoded(fence.content.strip(), 0)
        whole = value is not None and value[1] == len(fence.content.strip())
        if value is None or not whole or fence.level or quoting or fence.info.strip().lower() not in JSON_FENCES:
            result.refused.append(Refused("remember", "", "JSON in code or a quotation: another's words"))
        else:
            _from_json(value[0], result)
    text = "\n".join(line for _, line in lines)
    end, remaining = 0, MOST_OBJECTS
    for opening in OBJECT.finditer(text):
        start, remaining = text.index("{", opening.start()), remaining - 1
        if start < end or remaining < 0:
            continue
        begins = text.rfind("\n", 0, start) + 1
        pair = _decoded(text, start)
        if pair is None:
            continue
        end = pair[1]
        if may_precede(text[begins:end], start - begins):
            _from_json(pair[0], result)
        else:
            result.refused.append(Refused("remember", "", "JSON within a sentence or a quotation: another's words"))


def _decoded(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    """Return the JSON object at `start` and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return (value, end) if isinstance(value, dict) else None


def _from_json(value: dict[str, Any], result: Learned) -> None:
    for key, entries in value.items():
        form = KEYS.get(key.lower())
        if form is None or entries is None:
            continue
        if not isinstance(entries, list):
            result.refused.append(Refused(form, str(entries)[:100], f"{key} is no list"))
            continue
        result.replaces = result.replaces or form == "memories"
        for entry in entries:
            if isinstance(entry, str):
                _take(result, form, "", entry)
            elif isinstance(entry, dict):
                _take(result, form, _said(entry, "type", "category"), _said(entry, "content", "text", "memory"))
            else:
                reason = f"an entry of {key} is neither a text nor an object"
                result.refused.append(Refused(form, str(entry)[:100], reason))


def _said(entry: dict[str, Any], *names: str) -> str:
    return next((entry[name] for name in names if isinstance(entry.get(name), str)), "")
