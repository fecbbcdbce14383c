"""Compare an agent's file with its memories, as both are now and as they were at the last sync. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from claudeops.lib.tracked_file import disk
from memories.committers import Look
from memories.files.authors import FILE, Authors, authors_of
from memories.files.document import Document, Entry, parse
from memories.files.limits import Limits
from memories.files.merge import Base, Known, Plan, plan
from memories.files.older import Converted
from memories.files.sections import SectionSet
from memories.models import AgentFile, AgentFileEntry, ConflictKind, Disagreement, DisagreementKind, Memory, Verdict
from memories.models.memory import MemoryQuerySet
from memories.models.trust import kept_back
from memories.taxonomy import AGENT

CONTRADICTS = "it contradicts a line of the file: a person decides"
"""Why a memory is not in the file while that contradiction is open."""


@dataclass(slots=True)
class Context:
    """What stays the same during one sync."""

    file: AgentFile
    path: Path
    sections: SectionSet
    limits: Limits
    by: str
    at: datetime
    seen: int = 0
    older: Converted | None = None
    """What the document was made of, when the agent had a file of an older shape."""
    older_paths: tuple[Path, ...] = ()
    deleted_by: str = ""
    """Who deleted the file, by git."""

    def since(self, entry: Entry) -> datetime:
        day = self.older.since(entry.start, entry.end) if self.older else None
        return min(day or self.at, self.at)

    @property
    def look(self) -> Look:
        return Look(self.file.project, self.file.synced_at, self.at)

    def authors(self, document: Document) -> Authors:
        """Return who wrote the lines of the document."""
        if self.deleted_by:
            return Authors(last=self.deleted_by)
        if self.older is None:
            return authors_of(self.path, document, self.look)
        per_file = [authors_of(path, parse(disk.read(path).data), self.look) for path in self.older_paths]
        sources = enumerate(self.older.sources)
        return Authors({line: per_file[at[0]].lines.get(at[1], FILE) for line, at in sources if at is not None})

    def rows(self) -> MemoryQuerySet:
        return Memory.objects.filter(taxonomy=AGENT.slug, project=self.file.project_id, agent=self.file.agent)


@dataclass(slots=True)
class Comparison:
    """One comparison: the plan, the memories by id, and their rows in the file.

    `fresh` are memories that are to come into the file, `left` those that left it before, `contradicting` the open
    contradictions between these and its lines.
    """

    plan: Plan
    memories: Mapping[int, Memory]
    entries: Mapping[int, AgentFileEntry]
    fresh: list[Memory]
    left: list[Memory]
    contradicting: list[Disagreement]


def compare(context: Context, document: Document) -> Comparison:
    rows = list(context.file.entries.order_by("position", "pk"))
    entries = {row.memory_id: row for row in rows if row.memory_id is not None}
    memories = {row.pk: row for row in context.rows().filter(active=True).order_by("created_at", "pk")}
    if gone := [pk for pk in entries if pk not in memories]:
        memories |= {row.pk: row for row in Memory.objects.filter(pk__in=gone)}
    # A row whose memory was deleted has no id: any number that no memory has.
    lines = [row for row in rows if not row.left_because]
    missing = _taken_out(context) if len({row.text.lower() for row in lines}) < len(lines) else set[int | None]()
    base = [Base(row.memory_id or -row.pk, row.section, row.text, row.memory_id in missing) for row in lines]
    standing = {one.memory_id for one in base}
    out = {pk: row for pk, row in memories.items() if row.active and pk not in standing}
    by_id = {pk: Known(row.observation, row.category, row.active) for pk, row in memories.items()}
    outside = {row.observation: pk for pk, row in sorted(out.items(), reverse=True)}
    merge_plan = plan(base, document, by_id, context.sections, outside, context.limits.sections)
    in_file = {row.memory_id for row in merge_plan.placed}
    ready = [row for pk, row in out.items() if pk not in in_file and _may_be_written(row)]
    contradicting = _contradicting(in_file, [row.pk for row in ready])
    disputed = {one.newer_id for one in contradicting}
    known_text = {
        pk: row.text
        for pk, row in entries.items()
        if row.left_because and (row.left_because != CONTRADICTS or pk in disputed)
    }
    fresh = [row for row in ready if known_text.get(row.pk) != row.observation]
    return Comparison(merge_plan, memories, entries, fresh, [row for row in ready if row not in fresh], contradicting)


def _taken_out(context: Context) -> set[int | None]:
    """Return the memories whose line a person took out while they changed: that is a question that waits."""
    rows = context.file.conflicts.filter(answered_at=None, kind=ConflictKind.REMOVED_IN_FILE)
    return set(rows.values_list("memory_id", flat=True))


def _may_be_written(row: Memory) -> bool:
    """Whether a memory may stand in the file, where its agent reads it whatever the prompt says."""
    sure = row.confidence >= (AGENT.injected_from or 0.0)
    return row.active and row.verdict == Verdict.ALLOW and sure and not kept_back(row)


def _contradicting(standing: Iterable[int], others: Iterable[int]) -> list[Disagreement]:
    """Return the open contradictions between lines of the file and memories that are not in it."""
    rows = Disagreement.objects.open().filter(
        kind=DisagreementKind.CONTRADICTION, older__in=list(standing), newer__in=list(others)
    )
    return list(rows.select_related("older", "newer").order_by("pk"))
