"""What a kind of item in the inbox has to offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import QuerySet
from django.utils import timezone

from memories.injection.budget import Line
from memories.injection.ops import AsIf, budget_for, build
from memories.injection.windows import windowed
from memories.models import Memory
from memories.taxonomy import KNOWLEDGE, OPS

MOST_DIGITS = 18
"""Each number of so many digits fits into 64 bits."""


@dataclass(frozen=True, slots=True)
class Pick:
    """An item as a person saw it: `seen` are the ids of the latest changes of its memories, or of its last decision."""

    pk: int
    seen: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """An item in the queue."""

    kind: str
    pk: int
    seen: tuple[int, ...]
    title: str
    note: str

    @property
    def key(self) -> str:
        return f"{self.kind}-{self.pk}"

    @property
    def pick(self) -> str:
        """The value that names the item and its state in a form; `read_pick` reads it."""
        return f"{self.key}-{'.'.join(map(str, self.seen))}"


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer: its button, its key, and what is said afterwards ("4 approved").

    The first decision of a kind is the one that the next prompt is shown for; `then` says so ("when it is approved").
    """

    name: str
    label: str
    key: str
    done: str
    is_main: bool = False
    then: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """`undo` names what was done for `Kind.undo`, empty when nothing was; `refused` says why items were left."""

    count: int
    undo: str
    refused: tuple[str, ...] = ()


class Kind(Protocol):
    """A kind of item. `decide` and `undo` raise MemoriesError; what others decided meanwhile is refused in words."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def icon(self) -> str: ...

    @property
    def template(self) -> str: ...

    @property
    def permission(self) -> str:
        """The permission that its decisions need."""
        ...

    @property
    def decisions(self) -> tuple[Decision, ...]: ...

    def waiting(self) -> QuerySet[Any]:
        """Return all that waits, by a condition that an index serves."""
        ...

    def rows(self, limit: int) -> list[Row]: ...

    def item(self, pk: int) -> dict[str, Any] | None:
        """Return the context of `template` for an item that waits, with its queue row as `row`.

        `decisions`, if there are any, stand instead of the kind's: the same by name, with labels and keys of their own.
        """
        ...

    def decide(self, decision: str, picks: Sequence[Pick], *, by: str, text: str | None = None) -> Decided: ...

    def undo(self, token: str, *, by: str) -> str:
        """Undo what `decide` did and return a sentence about it."""
        ...


def read_pick(text: str) -> tuple[str, Pick]:
    """Parse `Row.pick` to the kind's name and the pick. Raises ValueError."""
    kind, pk, changes = text.split("-")
    return kind, Pick(read_id(pk), tuple(map(read_id, changes.split("."))))


def read_id(text: str) -> int:
    """Parse the id of a row, which a database can take as a parameter. Raises ValueError."""
    if len(text) > MOST_DIGITS or not text.isdecimal():
        raise ValueError(f"{text[:MOST_DIGITS]} is not the number of a record.")
    return int(text)


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
    prompt_lines = [PromptLine(place + 1, own, "new")]
    if instead_of is not None:
        prompt_lines.insert(0, PromptLine(None, _line(instead_of), "gone"))
    if before := _neighbour(lines[:place][::-1]):
        prompt_lines.insert(0, PromptLine(place - before + 1, lines[place - before], "same"))
    if after := _neighbour(lines[place + 1 :]):
        prompt_lines.append(PromptLine(place + after + 1, lines[place + after], "same"))
    return NextPrompt(tuple(prompt_lines), block.tokens, budget)


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
