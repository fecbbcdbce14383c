"""Build the timeline of a memory, and compare a past state with the present one. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from claudeops.lib.word_diff import Piece, word_diff
from memories.errors import InvalidMemory
from memories.history.evidence import EvidenceLine, evidence_lines
from memories.lifecycle.restore import STAYS, check_restorable, state_after
from memories.lifecycle.write import json_value
from memories.models import Change, Memory, MemoryChange

NAMES = {
    "inactive_reason": "inactive because",
    "updated_at": "confirmed",
    "decayed_until": "decay applied until",
    "superseded_by_id": "merged into memory",
    "merged_count": "memories merged",
    "approved_by_id": "approved by user",
    "expires_at": "expires",
    "project_id": "project",
    "session_id": "session",
}

SIZE = 50
BETWEEN = "~"

# Every confirmation changes these; they are shown only when nothing else changed.
BOOKKEEPING = {"updated_at", "decayed_until"}

HIDDEN = {"decayed_until", "recall_count", "last_recalled_at", "told_count", "last_told_at"}
"""Columns left out of a comparison of two states."""

# The columns shown for a row that was created or deleted.
TELLING = ("observation", "service", "category", "confidence", "taxonomy", "tags", "persistent")


@dataclass(frozen=True, slots=True)
class ChangedColumn:
    name: str
    before: Any
    after: Any
    text: bool
    """Shown one above the other instead of side by side."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change as it is shown. `said` is the text that arrived, `evidence` the other evidence in words."""

    pk: int
    kind: str
    label: str
    at: datetime
    actor: str
    reason: str
    session_id: int | None
    moved: tuple[ChangedColumn, ...]
    said: str
    evidence: tuple[EvidenceLine, ...]


def changed_columns(change: MemoryChange) -> tuple[ChangedColumn, ...]:
    """Return the columns that a change changed, without BOOKKEEPING where others changed."""
    before, after = change.before or {}, change.after or {}
    names = list(dict.fromkeys([*before, *after]))
    if change.kind in (Change.CREATED, Change.DELETED):
        names = [name for name in TELLING if name in names and (before.get(name) or after.get(name))]
    elif set(names) - BOOKKEEPING:
        names = [name for name in names if name not in BOOKKEEPING]
    return tuple(
        ChangedColumn(
            _name(name),
            before.get(name),
            after.get(name),
            text=name == "observation",
        )
        for name in names
    )


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
        moved=changed_columns(change),
        said=said if isinstance(said, str) else str(said),
        evidence=evidence_lines(evidence),
    )


@dataclass(frozen=True, slots=True)
class Page:
    """Entries, newest first; `older` is the cursor of the next page, "" on the last one."""

    entries: list[Entry]
    older: str
    is_first: bool


def place_of(change: MemoryChange) -> str:
    return f"{change.at.isoformat()}{BETWEEN}{change.pk}"


def read_place(text: str) -> tuple[datetime, int] | None:
    """Parse a cursor to (time, id); None for an invalid one, which means the first page."""
    at, _, pk = text.partition(BETWEEN)
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        return None
    return (when, int(pk)) if when.tzinfo and pk.isdecimal() and pk.isascii() and len(pk) < 19 else None


def page_of(memory: Memory, before: str = "") -> Page:
    """Return SIZE changes of `memory` by keyset pagination: the thousandth page costs what the first does."""
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
    """A memory just after a change beside its present state; `refused` says why that state cannot be restored."""

    entry: Entry
    text: list[Piece]
    same_text: bool
    moved: tuple[ChangedColumn, ...]
    refused: str


def compared(memory: Memory, change: int) -> Compared:
    """Compare a memory just after `change` with its present state. Raises MemoryNotFound for another's change."""
    then, state = state_after(memory, change)
    names = [name for name, value in state.items() if value != getattr(memory, name)]
    told = sorted(name for name in names if name != "observation" and name not in HIDDEN)
    observation = str(state.get("observation", memory.observation))
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
        moved=tuple(
            ChangedColumn(_name(name), json_value(state[name]), json_value(getattr(memory, name)), text=False)
            for name in told
        ),
        refused=refused,
    )


def _name(column: str) -> str:
    return NAMES.get(column, column.replace("_", " "))


def timeline(changes: Iterable[MemoryChange]) -> list[Entry]:
    return [entry_of(change) for change in changes]
