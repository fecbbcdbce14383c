"""Keep an agent's file and its memories in step. `sync_file` is the door; it may run twice at once and die anywhere.

A person's changes are stored first, with the lines that must leave; then the file is written; then what both sides have
is noted. A crash in between leaves the file behind the memories in nothing that the next comparison would take for a
person's change.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Max, Q

from claudeops.lib.tracked_file import disk
from claudeops.lib.tracked_file.disk import Problem, Stored, Unusable
from memories.capture.fields import agent_id
from memories.files import conflicts, storage
from memories.files.authors import BY_GIT, FILE, deleted_by
from memories.files.comparison import Comparison, Context, compare
from memories.files.document import Document, Entry, new_document, parse
from memories.files.limits import Limits, exceeded
from memories.files.next_document import Line, next_document
from memories.files.older import convert, is_older
from memories.files.readme import NAME as README
from memories.files.readme import readme
from memories.files.sections import sections_for
from memories.files.take_in import take_in, was_committed
from memories.files.unchanged import is_well, latest_change, looks_the_same, unchanged
from memories.lifecycle.lock import writing
from memories.models import (
    AgentFile,
    AgentFileEntry,
    FileState,
    Memory,
    MemoryChange,
    Project,
    to_utc,
)
from memories.taxonomy import AGENT
from memories.telemetry import record

log = logging.getLogger(__name__)

BY_ITSELF = "system"
"""Whose change is written where nobody asked for the sync: the author of the newest line that comes in."""
ATTEMPTS = 5
"""How often a file is read again because somebody saved it while it was compared."""
BATCH = 100
SYNCED_COLUMNS = (
    *("path", "state", "problem", "text", "sha256", "seen_change", "size", "modified_ns"),
    *("synced_at", "written_at", "written_by"),
)
ENTRY_COLUMNS = ("section", "text", "position", "left_because", "since", "author")
LOOKS = 3
SETTLED_SECONDS = 0.2
"""A file that was saved less than this ago may be half of it; one that is missing may come back: editors do both."""


@dataclass(slots=True)
class Synced:
    """What one sync did. `taken` are changes of people, `written` lines that the file got or lost."""

    agent: str
    state: str = FileState.NEW
    taken: int = 0
    written: int = 0
    left: int = 0
    conflicts: int = 0
    problem: str = ""
    path: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return bool(self.taken or self.written)


def agents_of(project: Project) -> list[str]:
    """Return the agents of a project that have a file, or memories for one."""
    files = set(AgentFile.objects.filter(project=project).values_list("agent", flat=True))
    memories = Memory.objects.filter(project=project, taxonomy=AGENT.slug, agent__isnull=False)
    return sorted(files | {agent for agent in memories.order_by().values_list("agent", flat=True).distinct() if agent})


def sync_project(
    project: Project, *, by: str = BY_ITSELF, at: datetime | None = None, force: bool = False
) -> list[Synced]:
    """Sync all files of a project, and make those that are missing. One that nobody changed costs next to nothing.

    A file that a person or a `git pull` put into the folder is one of them.
    """
    rows = AgentFile.objects.filter(project=project).select_related("project").defer("text")
    files = {file.agent: file for file in rows}
    quiet = set() if force else unchanged(project, list(files.values()))
    outcomes = []
    for agent in sorted({*agents_of(project), *_agents_on_disk(project)}):
        file = files.get(agent)
        if file is not None and (file.pk in quiet or not file.enabled):
            outcomes.append(Synced(agent, file.state, problem=file.problem, path=file.path))
        else:
            outcomes.append(sync_file(project, agent, by=by, at=at, create=True, force=force))
    return outcomes


def _agents_on_disk(project: Project) -> list[str]:
    try:
        return storage.agents_on_disk(project)
    except Unusable:  # the sync of each file says it
        return []


def sync_file(
    project: Project,
    agent: str,
    *,
    by: str = BY_ITSELF,
    at: datetime | None = None,
    create: bool = False,
    force: bool = False,
) -> Synced:
    """Sync the file of one agent. `create`: make the file if there is none. `by` is whose change is written.

    `force`: compare them although neither seems to have changed, as after a change of the limits.

    Never raises for what is wrong with the file: its state and problem say it. Waits for a sync of the same file. Not
    inside a transaction.
    """
    name = agent_id(agent)
    outcome = Synced(name)
    if not name:
        outcome.problem = f"{agent!r} is no name of an agent."
        return outcome
    if not project.path:
        outcome.state, outcome.problem = FileState.NO_REPOSITORY, f"Project {project.slug} has no repository path."
        return outcome
    with storage.lock_of(project.pk, name):
        file = _row(project, name, create)
        if file is None:
            return outcome
        if not file.enabled:
            outcome.state, outcome.path = file.state, file.path
            return outcome
        try:
            _sync(file, outcome, by, to_utc(at), force)
        except Unusable as error:
            outcome.state, outcome.problem = error.state, str(error)
            _note_problem(file, error.state, str(error))
    if outcome.changed:
        record(
            "memory.files.completed",
            component="files",
            source="sync",
            agent=name,
            project=project.slug,
            taken=outcome.taken,
            written=outcome.written,
            left=outcome.left,
            conflicts=outcome.conflicts,
        )
    return outcome


def _row(project: Project, agent: str, create: bool) -> AgentFile | None:
    rows = AgentFile.objects.select_related("project")
    if not create:
        return rows.filter(project=project, agent=agent).first()
    return rows.get_or_create(project=project, agent=agent)[0]


def _note_problem(file: AgentFile, state: str, problem: str) -> None:
    if (file.state, file.problem) != (state, problem[:500]):
        log.warning("memory file of agent %s: %s", file.agent, problem)
        AgentFile.objects.filter(pk=file.pk).update(state=state, problem=problem[:500])
        record(
            "memory.files.failed",
            component="files",
            source="sync",
            success=False,
            agent=file.agent,
            project=file.project.slug,
            state=str(state),
        )


def _sync(file: AgentFile, outcome: Synced, by: str, at: datetime, force: bool) -> None:
    project = file.project
    context = Context(
        file,
        storage.location(project, file.agent),
        sections_for(file.agent, project.files_sections),
        Limits.of(file.limits, project.files_limits),
        by,
        at,
    )
    outcome.path = storage.relative_path(project, file.agent)
    for _ in range(ATTEMPTS):
        context.seen = latest_change()
        if not force and _is_in_step(context, outcome):
            return
        if _bring_in_step(context, outcome):
            return
    raise Unusable(f"{context.path} was saved by somebody each time it was to be written.", state=Problem.UNWRITABLE)


def _is_in_step(context: Context, outcome: Synced) -> bool:
    """Whether neither side has changed since the last sync, without reading the file."""
    file = context.file
    if not (is_well(file) and looks_the_same(file)):
        return False
    comparison = compare(context, parse(file.text.encode()))
    if comparison.plan.edits or comparison.plan.gone or comparison.fresh or was_committed(context):
        return False
    with writing():
        _close_answered(context, comparison)
        AgentFile.objects.filter(pk=file.pk).update(seen_change=context.seen)
    outcome.state, outcome.problem = file.state, file.problem
    outcome.conflicts = file.conflicts.filter(answered_at=None).count()
    return True


def _bring_in_step(context: Context, outcome: Synced) -> bool:
    """Carry out one comparison; False when the file was saved meanwhile and has to be read again."""
    stored = _read(context)
    deleted = stored.missing and _is_deleted(context)
    document = Document() if deleted else _older(context, stored) or _document(context, stored)
    count, notes = take_in(context, document, compare(context, document))
    outcome.taken += count
    outcome.notes += notes
    comparison = compare(context, document)
    if deleted:
        _settle(context, document, stored, comparison, (), outcome)
        who = context.deleted_by.removeprefix(BY_GIT)
        raise Unusable(f"{who} deleted {outcome.path} in git: what stood in it is deactivated.", state=Problem.DELETED)
    if context.by == BY_ITSELF and comparison.fresh:
        newest = comparison.fresh[-1].pk
        context.by = _authors_of([newest])[newest]
    after, leaving, came = next_document(context, document, comparison)
    with writing():
        _mark_left(context, leaving)
    _explain_folder(context)
    if after.to_bytes() != stored.data or stored.missing:
        now = disk.read(context.path)
        if (now.missing, now.data) != (stored.missing, stored.data):
            return False
        stored = disk.write(context.path, after.to_bytes())
        outcome.written += 1
    _settle(context, after, stored, comparison, came, outcome)
    for report in context.older.reports if context.older else ():
        outcome.notes.append(str(report))
        log.info("memory file of agent %s: %s", context.file.agent, report)
    return True


def _is_deleted(context: Context) -> bool:
    """Whether a person deleted the file by a commit, as their answer to it. Raises Unusable before the commit."""
    context.deleted_by = deleted_by(context.path, context.look)
    if context.deleted_by == FILE:
        raise Unusable(f"{context.path} was removed by `git rm`, which waits for its commit.", state=Problem.DELETED)
    return bool(context.deleted_by)


def _explain_folder(context: Context) -> None:
    """Put the README into the folder with the first sync of an agent: a person may delete it."""
    file = context.file
    if file.sha256:
        return
    name = file.project.name or file.project.slug
    text = readme(name, context.sections, Limits.of(file.project.files_limits))
    storage.put_beside(file.project, README, text.encode())


def _read(context: Context) -> Stored:
    """Read the file when nobody has been saving it for a moment."""
    for _ in range(LOOKS):
        stored = disk.read(context.path)
        age = (time.time_ns() - stored.modified_ns) / 1e9
        if (stored.missing and not context.file.sha256) or (not stored.missing and not 0 <= age < SETTLED_SECONDS):
            break
        time.sleep(SETTLED_SECONDS)
    return stored


def _older(context: Context, stored: Stored) -> Document | None:
    """Return the document of an agent whose first file has an older name or shape; None when it has none.

    An older file stays where it is. One in the place of the new file is first copied beside it.
    """
    file = context.file
    context.older = None
    if file.sha256:
        return None
    if stored.missing:
        sources = storage.older_files(file.project, file.agent)
        files = [(name, disk.read(path).data) for name, path in sources]
    elif is_older(parse(stored.data), context.sections):
        name = storage.relative_to_folder(file.project, file.agent)
        sources, files = [(name, context.path)], [(name, stored.data)]
        storage.put_beside(file.project, f"{name}.older-{stored.sha256[:8]}", stored.data)
    else:
        return None
    if not files:
        return None
    for name, data in files:
        storage.checked(parse(data), name, "taken in")
    name = file.project.name or file.project.slug
    conversion = convert(files, file.agent, name, context.sections, context.limits.as_dict(), context.at)
    # Numbered lines are entries now, and there are several files.
    storage.checked(parse(conversion.document.to_bytes()), ", ".join(name for name, _ in files), "taken in")
    context.older, context.older_paths = conversion, tuple(path for _, path in sources)
    return conversion.document


def _document(context: Context, stored: Stored) -> Document:
    """Return the file to compare with; one that is gone is what it was, so that its lines do not count as removed."""
    file = context.file
    if stored.missing and file.text:
        return parse(file.text.encode())
    if stored.missing:
        name = file.project.name or file.project.slug
        return new_document(file.agent, name, context.sections, context.limits.as_dict(), context.at)
    return storage.checked(parse(stored.data), context.path)


def _mark_left(context: Context, leaving: Mapping[int, str]) -> None:
    """Note which memories leave the file, before it is written: else their missing lines would be a person's change."""
    rows = {row.memory_id: row for row in context.file.entries.filter(memory__in=leaving)}
    memories = Memory.objects.in_bulk(leaving)
    authors = _authors_of(set(memories) - set(rows))
    new, changed = [], []
    for pk, memory in memories.items():
        row, why = rows.get(pk), leaving[pk][:200]
        if row is None:
            section = context.sections.section_of(memory.category)
            row = AgentFileEntry(file=context.file, memory=memory, section=section, since=memory.created_at)
            row.author = authors[pk]
            new.append(row)
        elif (row.left_because, row.text) != (why, memory.observation):
            changed.append(row)
        row.left_because, row.text = why, memory.observation
    AgentFileEntry.objects.bulk_create(new)
    AgentFileEntry.objects.bulk_update(changed, ["left_because", "text"], batch_size=BATCH)


