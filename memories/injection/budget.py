"""Format memories as the block in a prompt, within its budget.

Pure; no memory can open a heading, fence, tag or marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memories.injection.escape import safe
from memories.taxonomy import GENERAL

CHARACTERS_A_TOKEN = 4
NAME = re.compile(r"\[(?=m\d+\])", re.IGNORECASE)
LONGEST_LINE = 600
"""Characters of an observation that go into a prompt."""


@dataclass(frozen=True, slots=True)
class Line:
    """One memory to choose from: `service` is None for general, `confidence` 0..1."""

    memory_id: int
    service: str | None
    category: str
    observation: str
    confidence: float

    @property
    def group(self) -> str:
        return safe(self.service or GENERAL)

    @property
    def text(self) -> str:
        return f"- [{safe(self.category)}] {cut(safe(self.observation))} (confidence: {shown(self.confidence)})"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The lines that fit, in the order of choice, the first that did not fit, the text and its tokens."""

    lines: list[Line] = field(default_factory=list)
    first_left_out: Line | None = None
    text: str = ""
    tokens: int = 0


def tokens(text: str) -> int:
    """Estimate tokens as characters / 4, rounded up."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


def cut(text: str) -> str:
    if len(text) <= LONGEST_LINE:
        return text
    return text[: LONGEST_LINE - 2].rstrip() + " …"


def named_line(category: str, observation: str, memory_id: int) -> str:
    """Format a memory as a line that ends with its id, by which an agent names what it used."""
    return f"- [{safe(category)}] {NAME.sub('(', cut(safe(observation)))} [m{memory_id}]"


def shown(confidence: float) -> str:
    """Format a confidence with one decimal, or two where needed: 0.9, 0.75, 1.0."""
    text = f"{confidence:.2f}"
    return text.removesuffix("0")


def header(included: int, eligible: int, count: int) -> str:
    """The heading of the block; `count` is the tokens of the whole block."""
    memories = "1 memory" if eligible == 1 else f"{eligible:,} memories"
    some = memories if included == eligible else f"{included:,} of {memories}"
    return f"## Operational Memory ({some}, ~{count:,} tokens)"


def choose(lines: Iterable[Line], budget: int, *, eligible: int, after: Sequence[Line] = ()) -> Chosen:
    """Take `lines` in order until the block, with headings, would exceed `budget` tokens.

    Those of `after`, which fit, are in it already. `eligible` is the total. Stops at the first that does not fit, so
    that no memory of lower confidence replaces one of higher.
    """
    chosen = list(after)
    groups = {line.group for line in after}
    # Characters below the header.
    body = sum(1 + len(line.text) for line in after) + sum(2 + len(f"### {group}") for group in groups)
    first_left_out = None
    for line in lines:
        eligible = max(eligible, len(chosen) + 1)  # a memory may have been added since they were counted
        added = 1 + len(line.text)
        if line.group not in groups:
            added += 2 + len(f"### {line.group}")
        if _total(body + added, len(chosen) + 1, eligible) > budget:
            first_left_out = line
            break
        chosen.append(line)
        groups.add(line.group)
        body += added
    if not chosen:
        return Chosen(first_left_out=first_left_out)
    count = _total(body, len(chosen), eligible)
    text = "\n".join([header(len(chosen), eligible, count), *_body(chosen)])
    return Chosen(chosen, first_left_out, text, count)


def _total(body: int, included: int, eligible: int) -> int:
    """Tokens of a block with `body` characters below the header. The header contains the number itself."""
    count = 0
    while True:
        total = -(-(len(header(included, eligible, count)) + body) // CHARACTERS_A_TOKEN)
        if total == count:
            return count
        count = total  # it only grows, by the digits of the number, so the loop ends


def _body(chosen: list[Line]) -> list[str]:
    """Group by service in alphabetical order, general last; within a group, keep the order of choice."""
    groups: dict[str, list[Line]] = {}
    for line in chosen:
        groups.setdefault(line.group, []).append(line)
    rows: list[str] = []
    for group in sorted(groups, key=lambda name: (name == GENERAL, name)):
        rows += ["", f"### {group}", *(line.text for line in groups[group])]
    return rows
