"""What the page of an agent's file shows of its lines, who wrote each and why it is not told, and of its conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import OuterRef, Subquery

from claudeops.lib.detail_page import percent
from claudeops.lib.diff import GONE, NEW, Piece, word_diff
from claudeops.lib.tracked_file.document import UNSEEN
from memories.files.authors import BY_GIT
from memories.files.authors import FILE as UNCOMMITTED
from memories.files.document import TITLE, Document, Section, parse
from memories.files.limits import Limits
from memories.files.told import Told
from memories.models import (
    AgentFile,
    AgentFileConflict,
    AgentFileEntry,
    ConflictAnswer,
    ConflictKind,
    Memory,
    MemoryChange,
)

WEEK, MONTH = timedelta(days=7), timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file. `row` is None for prose, and for an entry that no sync has stored yet.

    `age` is week, month or empty (older); `untold` says why the agent is not told it, empty when it is.
    """

    text: str
    is_entry: bool
    row: AgentFileEntry | None = None
    author: str = ""
    age: str = ""
    untold: str = ""

    @property
    def memory(self) -> Memory | None:
        return self.row.memory if self.row else None

    @property
    def session(self) -> int | None:
        """The session that wrote the line; None when a person did, or nobody knows."""
        memory = self.memory
        return memory.session_id if memory and not self.author.startswith(BY_GIT) else None

    @property
    def by(self) -> str:
        return name_of(self.author)


@dataclass(frozen=True, slots=True)
class Part:
    """A section with its lines in the order of the file; `name` is empty for what stands before the first one."""

    name: str
    lines: Sequence[Line]
    count: int
    most: int


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of a limit is used: "6.3 of 8 KB", in percent, with the level of its bar: ok, near or over."""

    label: str
    used: str
    percent: int
    level: str


def name_of(author: str) -> str:
    """Return an author for people: "git:Ada" is Ada, "agent:research" is research, "file" is not committed."""
    if author == UNCOMMITTED:
        return "not committed"
    return author.removeprefix(BY_GIT).removeprefix("agent:")


def parts_of(file: AgentFile, rows: Sequence[AgentFileEntry], told: Told, at: datetime) -> list[Part]:
    """Return the sections of the file as it was at its last sync, as of `at` (aware). Pure but for `rows`."""
    document = parse(file.text.encode())
    entry_rows = {(row.section.casefold(), row.text): row for row in rows if not row.left_because}
    by_memory = {entry["id"]: entry["reason"] for entry in told.left_out}
    by_text = {entry["text"]: entry["reason"] for entry in told.untold}
    most = Limits.of(file.limits, file.project.files_limits).items
    parts = [_part(document, section, entry_rows, by_memory, by_text, most, at) for section in document.sections]
    return [part for part in parts if part.name or part.lines]


def _part(
    document: Document,
    section: Section,
    entry_rows: Mapping[tuple[str, str], AgentFileEntry],
    by_memory: Mapping[int, str],
    by_text: Mapping[str, str],
    most: int,
    at: datetime,
) -> Part:
    entries = {entry.start: entry for entry in section.entries}
    later = [other.line for other in document.sections if other.line > section.line]
    lines, number, end = [], section.line + 1, min(later, default=len(document.lines))
    while number < end:
        entry = entries.get(number)
        if entry is not None:
            row = entry_rows.get((entry.section.casefold(), entry.text))
            lines.append(_entry(entry.text, row, by_memory, by_text, at))
            number = entry.end
            continue
        text = document.lines[number][0]
        if text.strip() and document.classes[number] not in UNSEEN and not (section.line < 0 and TITLE.match(text)):
            lines.append(Line(text, False, untold=by_text.get(text, "")))
        number += 1
    return Part(section.name, lines, len(entries), most)


def _entry(
    text: str, row: AgentFileEntry | None, by_memory: Mapping[int, str], by_text: Mapping[str, str], at: datetime
) -> Line:
    if row is None:
        return Line(text, True, untold="in conflict, or not read yet")
    untold = by_text.get(text, "") if row.memory_id is None else by_memory.get(row.memory_id, "")
    return Line(text, True, row, row.author, age_of(row.since, at), untold)


def age_of(since: datetime, at: datetime) -> str:
    old = at - since
    return "week" if old < WEEK else "month" if old < MONTH else ""


def limits_of(file: AgentFile) -> list[Limit]:
    """Return how much of each limit the file uses: its size, its sections, and the entries of each section with one."""
    limits = Limits.of(file.limits, file.project.files_limits)
    sections = [section for section in parse(file.text.encode()).sections if section.line >= 0]
    usages = [
        size_of(file),
        _limit("Sections", f"{len(sections)} of {limits.sections}", len(sections), limits.sections),
    ]
    for section in sections:
        if count := len(section.entries):
            usages.append(_limit(section.name, f"{count} of {limits.items}", count, limits.items))
    return usages


def size_of(file: AgentFile) -> Limit:
    limits, size = Limits.of(file.limits, file.project.files_limits), file.size / 1024
    return _limit("Size", f"{size:.1f} of {limits.kilobytes} KB", size, limits.kilobytes)


def _limit(label: str, used: str, part: float, most: int) -> Limit:
    level = "over" if part > most else "near" if part >= 0.75 * most else "ok"
    return Limit(label, used, percent(part, most) or 0, level)


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
