"""What an agent is told of its memory file: the lines that are trusted, made safe for a prompt, within the limits.

It is not the file as it stands: a line that is held, unconfirmed or in conflict stays in the file and is left out here,
and what the agent knows and the file has no room for is told as well, in as many bytes again.
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
from memories.capture.fields import agent_id
from memories.capture.gate import judge
from memories.capture.text import fold
from memories.capture.topics import topics
from memories.files.comparison import CONTRADICTS
from memories.files.document import MOST_ENTRIES, Document, parse
from memories.files.limits import Limits
from memories.files.sections import RECENT, sections_for
from memories.files.unchanged import is_well
from memories.injection.budget import tokens
from memories.injection.escape import safe
from memories.injection.ops import below_threshold, held, inactive
from memories.models import AgentFile, FileState, Memory, Verdict
from memories.models.trust import kept_back
from memories.taxonomy import AGENT

IN_FILE, NOT_IN_FILE = "in its file", "known to it, and not in its file"
IN_CONFLICT = "in conflict: a person decides which text holds"
NO_ROOM = "no room within the limits of the file"
MOST_PROSE = 100
"""Lines of prose that are told; a file of notes has few."""
BETWEEN = "\n\n"
READ = (
    *("file", "section", "text", "since", "position", "left_because"),
    *("memory__uuid", "memory__observation", "memory__category", "memory__confidence", "memory__expires_at"),
    *("memory__created_at", "memory__verdict", "memory__verdict_reason", "memory__active", "memory__inactive_reason"),
    *("memory__provisional", "memory__confirmed_at"),
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
    """One line that may be told, as it stands in the file and as it is told. `memory` is None for prose."""

    section: str
    text: str
    shown: str
    memory: Memory | None
    since: datetime | None
    order: int

    @property
    def bytes(self) -> int:
        return len(self.shown.encode()) + 1

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Order what leaves first: Recent Learnings, the lowest confidence, the oldest. Prose stays longest."""
        confidence = 2.0 if self.memory is None else self.memory.confidence
        return (self.section != RECENT, confidence, self.since.timestamp() if self.since else 0.0)


NOTHING_TOLD = Told()


def told_to(agent: str, project_id: int | None) -> Told:
    """Return what the agent of this name is told in a project: nothing where it has no file, or its file is off."""
    if project_id is None or not agent:
        return NOTHING_TOLD
    file = AgentFile.objects.select_related("project").filter(project=project_id, agent=agent_id(agent)).first()
    return told(file) if file is not None and file.enabled else NOTHING_TOLD


def told(file: AgentFile) -> Told:
    """Return what the agent of `file` is told, whether it is on or off."""
    document = parse(file.text.encode())
    if document.unreadable:  # an earlier version took a merge conflict as it was
        return Told(file=file.pk, path=file.path)
    conflicts = set(file.conflicts.filter(answered_at=None).values_list("memory_id", flat=True)) - {None}
    lines: list[_Line] = []
    outside: list[Memory] = []
    omissions: list[tuple[str, Memory | None, str]] = []
    rows = file.entries.exclude(left_because=CONTRADICTS).select_related("memory").only(*READ)
    for order, row in enumerate(rows.order_by("position", "pk")):
        memory = row.memory
        if row.left_because:
            outside += [memory] if memory is not None else []
        elif why := _why_not(memory, conflicts):
            omissions.append((row.text, memory, why))
        elif memory is not None:
            lines.append(_line(row.section, memory.observation, order, memory, row.since))
    for order, (section, text) in enumerate(_prose(document)):
        if why := _why_not_prose(text):
            omissions.append((text, None, why))
        else:
            lines.append(_line(section, text, order - MOST_PROSE))
    names = [section.name for section in document.sections]
    most = Limits.of(file.limits, file.project.files_limits).bytes
    section_of = sections_for(file.agent, file.project.files_sections).section_of
    others = [
        _line(section_of(memory.category), memory.observation, MOST_ENTRIES + order, memory, memory.created_at)
        for order, memory in enumerate([*outside, *_unwritten(file)])
        if not _why_not(memory, conflicts)
    ]
    (file_lines, no_room), (more, none_left) = _within(lines, most), _within(others, most)
    omissions += [(line.text, line.memory, NO_ROOM) for line in (*no_room, *none_left)]
    text = mask(_text([*file_lines, *more], names))
    return Told(
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest() if text else "",
        tokens=tokens(text),
        included=[
            _entry(line.memory, IN_FILE if line.order < MOST_ENTRIES else NOT_IN_FILE)
            for line in (*file_lines, *more)
            if line.memory is not None
        ],
        left_out=[_entry(memory, why) for _, memory, why in omissions if memory is not None],
        untold=[{"text": mask(text)[:400], "reason": why} for text, memory, why in omissions if memory is None],
        file=file.pk,
        path=file.path,
    )


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
    if judgement.verdict != "allow":
        return held(judgement.reason)
    about = topics(text)
    return f"prose about {', '.join(about)}: write it as an entry, so that a person can confirm it" if about else ""


def _prose(document: Document) -> list[tuple[str, str]]:
    """Return (section, line) of what people wrote between the entries."""
    return [(section.name, text) for section in document.sections for text in section.prose][:MOST_PROSE]


def _line(section: str, text: str, order: int, memory: Memory | None = None, since: datetime | None = None) -> _Line:
    return _Line(section, text, f"- {safe(text)}", memory, since, order)


def _within(lines: list[_Line], most: int) -> tuple[list[_Line], list[_Line]]:
    """Return the lines whose text has at most `most` bytes, and those that had to leave."""
    in_section = Counter(line.section for line in lines)
    headings = {section: len(_heading(section).encode()) + len(BETWEEN) for section in in_section}
    size = sum(line.bytes for line in lines) + sum(headings.values()) - len(BETWEEN)
    gone = []
    for line in sorted(lines, key=lambda line: line.rank):
        if size <= most:
            break
        gone.append(line)
        in_section[line.section] -= 1
        size -= line.bytes + (0 if in_section[line.section] else headings[line.section])
    gone_ids = set(map(id, gone))
    return [line for line in lines if id(line) not in gone_ids], gone


def _heading(section: str) -> str:
    return f"### {safe(section)}"


def _text(lines: Iterable[_Line], names: Sequence[str]) -> str:
    """Format the lines below their sections, in the order of the file; a section without lines is left out."""
    by_section: dict[str, list[_Line]] = {name: [] for name in names}
    for line in lines:
        by_section.setdefault(line.section, []).append(line)
    parts = []
    for name, group in by_section.items():
        if group:
            rows = sorted(group, key=lambda line: line.order)
            parts.append("\n".join([_heading(name), *(line.shown for line in rows)]))
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
