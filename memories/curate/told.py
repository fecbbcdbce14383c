"""Choose what a session is told of the curated memory: entries of its project's MEMORY.md and of the global one.

Reads the database alone, so that it answers on hosts without the repository and while a hook waits.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache, partial
from itertools import zip_longest
from typing import Any

from django.conf import settings
from django.db.models import F, Q

from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import Part, passages
from memories.capture.gate import judge
from memories.capture.text import fold
from memories.capture.topics import topics
from memories.committers import CUT_OFF, Commit, why_nobodys
from memories.curate.document import SECTION_LEVEL, SECTIONS, Entry, parse
from memories.injection.budget import cut, stated
from memories.injection.escape import safe
from memories.injection.selector import select
from memories.lifecycle import forgotten, vouched
from memories.models import CommitKind, MemoryFile, MemoryFileCommit, Project, ProposalState, Verdict, trust

TITLE = "Curated Memory"
INTRO = (
    "What this house has found out and keeps in MEMORY.md. Where what you see disagrees, say so and believe what you "
    "see."
)
NO_ROOM = "the budget is full"
UNCONFIRMED = "unconfirmed: nobody can tell who wrote the line"
WITH_IT = "left out with what stands beside it: {}"
CODE_STANDS = "it holds code, which is not told"
LONG_HEADING, DEEPEST = 4, 6
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
    commits = file.commits.in_bulk({pk for pk in file.blame if pk})
    by_people = {pk for pk, row in commits.items() if _is_persons(row, file)}
    pieces = [one for unit in _read(file.text) for one in unit.pieces]
    decided = vouched.vouched([one.content for one in pieces], file.project_id)
    found = []
    for one in pieces:
        pk = file.blame[one.line - 1] if one.line <= len(file.blame) else None
        is_ours = pk in commits and commits[pk].is_ours
        why = "" if one.held or is_ours or one.content in decided else _waits(one, pk in by_people)
        if why:
            found.append(Waiting(one.line, one.content, why, commits[pk].email if pk in commits else ""))
    return found


def _entries(file: MemoryFile) -> Iterator[Told | LeftOut]:
    # By our own records: anybody can make a commit in our name.
    decided = Q(proposal__state=ProposalState.PROMOTED, proposal__commit=F("sha"))
    promoted = set(file.commits.filter(decided, kind=CommitKind.PROMOTION).values_list("pk", flat=True))
    by_people = {
        row.pk for row in file.commits.filter(pk__in={pk for pk in file.blame if pk}) if _is_persons(row, file)
    }
    units = _read(file.text)
    contents = [one.content for unit in units for one in unit.pieces]
    purged = forgotten.refusals([one.shown for unit in units for one in unit.pieces], is_counted=False)
    decided_texts = vouched.vouched(contents, file.project_id)

    def why_not(one: _Piece) -> str:
        commit = file.blame[one.line - 1] if one.line <= len(file.blame) else None
        if one.shown in purged:
            return purged[one.shown]
        if commit in promoted or one.content in decided_texts:
            return ""
        return one.held or _waits(one, commit in by_people)

    for unit in units:
        reasons = {one: why_not(one) for one in unit.pieces}
        blocked = next(filter(None, reasons.values()), "") or unit.held
        for one, why in reasons.items() if blocked else ():
            if one.is_entry:
                text = forgotten.MARK if one.shown in purged else one.shown
                yield LeftOut(file.pk, one.line, text, why or WITH_IT.format(blocked))
        if not blocked:
            count = sum(one.is_entry for one in unit.pieces)
            text = "\n".join(one.row for one in unit.pieces)
            shown = " ".join(cut(safe(one.content)) for one in unit.pieces)
            texts = tuple(one.content for one in unit.pieces)
            yield Told(file, unit.pieces[0].line, unit.section, unit.day, text, shown, texts, count)


def _is_persons(commit: MemoryFileCommit, file: MemoryFile) -> bool:
    """Whether a commit is its author's word; one that claudeops made is known by its proposal or its text."""
    stated = Commit(
        commit.sha, commit.author, commit.email, body=f"{commit.subject}\n{commit.body}", signer=commit.signer
    )
    if commit.is_ours or commit.agents == CUT_OFF:
        return False
    return not why_nobodys(stated, file.project, commit.agents)


def _waits(entry: _Piece, is_persons: bool) -> str:
    """Say why a line that no person stands behind here waits, by CLAUDEOPS_TRUST; "" when it does not."""
    if trust.mode() == trust.OPEN or is_persons:
        return ""
    if trust.mode() == trust.STRICT:
        return f"{UNCONFIRMED}: CLAUDEOPS_TRUST=strict wants a person"
    return f"{UNCONFIRMED}, and it is about {trust.JOINT.join(entry.topics)}" if entry.topics else ""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One line of a passage as it stands and made safe for a prompt, which does not depend on its file's commits.

    `row` is the line of the prompt, `held` says why the gate holds it, `topics` are those of its text.
    """

    line: int
    content: str
    shown: str
    row: str
    held: str
    topics: tuple[str, ...]
    is_entry: bool


@dataclass(frozen=True, slots=True)
class _Unit:
    """A passage with at least one entry, below the title of its section. `held` says why none of it is told."""

    section: str
    day: date | None
    pieces: tuple[_Piece, ...]
    held: str


@lru_cache(maxsize=64)
def _read(text: str) -> tuple[_Unit, ...]:
    """Return the passages of a file. Kept, since it takes up to 35 ms for 200 entries and a hook waits for it."""
    document = parse(text)
    entries = {entry.line: entry for entry in document.entries}
    lines = [one.removeprefix("\ufeff") for one, _ in document.lines]
    units = []
    for passage in passages(lines, document.hidden):
        own = [entries[part.at] for part in passage.parts if part.at in entries]
        if not own:
            continue
        under = [mask(fold(one.text)) for one in passage.under if one.level > SECTION_LEVEL]
        title = ": ".join(safe(one) for one in (SECTIONS.get(own[0].section, own[0].section), *under))
        held = next((why for one in under if len(one.split()) >= LONG_HEADING and (why := _held(one))), "")
        pieces = tuple(_piece(part, entries.get(part.at)) for part in passage.parts)
        day = max((entry.date for entry in own if entry.date), default=None)
        units.append(_Unit(title, day, pieces, held))
    return tuple(units)


def _piece(part: Part, entry: Entry | None) -> _Piece:
    content = mask(fold(entry.text if entry else part.text))
    held = CODE_STANDS if part.is_code else _held(content)
    shown = content if held else cut(safe(content))
    dated = f"({entry.date.isoformat()}) " if entry and entry.date else ""
    row = f"{'  ' * min(part.depth, DEEPEST)}{part.mark or '-'} {dated}{cut(safe(content))}"
    return _Piece(part.at + 1, content, shown, row, held, topics(content), entry is not None)


def _held(content: str) -> str:
    judged = judge(content, content)
    return f"the gate holds it: {judged.reason}" if judged.verdict == Verdict.HOLD else ""


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
