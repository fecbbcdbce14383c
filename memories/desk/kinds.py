"""What a kind of item on the desk has to offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import QuerySet

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
    kind, pk, seen = text.split("-")
    return kind, Pick(read_id(pk), tuple(map(read_id, seen.split("."))))


def read_id(text: str) -> int:
    """Parse the id of a row, which a database can take as a parameter. Raises ValueError."""
    if len(text) > MOST_DIGITS or not text.isdecimal():
        raise ValueError(f"{text[:MOST_DIGITS]} is not the number of a record.")
    return int(text)
