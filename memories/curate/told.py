"""Choose what a session is told of the curated memory: entries of its project's MEMORY.md and of the global one.

Reads the database alone, so that it answers on hosts without the repository and while a hook waits.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import zip_longest
from typing import Any

from django.conf import settings
from django.db.models import F, Q

from claudeops.lib.tracked_file.passages import Part
from memories.committers import CUT_OFF, Commit, why_nobodys
from memories.curate.document import SECTIONS, Entry, parse
from memories.injection import passages
from memories.injection.budget import LONGEST_LINE, stated
from memories.injection.escape import safe
from memories.injection.passages import CODE_STANDS, SECTION_LEVEL, Row, Unit, held, plain, topics_of
from memories.injection.selector import select
from memories.lifecycle import forgotten, vouched
from memories.models import CommitKind, MemoryFile, MemoryFileCommit, Project, ProposalState, trust

TITLE = "Curated Memory"
INTRO = (
    "What this house has found out and keeps in MEMORY.md. Where what you see disagrees, say so and believe what you "
    "see."
)
NO_ROOM = "the budget is full"
TOO_LONG = f"it has more than {LONGEST_LINE} characters"
UNCONFIRMED = "unconfirmed: nobody can tell who wrote the line"
LISTED = 50
"""Entries that a receipt names as left out; all are counted."""


@dataclass(frozen=True, slots=True)
class Told:
    """A passage that may be told: an entry, or a list with its lead-in, which is told whole or not at all.

    `line` is its first one in its file (from 1), `section` its title, `text` as it is told with bullets and dates,
    `shown` without them, `texts` those of its lines as they stand, `entries` how many entries it has.
    """

    file: MemoryFile
    line: int
    section: str
    day: date | None
    text: str
    shown: str
    texts: tuple[str, ...]
    entries: int = 1

    @property
    def observation(self) -> str:
        return self.shown


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry that is not told, and why."""

    file: int
    line: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Curated:
    """The block of a prompt, heading included ("" when there is none), its entries, and what is left out.

    `tokens` and `budget` are in tokens (characters / 4).
    """

    text: str = ""
    tokens: int = 0
    budget: int = 0
    files: tuple[MemoryFile, ...] = ()
    included: tuple[Told, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def texts(self) -> list[str]:
        return [text for one in self.included for text in one.texts]

    @property
    def record(self) -> dict[str, Any]:
        """Return what a receipt keeps; empty where there is no memory file."""
        if not self.files:
            return {}
        by_file: Counter[int] = Counter()
        for one in self.included:
            by_file[one.file.pk] += one.entries
        return {
            "text": self.text,
            "sha256": hashlib.sha256(self.text.encode()).hexdigest(),
            "tokens": self.tokens,
            "budget": self.budget,
            "files": [
                {
                    "file": file.pk,
                    "project": file.project.slug if file.project else None,
                    "commit": file.commit,
                    "sha256": file.sha256,
                    "entries": by_file[file.pk],
                }
                for file in self.files
            ],
            "left_out": [
                {"file": one.file, "line": one.line, "text": one.text, "reason": one.reason}
                for one in self.left_out[:LISTED]
            ],
            "counts": dict(Counter(one.reason for one in self.left_out)),
        }


NOT_CURATED = Curated()


def select_curated(project: Project | None) -> Curated:
    """Choose the entries that a session of `project` (None: of none) is told, within CLAUDEOPS_CURATED_BUDGET tokens.

    The project's own come before the global ones; among each the sections take turns, each from its newest entry, so
    that a long section leaves room for the others. The first that does not fit ends the choice. A line that was
    approved or typed here is told; one whose commit is a person's word passes the gate; of any other one nobody can
    tell who wrote it, so that it also waits for a person by CLAUDEOPS_TRUST, as a memory does.
    """
    budget: int = settings.CLAUDEOPS_CURATED_BUDGET
    files = tuple(file for file in files_of(project) if file.text)
    entries = [entry for file in files for entry in _entries(file)]
    left_out = [entry for entry in entries if isinstance(entry, LeftOut)]
    in_turns = _in_turns([entry for entry in entries if isinstance(entry, Told)], files)
    chosen = select(in_turns, partial(_block, files=files), budget=budget)
    left_out += [LeftOut(entry.file.pk, entry.line, entry.shown, NO_ROOM) for entry in chosen.left_out]
    included = tuple(_ordered(chosen.included, files))
    return Curated(chosen.text, chosen.tokens, budget, files, included, tuple(left_out))


def files_of(project: Project | None) -> tuple[MemoryFile, ...]:
    """Return the files that a session of `project` (None: of none) is told of, the project's own first."""
    whose = Q(project=None) if project is None else Q(project=None) | Q(project=project)
    rows = MemoryFile.objects.filter(whose).select_related("project")
    return tuple(rows.order_by(F("project").desc(nulls_last=True)))


@dataclass(frozen=True, slots=True)
class Waiting:
    """A line that waits for a person: its number (from 1), its text, why, and the author whom its commit states."""

    line: int
    text: str
    why: str
    author: str


def waiting_lines(file: MemoryFile) -> list[Waiting]:
    """Return the lines of a file of which nobody can tell who wrote them, and which wait for a person."""
    emails = dict(file.commits.filter(pk__in={pk for pk in file.blame if pk}).values_list("pk", "email"))
    return [
        Waiting(row.at + 1, row.text, row.why_not, emails.get(pk, ""))
        for unit in _units(file)
        for row in unit.rows
        if row.why_not.startswith(UNCONFIRMED)
        for pk in (file.blame[row.at : row.at + 1] or [None])
    ]


def _entries(file: MemoryFile) -> Iterator[Told | LeftOut]:
    for unit in _units(file):
        entries = [row.of for row in unit.rows if row.of]
        if unit.why_not:
            yield from (LeftOut(file.pk, row.at + 1, row.text, why) for row, why in unit.omissions() if row.of)
            continue
        headings = [safe(plain(one.text)) for one in unit.headings if one.level > SECTION_LEVEL]
        yield Told(
            file,
            unit.rows[0].at + 1,
            ": ".join((safe(SECTIONS.get(entries[0].section, entries[0].section)), *headings)),
            max((entry.date for entry in entries if entry.date), default=None),
            "\n".join(row.shown for row in unit.rows),
            " ".join(safe(row.text) for row in unit.rows),
            tuple(row.text for row in unit.rows),
            len(entries),
        )


def _units(file: MemoryFile) -> list[Unit[Entry]]:
    """Return the passages that have an entry, with the reason why one is not told."""
    document = parse(file.text)
    entries = {entry.line: entry for entry in document.entries}
    parts = [part for passage in document.passages for part in passage.parts]
    texts = {part.at: plain(entries[part.at].text if part.at in entries else part.text) for part in parts}
    texts |= {heading.at: plain(heading.text) for heading in document.headings}
    rows = file.commits.in_bulk({pk for pk in file.blame if pk})
    by_people = {pk for pk, row in rows.items() if _is_persons(row, file)}
    # By our own records: anybody can make a commit in our name.
    decided = Q(proposal__state=ProposalState.PROMOTED, proposal__commit=F("sha"))
    promoted = set(file.commits.filter(decided, kind=CommitKind.PROMOTION).values_list("pk", flat=True))
    purged = forgotten.refusals(texts.values(), is_counted=False)
    approved = vouched.vouched(texts.values(), file.project_id)

    def why_not(begin: int, end: int) -> str:
        text, commits = texts[begin], set((*file.blame[begin:end], None)[: end - begin])
        if text in purged or commits <= promoted or text in approved:
            return purged.get(text, "")
        return _held(text) or _waits(text, is_persons=commits <= by_people | promoted)

    def row_of(part: Part) -> Row[Entry]:
        text, entry = texts[part.at], entries.get(part.at)
        if text in purged:
            return passages.row(forgotten.MARK, entry, purged[text], part=part)
        why = CODE_STANDS if part.is_code else TOO_LONG if len(text) > LONGEST_LINE else why_not(part.at, part.end)
        before = f"({entry.date.isoformat()}) " if entry and entry.date else ""
        return passages.row(text, entry, why, part=part, before=before)

    units = passages.units(document, row_of, lambda heading: why_not(heading.at, heading.at + 1))
    return [unit for unit in units if any(row.of for row in unit.rows)]


def _is_persons(commit: MemoryFileCommit, file: MemoryFile) -> bool:
    """Whether a commit is its author's word; one that claudeops made is known by its proposal or its text."""
    stated = Commit(
        commit.sha, commit.author, commit.email, body=f"{commit.subject}\n{commit.body}", signer=commit.signer
    )
    if commit.is_ours or commit.agents == CUT_OFF:
        return False
    return not why_nobodys(stated, file.project, commit.agents)


def _held(text: str) -> str:
    return f"the gate holds it: {reason}" if (reason := held(text)) else ""


def _waits(text: str, *, is_persons: bool) -> str:
    """Say why a line that no person stands behind here waits, by CLAUDEOPS_TRUST; "" when it does not."""
    if trust.mode() == trust.OPEN or is_persons:
        return ""
    if trust.mode() == trust.STRICT:
        return f"{UNCONFIRMED}: CLAUDEOPS_TRUST=strict wants a person"
    about = topics_of(text)
    return f"{UNCONFIRMED}, and it is about {trust.JOINT.join(about)}" if about else ""


def _in_turns(entries: Sequence[Told], files: Sequence[MemoryFile]) -> Iterator[Told]:
    for file in files:
        sections: dict[str, list[Told]] = {}
        for entry in entries:
            if entry.file.pk == file.pk:
                sections.setdefault(entry.section, []).append(entry)
        for rows in sections.values():
            rows.sort(key=lambda row: (row.day or date.min, row.line), reverse=True)
        for turn in zip_longest(*sections.values()):
            yield from (entry for entry in turn if entry is not None)


def _ordered(entries: Sequence[Told], files: Sequence[MemoryFile]) -> list[Told]:
    places = {file.pk: place for place, file in enumerate(files)}
    return sorted(entries, key=lambda entry: (places[entry.file.pk], entry.line))


def _block(entries: Sequence[Told], files: Sequence[MemoryFile]) -> tuple[str, int]:
    """Return the block of these entries, as they stand in their files, and its tokens, which the heading states."""
    rows: list[str] = []
    heading = ""
    for entry in _ordered(entries, files):
        whose = f"{entry.section} ({entry.file.project.slug})" if entry.file.project else entry.section
        if whose != heading:
            rows += ["", f"### {whose}" if whose else "### Other"]
            heading = whose
        rows.append(entry.text)
    number = sum(entry.entries for entry in entries)
    many = "1 entry" if number == 1 else f"{number:,} entries"
    return stated(lambda count: f"## {TITLE} ({many}, ~{count:,} tokens)", "\n".join(["", INTRO, *rows]))
