"""What an agent is told of its memory file: the lines that are trusted, made safe for a prompt, within the limits.

The lines keep the order of the file, and a list goes with its lead-in. A line that is held, unconfirmed or in conflict
stays in the file and is left out here with all that a reader takes together with it: what is left of a list may say the
opposite. What the agent knows and the file has no room for is told as well, in as many bytes again.
Reads the database alone, so that it answers while a hook waits.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file.passages import Part
from memories.capture.fields import agent_id
from memories.files.comparison import CONTRADICTS
from memories.files.document import Document, parse
from memories.files.limits import Limits
from memories.files.sections import RECENT, sections_for
from memories.files.unchanged import is_well
from memories.injection import passages, selector
from memories.injection.budget import tokens
from memories.injection.escape import safe
from memories.injection.ops import below_threshold, held, inactive
from memories.injection.passages import CODE_STANDS, SECTION_LEVEL, Row, Unit, is_sentence, plain
from memories.injection.selector import key_of
from memories.lifecycle import vouched
from memories.models import AgentFile, AgentFileEntry, FileState, Memory, Verdict, trust
from memories.models.trust import kept_back
from memories.taxonomy import AGENT

IN_FILE, NOT_IN_FILE = "in its file", "known to it, and not in its file"
IN_CONFLICT = "in conflict: a person decides which text holds"
NO_ROOM = "no room within the limits of the file"
NO_MEMORY = "the gate did not take it as a memory"
BETWEEN = "\n\n"
READ = (
    *("file", "section", "text", "since", "position", "left_because"),
    *("memory__uuid", "memory__observation", "memory__category", "memory__confidence", "memory__expires_at"),
    *("memory__created_at", "memory__verdict", "memory__verdict_reason", "memory__active", "memory__inactive_reason"),
    *("memory__provisional", "memory__confirmed_at", "memory__source", "memory__exposure"),
)
"""The columns that are read of an entry and of its memory: the hook waits for them."""


@dataclass(frozen=True, slots=True)
class Told:
    """The text for a prompt (empty when there is nothing to tell) and the record of it.

    `included` and `left_out` are entries as in a receipt, with `taxonomy` "agent". `untold` are the other lines that
    are left out, prose or of a deleted memory, as {text, reason}. `tokens` are characters / 4.
    """

    text: str = ""
    sha256: str = ""
    tokens: int = 0
    included: Sequence[dict[str, Any]] = ()
    left_out: Sequence[dict[str, Any]] = ()
    untold: Sequence[dict[str, str]] = ()
    file: int | None = None
    path: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """Return what a receipt keeps beside the entries; empty without a file."""
        if self.file is None:
            return {}
        return {
            **{name: getattr(self, name) for name in ("file", "path", "text", "sha256", "tokens", "untold")},
            "items": len(self.included),
        }


@dataclass(frozen=True, slots=True)
class _Entry:
    """A memory (None: it was deleted) with its line's text, and since when it is known."""

    memory: Memory | None
    since: datetime
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Passage:
    """A unit of the file, or a memory that the file has no room for, in its section."""

    unit: Unit[_Entry]
    section: str
    in_file: bool = True

    @property
    def rows(self) -> tuple[Row[_Entry], ...]:
        return self.unit.rows

    @property
    def under(self) -> tuple[str, ...]:
        """Return the sub-headings above it, as they are told."""
        below = (one for one in self.unit.headings if one.level > SECTION_LEVEL)
        return tuple(f"{'#' * min(one.level + 1, 6)} {safe(mask(one.text))}" for one in below)

    def repeats(self, said: selector.Texts) -> bool:
        """Whether all of it was told already."""
        return bool(self.rows) and all(key_of(row.text) in said for row in self.rows)

    @property
    def bytes(self) -> int:
        return sum(len(text.encode()) + 1 for text in (*self.under, *(row.shown for row in self.rows)))

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Order what leaves first: Recent Learnings, the lowest confidence, the oldest. Prose stays longest."""
        entries = [row.of for row in self.rows if row.of]
        confidence = min((one.memory.confidence for one in entries if one.memory), default=2.0)
        return (self.section != RECENT, confidence, min((one.since.timestamp() for one in entries), default=0.0))


NOTHING_TOLD = Told()


def told_to(agent: str, project_id: int | None, *, said: selector.Texts = selector.NOTHING) -> Told:
    """Return what the agent of this name is told in a project: nothing where it has no file, or its file is off.

    A passage is left out of which all was `said` elsewhere in the prompt.
    """
    if project_id is None or not agent:
        return NOTHING_TOLD
    file = AgentFile.objects.select_related("project").filter(project=project_id, agent=agent_id(agent)).first()
    return told(file, said=said) if file is not None and file.enabled else NOTHING_TOLD


def told(file: AgentFile, *, said: selector.Texts = selector.NOTHING) -> Told:
    """Return what the agent of `file` is told, whether it is on or off, without what was `said` elsewhere."""
    document = parse(file.text.encode())
    if document.unreadable:  # an earlier version took a merge conflict as it was
        return Told(file=file.pk, path=file.path)
    conflicts = set(file.conflicts.filter(answered_at=None).values_list("memory_id", flat=True)) - {None}
    rows = file.entries.exclude(left_because=CONTRADICTS).select_related("memory").only(*READ)
    entries = list(rows.order_by("position", "pk"))
    outside = [row.memory for row in entries if row.left_because and row.memory is not None]
    units = _units(file, document, [row for row in entries if not row.left_because], conflicts)
    section_of = sections_for(file.agent, file.project.files_sections).section_of
    others = [
        _Passage(Unit((_row(_Entry(memory, memory.created_at)),)), section_of(memory.category), in_file=False)
        for memory in [*outside, *_unwritten(file)]
        if not _why_not(memory, conflicts)
    ]
    most = Limits.of(file.limits, file.project.files_limits).bytes
    new = [one for one in units if not one.unit.why_not and not one.repeats(said)]
    told_units, no_room = _within(new, most)
    more, none_left = _within([one for one in others if not one.repeats(said)], most)
    again = [one for one in (*units, *others) if not one.unit.why_not and one.repeats(said)]
    omissions = [pair for one in units if one.unit.why_not for pair in one.unit.omissions()]
    omissions += [pair for one in again for pair in one.unit.omissions(selector.TOLD_ONCE)]
    omissions += [pair for one in (*no_room, *none_left) for pair in one.unit.omissions(NO_ROOM)]
    text = mask(_text([*told_units, *more], [section.name for section in document.sections]))
    return Told(
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest() if text else "",
        tokens=tokens(text),
        included=[
            _record(row.of.memory, IN_FILE if one.in_file else NOT_IN_FILE)
            for one in (*told_units, *more)
            for row in one.rows
            if row.of and row.of.memory
        ],
        left_out=[_record(row.of.memory, why) for row, why in omissions if row.of and row.of.memory],
        untold=[
            {"text": mask(row.text)[:400], "reason": why} for row, why in omissions if not (row.of and row.of.memory)
        ],
        file=file.pk,
        path=file.path,
    )


def _by_line(document: Document, rows: Iterable[AgentFileEntry]) -> dict[int, AgentFileEntry]:
    """Return the rows of the file's entries by the lines in which these begin."""
    places: dict[tuple[str, str], list[int]] = {}
    for entry in document.entries:
        places.setdefault((entry.section.casefold(), entry.text), []).append(entry.start)
    by_line = {}
    for row in rows:
        if lines := places.get((row.section.casefold(), row.text)):
            by_line[lines.pop(lines.index(row.position) if row.position in lines else 0)] = row
    return by_line


