"""What the next prompt would say after a decision: the memory's line between its neighbours in the block."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from memories.injection.budget import Line
from memories.injection.ops import AsIf, budget_for, build
from memories.injection.windows import windowed
from memories.models import Memory
from memories.taxonomy import KNOWLEDGE, OPS


@dataclass(frozen=True, slots=True)
class PromptLine:
    """A line of the block, `place` counted from 1. `kind` is same, new, or gone (which has no place)."""

    place: int | None
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class NextPrompt:
    """The lines around the memory, or why there are none. `tokens` of `budget` is the size of the whole block."""

    lines: tuple[PromptLine, ...]
    tokens: int
    budget: int
    why_not: str = ""


def next_prompt(memory: Memory, *, instead_of: Memory | None = None) -> NextPrompt:
    """Return the lines around `memory` as if it were approved and `instead_of` were superseded.

    The block is the one of a session without an agent in the memory's project, without a task. Writes nothing.
    """
    budget = budget_for()
    why = "It waits for its own approval." if instead_of and memory.waits else _never_injected(memory)
    if why:
        return NextPrompt((), 0, budget, why)
    gone = frozenset({instead_of.pk}) if instead_of else frozenset()
    block = build(budget=budget, project_id=memory.project_id, as_if=AsIf((memory,), gone))
    lines = block.text.split("\n")
    own = _line(memory)
    if own not in lines:
        why = f"The budget of {budget:,} tokens is full with memories of higher confidence."
        return NextPrompt((), block.tokens, budget, why)
    place = lines.index(own)
    found = [PromptLine(place + 1, own, "new")]
    if instead_of is not None:
        found.insert(0, PromptLine(None, _line(instead_of), "gone"))
    if before := _neighbour(lines[:place][::-1]):
        found.insert(0, PromptLine(place - before + 1, lines[place - before], "same"))
    if after := _neighbour(lines[place + 1 :]):
        found.append(PromptLine(place + after + 1, lines[place + after], "same"))
    return NextPrompt(tuple(found), block.tokens, budget)


def _never_injected(memory: Memory) -> str:
    if memory.taxonomy == KNOWLEDGE.slug:
        return "It is told to the sessions whose task it matches, in a block of its own."
    if memory.taxonomy != OPS.slug:
        return f"Memories of the taxonomy {memory.taxonomy} are in no prompt yet."
    if not memory.active:
        return "It is inactive: it comes into prompts when a person reactivates it."
    if memory.confidence < (OPS.injected_from or 0.0):
        return f"Its confidence is below {OPS.injected_from}."
    if memory.surface and not (window := windowed(memory, timezone.now())).is_open:
        return f"It is {window.reason}."
    return ""


def _line(memory: Memory) -> str:
    return Line(memory.pk, memory.service, memory.category, memory.observation, memory.confidence).text


def _neighbour(lines: list[str]) -> int:
    """Return the distance to the nearest line that is not empty, from 1; 0 when there is none."""
    return next((distance for distance, line in enumerate(lines, start=1) if line.strip()), 0)
