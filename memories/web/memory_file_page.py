"""What the page of a memory file shows: its sections with who wrote each line, and its room. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memories.curate.document import MOST, SECTIONS, TITLE, WARN_AT, Document, Entry
from memories.models import MemoryFileCommit

WEEK, MONTH = timedelta(days=7), timedelta(days=30)
MOST_LINES = 1_000
"""Lines that are shown with their authors; the text as a whole is one link away."""
MEASURED = timedelta(days=90)
LEAST_MEASURED = timedelta(days=14)
"""A file grows by what its commits of the last 90 days did; of fewer days than these nothing is said."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the file, `number` counted from 1. `commit` is None for one that is not committed.

    `session` is the session that its knowledge is from, if one is known. `age` is week, month or empty (older).
    `merged` counts the proposals that were merged into the entry.
    """

    number: int
    text: str
    is_entry: bool
    commit: MemoryFileCommit | None = None
    session: int | None = None
    age: str = ""
    is_disputed: bool = False
    merged: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """A section with its lines in the order of the file; `title` is empty for what stands before the first one."""

    name: str
    title: str
    lines: Sequence[Line]
    count: int


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts of a file; `left` lines are not among them."""

    parts: Sequence[Part]
    left: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """The entries of a section, and their share of the largest section in percent."""

    title: str
    count: int
    percent: int


@dataclass(frozen=True, slots=True)
class Room:
    """Entries of those that fit. `level` is ok, near or over; `full` says when it is full, empty when not measured."""

    entries: int
    most: int
    level: str
    full: str
    shares: Sequence[Share]


def shown(
    document: Document,
    blame: Sequence[MemoryFileCommit | None],
    sessions: Mapping[int, int],
    disputed: frozenset[str],
    at: datetime,
) -> Shown:
    """Return the sections of a file as of `at` (aware).

    `blame` has the commit of each line, `sessions` the session by the id of a proposal, `disputed` the texts of the
    entries about which a conflict is open.
    """
    entries = {entry.line: entry for entry in document.entries}
    starts = [section.line for section in document.sections]
    bounds = [("", "", -1, starts[0] if starts else len(document.lines))]
    bounds += [(one.name, SECTIONS.get(one.name, one.name), one.line, one.end) for one in document.sections]
    parts, room = [], MOST_LINES
    for name, title, start, end in bounds:
        lines = [
            _line(number, document, entries.get(number), blame, sessions, disputed, at)
            for number in range(start + 1, end)
            if document.lines[number][0].strip("\ufeff \t\r") and document.lines[number][0].strip("\ufeff ") != TITLE
        ]
        count = sum(line.is_entry for line in lines)
        if name or lines:
            parts.append(Part(name, title, lines[:room], count))
        room = max(0, room - len(lines))
    total = sum(1 for text, _ in document.lines if text.strip())
    kept = sum(len(part.lines) for part in parts)
    return Shown(parts, max(0, total - kept) if room == 0 else 0)


def _line(
    number: int,
    document: Document,
    entry: Entry | None,
    blame: Sequence[MemoryFileCommit | None],
    sessions: Mapping[int, int],
    disputed: frozenset[str],
    at: datetime,
) -> Line:
    commit = blame[number] if number < len(blame) else None
    text = entry.text if entry else document.lines[number][0].strip()
    return Line(
        number + 1,
        text,
        entry is not None,
        commit,
        sessions.get(commit.proposal_id) if commit and commit.proposal_id else None,
        age_of(commit.at, at) if commit else "week",
        entry is not None and text in disputed,
        _merged(entry, commit),
    )


def _merged(entry: Entry | None, commit: MemoryFileCommit | None) -> int:
    proposal = commit.proposal if commit else None
    return proposal.merged_count if proposal and entry and entry.text == proposal.text else 0


def age_of(since: datetime, at: datetime) -> str:
    old = at - since
    return "week" if old < WEEK else "month" if old < MONTH else ""


def room_of(document: Document, *, net: int = 0, since: datetime | None = None, at: datetime | None = None) -> Room:
    """Return how full a file is. `net` lines came from `since` to `at` (both aware): from that it says when it is full.

    Nothing is said of less than 14 days, nor of a file that does not grow.
    """
    counts = Counter(entry.section for entry in document.entries)
    top = max(counts.values(), default=1)
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    shares = [Share(SECTIONS.get(name, name) or "Before the sections", n, round(100 * n / top)) for name, n in ordered]
    entries = len(document.entries)
    level = "over" if entries >= MOST else "near" if entries >= WARN_AT else "ok"
    full = _full_in(MOST - entries, net, at - since) if since and at else ""
    return Room(entries, MOST, level, full, shares)


def _full_in(left: int, net: int, measured: timedelta) -> str:
    if left <= 0:
        return "full"
    if net <= 0 or measured < LEAST_MEASURED:
        return ""
    days = left * (measured / timedelta(days=1)) / net
    if days > 730:
        return ""
    count, unit = (round(days / 30), "month") if days > 60 else (max(1, round(days / 7)), "week")
    return f"full in about {count} {unit}{'' if count == 1 else 's'}"