def _authors_of(memories: Iterable[int]) -> dict[int, str]:
    """Return who changed each memory last."""
    ids = set(memories)
    changes = MemoryChange.objects.filter(memory__in=ids).order_by()
    latest = changes.values("memory").annotate(last=Max("pk")).values("last")
    rows = MemoryChange.objects.filter(pk__in=latest).values_list("memory", "actor")
    return dict.fromkeys(ids, BY_ITSELF) | {pk: actor for pk, actor in rows if actor}


def _settle(
    context: Context, after: Document, stored: Stored, comparison: Comparison, came: Sequence[Line], outcome: Synced
) -> None:
    """Note what both sides have now."""
    file = context.file
    by_text: dict[tuple[str, str], Entry] = {}
    for entry in after.entries:
        by_text.setdefault((entry.section.casefold(), entry.text), entry)
    over = exceeded(after, context.limits)
    with writing():
        opened = comparison.plan.unsettled
        file.entries.filter(Q(memory__in=comparison.plan.gone) | Q(memory=None)).delete()
        placed = [
            (row.memory_id, row.section, row.text) for row in comparison.plan.placed if row.memory_id not in opened
        ]
        lines = {memory_id: by_text.get((section.casefold(), text)) for memory_id, section, text in (*placed, *came)}
        _note_lines(context, {pk: entry for pk, entry in lines.items() if entry is not None and pk > 0})
        for one in comparison.contradicting:
            conflicts.note_contradiction(file, one, at=context.at)
        _close_answered(context, comparison)
        outcome.conflicts = file.conflicts.filter(answered_at=None).count()
        outcome.left = file.entries.exclude(left_because="").count()
        outcome.state = FileState.FULL if over else FileState.OK
        outcome.problem = f"{'; '.join(over)}." if over else ""
        file.path, file.state, file.problem = outcome.path, outcome.state, outcome.problem[:500]
        file.text, file.sha256 = after.to_bytes().decode(), stored.sha256
        file.seen_change = context.seen
        file.size, file.modified_ns, file.synced_at = stored.size, stored.modified_ns, context.at
        if outcome.written:
            file.written_at, file.written_by = context.at, context.by[:150]
        # Not the columns that a person may have changed meanwhile.
        file.save(update_fields=SYNCED_COLUMNS)


