"""Format memories as the block in a prompt, within its budget.

Pure; no memory can open a heading, fence, tag or marker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from memories.injection.escape import safe
from memories.injection.selector import NOTHING, Chosen, Texts, select
from memories.taxonomy import GENERAL

CHARACTERS_A_TOKEN = 4
NAME = re.compile(r"\[(?=m\d+\])", re.IGNORECASE)
LONGEST_LINE = 600
"""Characters of an observation that go into a prompt."""


@dataclass(frozen=True, slots=True)
class Line:
    """One memory to choose from: `service` is None for general, `confidence` 0..1. `text` is as it is told."""

    memory_id: int
    service: str | None
    category: str
    observation: str
    confidence: float
    group: str = field(init=False, compare=False)
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        text = f"- [{safe(self.category)}] {cut(safe(self.observation))} (confidence: {shown(self.confidence)})"
        object.__setattr__(self, "group", safe(self.service or GENERAL))
        object.__setattr__(self, "text", text)


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


def stated(heading: Callable[[int], str], body: str) -> tuple[str, int]:
    """Return the text of a block whose heading states its tokens, and these."""
    count = 0
    while True:
        text = f"{heading(count)}\n{body}"
        if tokens(text) == count:
            return text, count
        count = tokens(text)  # it only grows, by the digits of the number, so the loop ends


def block(lines: Sequence[Line], eligible: int) -> tuple[str, int]:
    """Return the block of operational memories, of which so many are `eligible`, and its tokens."""
    return stated(_header_of(lines, eligible), "\n".join(_body(lines)))


def size(lines: Sequence[Line], eligible: int) -> int:
    """Return the tokens of that block without its text."""
    body = sum(len(f"\n\n### {group}") for group in {line.group for line in lines})
    body += sum(1 + len(line.text) for line in lines)
    heading, count = _header_of(lines, eligible), 0
    while (total := -(-(len(heading(count)) + body) // CHARACTERS_A_TOKEN)) != count:
        count = total  # it only grows, as above
    return count


def _header_of(lines: Sequence[Line], eligible: int) -> Callable[[int], str]:
    return partial(header, len(lines), max(eligible, len(lines)))  # one may have been added since they were counted


def choose(
    lines: Iterable[Line],
    budget: int,
    *,
    eligible: int,
    after: Sequence[Line] = (),
    told: Texts = NOTHING,
    named: int | None = 1,
) -> Chosen[Line]:
    """Select operational memories, `eligible` in all."""
    of_block, of_size = partial(block, eligible=eligible), partial(size, eligible=eligible)
    return select(lines, of_block, size=of_size, budget=budget, after=after, told=told, named=named)


def _body(chosen: Sequence[Line]) -> list[str]:
    """Group by service in alphabetical order, general last; within a group, keep the order of choice."""
    groups: dict[str, list[Line]] = {}
    for line in chosen:
        groups.setdefault(line.group, []).append(line)
    rows: list[str] = []
    for group in sorted(groups, key=lambda name: (name == GENERAL, name)):
        rows += ["", f"### {group}", *(line.text for line in groups[group])]
    return rows
