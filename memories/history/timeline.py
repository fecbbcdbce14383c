"""A memory's history as it is shown: what happened, from → to, why, who, when; and then beside now.

Reads change rows; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from claudeops.lib.word_diff import Piece, word_diff
from memories.errors import InvalidMemory
from memories.history.evidence import Ground, grounds
from memories.lifecycle.record import plain
from memories.lifecycle.restore import STAYS, check_restorable, state_after
from memories.models import Change, Memory, MemoryChange

# Columns as a person calls them; what is not here is called by its name.
NAMES = {
    "inactive_reason": "inactive because",
    "updated_at": "confirmed",
    "decayed_until": "decay taken until",
    "superseded_by_id": "now part of memory",
    "merged_count": "memories in it",
    "approved_by_id": "approved by user",
    "expires_at": "expires",
    "project_id": "project",
    "session_id": "session",
}

SIZE = 50
BETWEEN = "~"

# What every confirmation moves along; shown only where nothing else moved.
BOOKKEEPING = {"updated_at", "decayed_until"}

HIDDEN = {"decayed_until", "recall_count", "last_recalled_at"}
"""Of two states beside each other: what says nothing to a person."""

# Of a whole row (created, deleted) these say what it was; the rest is in the row itself.
TELLING = ("observation", "service", "category", "confidence", "taxonomy", "tags", "persistent")


@dataclass(frozen=True, slots=True)
class Moved:
    """One column of a change."""

    name: str
    before: Any
    after: Any
    text: bool
    """Long enough to be shown under each other instead of beside each other."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change as it is shown. `said` is the text that arrived; `grounds` the rest of the reasons, in words."""

    pk: int
    kind: str
    label: str
    at: datetime
    actor: str
    reason: str
    session_id: int | None
    moved: tuple[Moved, ...]
    said: str
    grounds: tuple[Ground, ...]


def moved_of(change: MemoryChange) -> tuple[Moved, ...]:
    """The columns a change moved, without bookkeeping where anything else moved."""
    before, after = change.before or {}, change.after or {}
    names = list(dict.fromkeys([*before, *after]))
    if change.kind in (Change.CREATED, Change.DELETED):
        names = [name for name in TELLING if name in names and (before.get(name) or after.get(name))]
    elif set(names) - BOOKKEEPING:
        names = [name for name in names if name not in BOOKKEEPING]
    return tuple(
        Moved(
            _name(name),
            before.get(name),
            after.get(name),
            text=name == "observation",
        )
        for name in names
    )


def columns_of(change: MemoryChange) -> list[Moved]:
    """Every column of a change, also those that `moved_of` leaves out."""
    before, after = change.before or {}, change.after or {}
    names = dict.fromkeys([*before, *after])
    return [Moved(_name(name), before.get(name), after.get(name), text=name == "observation") for name in names]


def entry_of(change: MemoryChange) -> Entry:
    evidence = change.evidence if isinstance(change.evidence, dict) else {"evidence": change.evidence}
    said = evidence.get("text", "")
    return Entry(
        pk=change.pk,
        kind=change.kind,
        label=change.get_kind_display(),
        at=change.at,
        actor=change.actor,
        reason=change.reason,
        session_id=change.session_id,
        moved=moved_of(change),
        said=said if isinstance(said, str) else str(said),
        grounds=grounds(evidence),
    )


@dataclass(frozen=True, slots=True)
class Page:
    """Entries of a timeline, the newest first; `older` is the place of the page that follows, "" on the last one."""

    entries: list[Entry]
    older: str
    is_first: bool


def place_of(change: MemoryChange) -> str:
    return f"{change.at.isoformat()}{BETWEEN}{change.pk}"


def read_place(text: str) -> tuple[datetime, int] | None:
    """The time and the id of a place; None for what is none: the page begins at the beginning then."""
    at, _, pk = text.partition(BETWEEN)
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        return None
    return (when, int(pk)) if when.tzinfo and pk.isdecimal() and pk.isascii() and len(pk) < 19 else None


def page_of(memory: Memory, before: str = "") -> Page:
    """SIZE changes of `memory`, found by their place in an index: the thousandth page costs what the first does."""
    rows = memory.changes.order_by("-at", "-pk")
    place = read_place(before)
    if place is not None:
        at, pk = place
        rows = rows.filter(at__lte=at).filter(Q(at__lt=at) | Q(pk__lt=pk))
    found = list(rows[: SIZE + 1])
    shown = found[:SIZE]
    return Page(timeline(shown), place_of(shown[-1]) if len(found) > SIZE else "", place is None)


@dataclass(frozen=True, slots=True)
class Compared:
    """A memory as it was just after a change, beside what it is: the text word by word, the columns that differ.

    `refused` says why it cannot be brought back; "" when it can.
    """

    entry: Entry
    text: list[Piece]
    same_text: bool
    moved: tuple[Moved, ...]
    refused: str


def compared(memory: Memory, change: int) -> Compared:
    """Raises MemoryNotFound when the change is not the memory's own."""
    then, state = state_after(memory, change)
    names = [name for name, value in state.items() if value != getattr(memory, name)]
    told = sorted(name for name in names if name != "observation" and name not in HIDDEN)
    observation = state.get("observation", memory.observation)
    refused = ""
    try:
        check_restorable(memory, state)
    except InvalidMemory as refusal:
        refused = f"{refusal} {refusal.fix}".strip()
    if not set(names) - STAYS:
        refused = "It is in this state now."
    return Compared(
        entry=entry_of(then),
        text=word_diff(observation, memory.observation),
        same_text=observation == memory.observation,
        moved=tuple(Moved(_name(name), plain(state[name]), plain(getattr(memory, name)), text=False) for name in told),
        refused=refused,
    )


def _name(column: str) -> str:
    return NAMES.get(column, column.replace("_", " "))


def timeline(changes: Iterable[MemoryChange]) -> list[Entry]:
    """The entries of `changes`, in their order."""
    return [entry_of(change) for change in changes]
