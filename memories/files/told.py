"""What an agent is told of its memory file: the lines that are trusted, made safe for a prompt, within the limits.

The lines keep the order of the file, and a list goes with its lead-in. A line that is held, unconfirmed or in conflict
stays in the file and is left out here with all that a reader takes together with it: what is left of a list may say the
opposite. What the agent knows and the file has no room for is told as well, in as many bytes again.
Reads the database alone, so that it answers while a hook waits.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import CODE, Heading, Part, passages
from memories.capture.fields import agent_id
from memories.capture.gate import judge
from memories.capture.text import fold
from memories.capture.topics import topics
from memories.files.comparison import CONTRADICTS
from memories.files.document import FENCED, Document, parse
from memories.files.limits import Limits
from memories.files.sections import RECENT, sections_for
from memories.files.unchanged import is_well
from memories.injection import selector
from memories.injection.budget import tokens
from memories.injection.escape import safe
from memories.injection.ops import below_threshold, held, inactive
from memories.injection.selector import key_of
from memories.models import AgentFile, AgentFileEntry, FileState, Memory, Verdict
from memories.models.trust import kept_back
from memories.taxonomy import AGENT

IN_FILE, NOT_IN_FILE = "in its file", "known to it, and not in its file"
IN_CONFLICT = "in conflict: a person decides which text holds"
NO_ROOM = "no room within the limits of the file"
WITH_IT = "left out with what stands beside it: {}"
NO_MEMORY = "the gate did not take it as a memory"
CODE_STANDS = "it holds code, which is not told"
SECTION_LEVEL = 2
LONG_HEADING = 4
"""Words from which on a heading is judged as a sentence."""
DEEPEST = 6
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
class _Line:
    """One line, with its bullet and its indent. `memory` is None for prose; `why_not` keeps it back."""

    shown: str
    text: str
    memory: Memory | None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class _Unit:
    """Lines that are told together or not at all: a list with its lead-in, or an entry with what stands below it.

    `under` are the sub-headings above it, as they are told.
    """

    section: str
    lines: tuple[_Line, ...]
    since: datetime | None
    in_file: bool = True
    under: tuple[str, ...] = ()

    @property
    def why_not(self) -> str:
        return next((line.why_not for line in self.lines if line.why_not), "")

    def repeats(self, said: selector.Texts) -> bool:
        """Whether all of it was told already."""
        return bool(self.lines) and all(key_of(line.text) in said for line in self.lines)

    @property
    def rows(self) -> tuple[str, ...]:
        return (*self.under, *(line.shown for line in self.lines))

    @property
    def bytes(self) -> int:
        return sum(len(row.encode()) + 1 for row in self.rows)

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Order what leaves first: Recent Learnings, the lowest confidence, the oldest. Prose stays longest."""
        confidence = min((line.memory.confidence for line in self.lines if line.memory), default=2.0)
        return (self.section != RECENT, confidence, self.since.timestamp() if self.since else 0.0)


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
    in_file = [row for row in entries if not row.left_because]
    by_line = _by_line(document, in_file)
    units = _units(document, by_line, conflicts)
    units += [_lost(row, conflicts) for row in in_file if row not in by_line.values()]
    omissions = [
        (line, line.why_not or WITH_IT.format(unit.why_not)) for unit in units if unit.why_not for line in unit.lines
    ]
    section_of = sections_for(file.agent, file.project.files_sections).section_of
    others = [
        _Unit(section_of(memory.category), (_line(memory.observation, memory),), memory.created_at, in_file=False)
        for memory in [*outside, *_unwritten(file)]
        if not _why_not(memory, conflicts)
    ]
    most = Limits.of(file.limits, file.project.files_limits).bytes
    new = [one for one in units if not one.why_not and not one.repeats(said)]
    told_units, no_room = _within(new, most)
    more, none_left = _within([one for one in others if not one.repeats(said)], most)
    again = (one for one in (*units, *others) if not one.why_not and one.repeats(said))
    omissions += [(line, selector.TOLD_ONCE) for unit in again for line in unit.lines]
    omissions += [(line, NO_ROOM) for unit in (*no_room, *none_left) for line in unit.lines]
    text = mask(_text([*told_units, *more], [section.name for section in document.sections]))
    return Told(
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest() if text else "",
        tokens=tokens(text),
        included=[
            _entry(line.memory, IN_FILE if unit.in_file else NOT_IN_FILE)
            for unit in (*told_units, *more)
            for line in unit.lines
            if line.memory is not None
        ],
        left_out=[_entry(line.memory, why) for line, why in omissions if line.memory is not None],
        untold=[{"text": mask(line.text)[:400], "reason": why} for line, why in omissions if line.memory is None],
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


def _lost(row: AgentFileEntry, conflicts: set[int]) -> _Unit:
    """Return the unit of a row whose line the text does not have."""
    text = row.memory.observation if row.memory else row.text
    return _Unit(row.section, (_line(text, row.memory, why_not=_why_not(row.memory, conflicts)),), row.since)


def _units(document: Document, rows: Mapping[int, AgentFileEntry], conflicts: set[int]) -> list[_Unit]:
    """Return the passages of the file in its order; `rows` are those of its entries, by their first lines.

    An entry without a row is no memory: the gate did not take it.
    """
    entries = {entry.start for entry in document.entries}
    sections = {section.line: section.name for section in document.sections}
    classes = [CODE if one == FENCED else one for one in document.classes]
    units = []
    for passage in passages([text for text, _ in document.lines], classes):
        section = next((sections[one.at] for one in passage.under if one.at in sections), "")
        above = [one for one in passage.under if one.level > SECTION_LEVEL]
        blocked = next((why for one in (section, *(one.text for one in above)) if (why := _why_not_heading(one))), "")
        since = [row.since for part in passage.parts if (row := rows.get(part.at))]
        lines: list[_Line] = []
        for part in passage.parts:
            row = rows.get(part.at)
            if row:
                why = _why_not(row.memory, conflicts)
            elif part.at in entries:
                why = NO_MEMORY
            else:
                why = CODE_STANDS if part.is_code else _why_not_prose(part.text)
            text = row.memory.observation if row and row.memory else row.text if row else part.text
            lines.append(_line(text, row.memory if row else None, part, why or blocked))
        units.append(_Unit(section, tuple(lines), min(since, default=None), under=tuple(map(_sub_heading, above))))
    return units


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
    judgement = judge(text, fold(text))
    if judgement.verdict == "hold":  # what says little is told with the rest
        return held(judgement.reason)
    about = topics(text)
    return f"prose about {', '.join(about)}: write it as an entry, so that a person can confirm it" if about else ""


def _sub_heading(one: Heading) -> str:
    return f"{'#' * min(one.level + 1, 6)} {safe(mask(one.text))}"


def _why_not_heading(title: str) -> str:
    """Say why nothing below a heading is told; a few words of it name something, and order nothing."""
    return _why_not_prose(title) if len(title.split()) >= LONG_HEADING else ""


def _line(text: str, memory: Memory | None = None, part: Part | None = None, why_not: str = "") -> _Line:
    indent, mark = ("  " * min(part.depth, DEEPEST), part.mark or "-") if part else ("", "-")
    return _Line(f"{indent}{mark} {safe(text)}", text, memory, why_not)


def _within(units: list[_Unit], most: int) -> tuple[list[_Unit], list[_Unit]]:
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


def _text(units: Iterable[_Unit], names: Sequence[str]) -> str:
    """Format the units below their sections, in the order of the file; a section without lines is left out."""
    by_section: dict[str, list[_Unit]] = {name: [] for name in names}
    for unit in units:
        by_section.setdefault(unit.section, []).append(unit)
    parts = []
    for name, group in by_section.items():
        rows, under = [_heading(name)] if name else [], tuple[str, ...]()
        for unit in group:
            same = sum(1 for one, other in zip(unit.under, under, strict=False) if one == other)
            rows += unit.under[same:]
            rows += [line.shown for line in unit.lines]
            under = unit.under
        if group:
            parts.append("\n".join(rows))
    return BETWEEN.join(parts)


def _entry(memory: Memory, reason: str) -> dict[str, Any]:
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