def _units(file: AgentFile, document: Document, rows: Sequence[AgentFileEntry], conflicts: set[int]) -> list[_Passage]:
    """Return the passages of the file in its order, and the rows of which the text has no line.

    An entry without a row is no memory: the gate did not take it. Prose that a person typed on a page is told.
    """
    by_line = _by_line(document, rows)
    starts = {entry.start for entry in document.entries}
    sections = {section.line: section.name for section in document.sections}
    parts = [part for passage in document.passages for part in passage.parts if part.at not in starts]
    usual = {name.casefold() for name in sections_for(file.agent, file.project.files_sections).names}
    ours = {at for at, name in sections.items() if name.casefold() in usual}
    headings = [one for one in document.headings if one.at not in ours and is_sentence(one)]
    prose = [*(part.text for part in parts), *(heading.text for heading in headings)]
    typed = vouched.vouched(map(plain, prose), file.project_id)

    def why_not_prose(text: str) -> str:
        return "" if plain(text) in typed else _why_not_prose(text)

    def row_of(part: Part) -> Row[_Entry]:
        if (row := by_line.get(part.at)) is not None:
            return _row(_Entry(row.memory, row.since, row.text), _why_not(row.memory, conflicts), part)
        why = NO_MEMORY if part.at in starts else CODE_STANDS if part.is_code else why_not_prose(part.text)
        return passages.row(part.text, None, why, part=part)

    units = passages.units(document, row_of, lambda one: "" if one.at in ours else why_not_prose(one.text))
    result = [_Passage(one, next((sections[h.at] for h in one.headings if h.at in sections), "")) for one in units]
    for row in rows:
        if row not in by_line.values():
            entry = _Entry(row.memory, row.since, row.text)
            result.append(_Passage(Unit((_row(entry, _why_not(row.memory, conflicts)),)), row.section))
    return result