def _note_lines(context: Context, lines: Mapping[int, Entry]) -> None:
    """Note the lines that the file has, by their memories."""
    rows = context.file.entries.filter(memory__in=lines)
    by_id = {row.memory_id: row for row in rows if row.memory_id is not None}
    edited = {pk for pk, row in by_id.items() if row.text != lines[pk].text}
    alive = set(Memory.objects.filter(pk__in=set(lines) - set(by_id)).values_list("pk", flat=True))
    authors = _authors_of(alive | edited)
    new, changed = [], []
    for pk, entry in lines.items():
        row = by_id.get(pk)
        line = (entry.section, entry.text, entry.start, "")
        if row is None and pk in alive:
            row = AgentFileEntry(file=context.file, memory_id=pk)
            new.append(row)
        elif row is not None and (row.section, row.text, row.position, row.left_because) != line:
            changed.append(row)
        else:
            continue
        row.section, row.text, row.position, row.left_because = line
        if pk in authors:
            row.since, row.author = context.at, authors[pk]
    AgentFileEntry.objects.bulk_create(new)
    AgentFileEntry.objects.bulk_update(changed, ENTRY_COLUMNS, batch_size=BATCH)


def _close_answered(context: Context, comparison: Comparison) -> None:
    """Close conflicts that are none any more: both sides agree, or the contradiction was answered elsewhere."""
    others = {one.newer_id for one in comparison.contradicting if one.newer_id is not None}
    conflicts.close_settled(context.file, still=comparison.plan.unsettled, contradicting=others, at=context.at)
