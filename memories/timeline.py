"""A memory's history as it is shown: what happened, from → to, why, who, when. Reads change rows; changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memories.models import Change, MemoryChange

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

# What every confirmation moves along; shown only where nothing else moved.
BOOKKEEPING = {"updated_at", "decayed_until"}

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
    """One change as it is shown. `said` is the text that arrived; `evidence` the rest of the reasons."""

    pk: int
    kind: str
    label: str
    at: datetime
    actor: str
    reason: str
    session_id: int | None
    moved: tuple[Moved, ...]
    said: str
    evidence: dict[str, Any]


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
            NAMES.get(name, name.replace("_", " ")),
            before.get(name),
            after.get(name),
            text=name == "observation",
        )
        for name in names
    )


def entry_of(change: MemoryChange) -> Entry:
    evidence = dict(change.evidence or {})
    said = evidence.pop("text", "")
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
        evidence=evidence,
    )


def timeline(changes: Iterable[MemoryChange]) -> list[Entry]:
    """The entries of `changes`, in their order."""
    return [entry_of(change) for change in changes]