def _row(entry: _Entry, why_not: str = "", part: Part | None = None) -> Row[_Entry]:
    return passages.row(entry.memory.observation if entry.memory else entry.text, entry, why_not, part=part)


def _unwritten(file: AgentFile) -> list[Memory]:
    """Return what no sync has noted, because the file cannot be read or written."""
    if is_well(file) or file.state == FileState.NEW:
        return []
    rows = Memory.objects.filter(taxonomy=AGENT.slug, project=file.project_id, agent=file.agent, active=True)
    ids = file.entries.filter(memory__isnull=False).values("memory")
    return list(rows.exclude(pk__in=ids).order_by("created_at", "pk"))


def _why_not(memory: Memory | None, conflicts: set[int]) -> str:
    if memory is None:
        return "its memory was deleted"
    if memory.pk in conflicts:
        return IN_CONFLICT
    if memory.verdict != Verdict.ALLOW:
        return held(memory.verdict_reason)
    if not memory.active:
        return inactive(memory.inactive_reason)
    if memory.expires_at is not None and memory.expires_at <= timezone.now():
        return "expired"
    if waits := kept_back(memory):
        return waits
    return below_threshold(memory.confidence) if memory.confidence < (AGENT.injected_from or 0.0) else ""


def _why_not_prose(text: str) -> str:
    """Say why a line of prose is not told. Nobody confirms prose, so what would need a confirmation is left out."""
    if reason := passages.held(text):  # what says little is told with the rest
        return held(reason)
    if trust.mode() == trust.STRICT:
        return "prose: CLAUDEOPS_TRUST=strict wants a person to type it on the page of the file"
    about = passages.topics_of(text)
    return f"prose about {', '.join(about)}: write it as an entry, so that a person can confirm it" if about else ""


def _within(units: list[_Passage], most: int) -> tuple[list[_Passage], list[_Passage]]:
    """Return the units whose text has at most `most` bytes, and those that had to leave."""
    in_section = Counter(unit.section for unit in units)
    headings = {section: len(_heading(section).encode()) + len(BETWEEN) for section in in_section}
    size = sum(unit.bytes for unit in units) + sum(headings.values()) - len(BETWEEN)
    gone = []
    for unit in sorted(units, key=lambda unit: unit.rank):
        if size <= most:
            break
        gone.append(unit)
        in_section[unit.section] -= 1
        size -= unit.bytes + (0 if in_section[unit.section] else headings[unit.section])
    gone_ids = set(map(id, gone))
    return [unit for unit in units if id(unit) not in gone_ids], gone


def _heading(section: str) -> str:
    return f"### {safe(section)}"


def _text(units: Iterable[_Passage], names: Sequence[str]) -> str:
    """Format the units below their sections, in the order of the file; a section without lines is left out."""
    by_section: dict[str, list[_Passage]] = {name: [] for name in names}
    for unit in units:
        by_section.setdefault(unit.section, []).append(unit)
    parts = []
    for name, group in by_section.items():
        rows, under = [_heading(name)] if name else [], tuple[str, ...]()
        for unit in group:
            same = sum(1 for one, other in zip(unit.under, under, strict=False) if one == other)
            rows += unit.under[same:]
            rows += [row.shown for row in unit.rows]
            under = unit.under
        if group:
            parts.append("\n".join(rows))
    return BETWEEN.join(parts)


def _record(memory: Memory, reason: str) -> dict[str, Any]:
    """Return the entry of a receipt. The text of a held memory is not copied: the gate held it."""
    return {
        "id": memory.pk,
        "uuid": str(memory.uuid),
        "service": None,
        "category": memory.category,
        "confidence": memory.confidence,
        "observation": memory.observation if memory.verdict == Verdict.ALLOW else "",
        "taxonomy": AGENT.slug,
        "reason": reason,
    }
