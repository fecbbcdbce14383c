"""A conflict between an agent's file and its memory as the page shows it: both texts, and what a person can answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Subquery

from claudeops.agent_files.lines import name_of
from claudeops.lib.diff import GONE, NEW, Piece, word_diff
from memories.models import AgentFile, AgentFileConflict, ConflictAnswer, ConflictKind, Memory, MemoryChange

MOST = 20
"""Conflicts that a page shows."""

TITLES = {
    ConflictKind.EDITED: "The file and the memory were both changed",
    ConflictKind.REMOVED_IN_FILE: "Removed in the file, but changed here",
    ConflictKind.REMOVED_HERE: "Changed in the file, but deactivated here",
    ConflictKind.CONTRADICTED: "A captured text contradicts a line of the file",
}
FILE, OTHER, BOTH = ConflictAnswer.FILE.value, ConflictAnswer.OTHER.value, ConflictAnswer.BOTH.value
ANSWERS = {
    ConflictKind.EDITED: ((FILE, "Keep the file’s"), (OTHER, "Take the memory’s"), (BOTH, "Keep both")),
    ConflictKind.REMOVED_IN_FILE: ((FILE, "Leave it removed"), (OTHER, "Put the line back")),
    ConflictKind.REMOVED_HERE: ((FILE, "Keep the line"), (OTHER, "Remove the line")),
    ConflictKind.CONTRADICTED: ((FILE, "Keep the file’s"), (OTHER, "Take the captured one"), (BOTH, "Keep both")),
}
"""The answers to each kind of conflict, in the order of their keys 1, 2, 3."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer with its label and its key; `key` is empty where another conflict has the keys."""

    answer: str
    label: str
    key: str


@dataclass(frozen=True, slots=True)
class Clash:
    """An open conflict. The pieces of the two texts are `same` or differ; no pieces: there is no line."""

    row: AgentFileConflict
    title: str
    in_file: Sequence[Piece]
    file_by: str
    other: Sequence[Piece]
    other_label: str
    other_by: str
    other_at: datetime | None
    memory: Memory | None
    choices: Sequence[Choice]


def open_clashes(file: AgentFile) -> list[Clash]:
    """Return the open conflicts of a file, the oldest first; the first one has the keys. Two queries."""
    rows = list(file.conflicts.filter(answered_at=None).select_related("memory", "other").order_by("pk")[:MOST])
    latest = _latest({memory.pk for row in rows if (memory := row.other or row.memory)})
    return [_clash(row, latest, has_keys=place == 0) for place, row in enumerate(rows)]


def _latest(memories: Iterable[int]) -> dict[int, tuple[str, datetime]]:
    """Return (actor, time) of the latest change of each memory."""
    latest = MemoryChange.objects.filter(memory=OuterRef("pk")).order_by("-pk")
    rows = Memory.objects.filter(pk__in=list(memories)).annotate(
        by=Subquery(latest.values("actor")[:1]), changed_at=Subquery(latest.values("at")[:1])
    )
    return {pk: (by or "", at) for pk, by, at in rows.values_list("pk", "by", "changed_at") if at}


def _clash(row: AgentFileConflict, latest: dict[int, tuple[str, datetime]], *, has_keys: bool) -> Clash:
    kind = ConflictKind(row.kind)
    pieces = word_diff(row.file_text, row.other_text)
    memory = row.other or row.memory
    by, at = latest.get(memory.pk, ("", None)) if memory else ("", None)
    return Clash(
        row,
        TITLES[kind],
        [piece for piece in pieces if piece.kind != NEW],
        name_of(row.author),
        [piece for piece in pieces if piece.kind != GONE],
        "Captured" if kind == ConflictKind.CONTRADICTED else "In the memory",
        name_of(by),
        at,
        memory,
        [
            Choice(answer, label, str(place) if has_keys else "")
            for place, (answer, label) in enumerate(ANSWERS[kind], start=1)
        ],
    )
