"""Build the timeline of a memory, and compare a past state with the present one. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Count, Max, Q

from claudeops.lib.diff import Piece, word_diff
from memories.errors import InvalidMemory
from memories.history.confidence import EDITED, LEGEND, SHAPES
from memories.history.sentences import EvidenceLine, Moved, Part, evidence_lines, folded_decay, moved, sentence
from memories.lifecycle.undo import STAYS, check_restorable, state_after
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
    "surface": "window",
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
    """One change as it is shown: in one sentence, and in full.

    `said` is the text that arrived, `evidence` the other evidence in words, `shape` that of its mark in the chart.
    """

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
    shape: str
    sentence: tuple[Part, ...]
    confidence: Moved


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
    text = evidence.get("text", "")
    return Entry(
        pk=change.pk,
        kind=change.kind,
        label=change.label,
        at=change.at,
        actor=change.actor,
        reason=change.reason,
        session_id=change.session_id,
        moved=changed_columns(change),
        said=text if isinstance(text, str) else str(text),
        evidence=evidence_lines(evidence),
        shape=shape_of(change.kind),
        sentence=sentence(change),
        confidence=moved(change),
    )


def shape_of(kind: str) -> str:
    return SHAPES.get(kind, EDITED)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the timeline: an entry, or several decays in a row, latest first, in the sentence `folded`."""

    entries: tuple[Entry, ...]
    folded: str = ""

    @property
    def latest(self) -> Entry:
        return self.entries[0]


@dataclass(frozen=True, slots=True)
class Page:
    """Lines, newest first; `older` is the cursor of the next page, "" on the last one."""

    lines: list[Line]
    older: str
    is_first: bool

    @property
    def shown(self) -> set[int]:
        """The ids of the changes on the page."""
        return {entry.pk for line in self.lines for entry in line.entries}


@dataclass(frozen=True, slots=True)
class Kinds:
    """How many changes of each shape a memory has, in the order of LEGEND, and when each came last."""

    counts: dict[str, int]
    last: dict[str, datetime]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def kinds_of(memory: Memory) -> Kinds:
    """Count the changes of `memory` by shape. One query, over the memory's part of an index."""
    rows = memory.changes.order_by().values_list("kind").annotate(Count("pk"), Max("at"))
    counts: dict[str, int] = {}
    last: dict[str, datetime] = {}
    for kind, count, at in sorted(rows, key=lambda row: LEGEND.index(shape_of(row[0]))):
        shape = shape_of(kind)
        counts[shape] = counts.get(shape, 0) + count
        last[shape] = max(at, last.get(shape, at))
    return Kinds(counts, last)


def kinds_with(shape: str) -> Collection[str]:
    """Return the kinds of change that have a shape; none for an unknown one."""
    return [kind for kind in Change.values if shape_of(kind) == shape]


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


def page_of(memory: Memory, before: str = "", only: str = "") -> Page:
    """Return SIZE changes of `memory`, or those of one shape, by keyset pagination."""
    rows = memory.changes.order_by("-at", "-pk")
    if kinds := kinds_with(only):
        rows = rows.filter(kind__in=kinds)
    place = read_place(before)
    if place is not None:
        at, pk = place
        rows = rows.filter(at__lte=at).filter(Q(at__lt=at) | Q(pk__lt=pk))
    changes = list(rows[: SIZE + 1])
    shown = changes[:SIZE]
    return Page(lines_of(shown), place_of(shown[-1]) if len(changes) > SIZE else "", place is None)


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
    columns = sorted(name for name in names if name != "observation" and name not in HIDDEN)
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
            for name in columns
        ),
        refused=refused,
    )


def _name(column: str) -> str:
    return NAMES.get(column, column.replace("_", " "))


def lines_of(latest_first: Sequence[MemoryChange]) -> list[Line]:
    """Return the lines of changes; decays that follow each other are one line."""
    lines = []
    for decays, changes in groupby(latest_first, key=lambda change: change.kind == Change.DECAYED and not change.step):
        some = list(changes)
        if decays and len(some) > 1:
            lines.append(Line(tuple(map(entry_of, some)), folded_decay(some)))
        else:
            lines += [Line((entry_of(change),)) for change in some]
    return lines
