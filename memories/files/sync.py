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
from pathlib import Path

from django.db import transaction
from django.db.models import Max, Q

from memories import store
from memories.capture.agent_id import agent_id
from memories.capture.statement import Provenance, Statement
from memories.errors import InvalidMemory, MemoriesError
from memories.files import conflicts, storage
from memories.files.authors import FILE, Authors, authors_of, is_person
from memories.files.document import Document, Edits, Entry, heading, new_document, parse, same_name
from memories.files.limits import Item, Limits, exceeded, fit
from memories.files.merge import Base, Changed, Found, Known, Plan, plan
from memories.files.older import Converted, convert, is_older
from memories.files.readme import NAME as README
from memories.files.readme import readme
from memories.files.sections import RECENT, SectionSet, sections_for
from memories.files.storage import Stored, Unusable
from memories.files.unchanged import is_well, latest_change, looks_the_same, unchanged
from memories.lifecycle import verbs
from memories.lifecycle.lock import writing
from memories.models import (
    AgentFile,
    AgentFileEntry,
    Change,
    ConflictKind,
    Disagreement,
    DisagreementKind,
    FileState,
    Inactive,
    Memory,
    MemoryChange,
    Project,
    Source,
    Verdict,
    to_utc,
)
from memories.models.memory import MemoryQuerySet
from memories.models.trust import kept_back
from memories.taxonomy import AGENT

log = logging.getLogger(__name__)

CHANNEL = "file"
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
REMOVED = "Removed from the file."
CONTRADICTS = "it contradicts a line of the file: a person decides"
NO_SECTION = "the file has as many sections as it may have"
TOO_LARGE = "the file is larger than its limits: nothing is added"


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
    done = []
    for agent in sorted({*agents_of(project), *_agents_on_disk(project)}):
        file = files.get(agent)
        if file is not None and (file.pk in quiet or not file.enabled):
            done.append(Synced(agent, file.state, problem=file.problem, path=file.path))
        else:
            done.append(sync_file(project, agent, by=by, at=at, create=True, force=force))
    return done


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
    done = Synced(name)
    if not name:
        done.problem = f"{agent!r} is no name of an agent."
        return done
    if not project.path:
        done.state, done.problem = FileState.NO_REPOSITORY, f"Project {project.slug} has no repository path."
        return done
    with storage.lock_of(project.pk, name):
        file = _row(project, name, create)
        if file is None:
            return done
        if not file.enabled:
            done.state, done.path = file.state, file.path
            return done
        try:
            _sync(file, done, by, to_utc(at), force)
        except Unusable as error:
            done.state, done.problem = error.state, str(error)
            _note_problem(file, error.state, str(error))
    return done


def _row(project: Project, agent: str, create: bool) -> AgentFile | None:
    rows = AgentFile.objects.select_related("project")
    if not create:
        return rows.filter(project=project, agent=agent).first()
    return rows.get_or_create(project=project, agent=agent)[0]


def _note_problem(file: AgentFile, state: str, problem: str) -> None:
    if (file.state, file.problem) != (state, problem[:500]):
        log.warning("memory file of agent %s: %s", file.agent, problem)
        AgentFile.objects.filter(pk=file.pk).update(state=state, problem=problem[:500])


@dataclass(slots=True)
class _Context:
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

    def since(self, entry: Entry) -> datetime:
        day = self.older.since(entry.start, entry.end) if self.older else None
        return min(day or self.at, self.at)

    def authors(self, document: Document) -> Authors:
        """Return who wrote the lines of the document."""
        if self.older is None:
            return authors_of(self.path, document)
        found = [authors_of(path, parse(storage.read(path).data)) for path in self.older_paths]
        sources = enumerate(self.older.sources)
        return Authors({line: found[at[0]].lines.get(at[1], FILE) for line, at in sources if at is not None})

    def rows(self) -> MemoryQuerySet:
        return Memory.objects.filter(taxonomy=AGENT.slug, project=self.file.project_id, agent=self.file.agent)


def _sync(file: AgentFile, done: Synced, by: str, at: datetime, force: bool) -> None:
    project = file.project
    context = _Context(
        file,
        storage.location(project, file.agent),
        sections_for(file.agent, project.files_sections),
        Limits.of(file.limits, project.files_limits),
        by,
        at,
    )
    done.path = storage.relative_path(project, file.agent)
    for _ in range(ATTEMPTS):
        context.seen = latest_change()
        if not force and _is_in_step(context, done):
            return
        if _bring_in_step(context, done):
            return
    raise Unusable(FileState.UNWRITABLE, f"{context.path} was saved by somebody each time it was to be written.")


def _is_in_step(context: _Context, done: Synced) -> bool:
    """Whether neither side has changed since the last sync, without reading the file."""
    file = context.file
    if not (is_well(file) and looks_the_same(file)):
        return False
    found = _compare(context, parse(file.text.encode()))
    if found.plan.edits or found.plan.gone or found.fresh or _was_committed(context):
        return False
    with writing():
        _close_answered(context, found)
        AgentFile.objects.filter(pk=file.pk).update(seen_change=context.seen)
    done.state, done.problem = file.state, file.problem
    done.conflicts = file.conflicts.filter(answered_at=None).count()
    return True


def _bring_in_step(context: _Context, done: Synced) -> bool:
    """Carry out one comparison; False when the file was saved meanwhile and has to be read again."""
    stored = _read(context)
    document = _older(context, stored) or _document(context, stored)
    _take_in(context, document, _compare(context, document), done)
    found = _compare(context, document)
    if context.by == BY_ITSELF and found.fresh:
        newest = found.fresh[-1].pk
        context.by = _authors_of([newest])[newest]
    after, leaving, came = _after(context, document, found)
    with writing():
        _mark_left(context, leaving)
    _explain_folder(context)
    if after.to_bytes() != stored.data or stored.missing:
        now = storage.read(context.path)
        if (now.missing, now.data) != (stored.missing, stored.data):
            return False
        stored = storage.write(context.path, after.to_bytes())
        done.written += 1
    _settle(context, after, stored, found, came, done)
    for report in context.older.reports if context.older else ():
        done.notes.append(str(report))
        log.info("memory file of agent %s: %s", context.file.agent, report)
    return True


def _explain_folder(context: _Context) -> None:
    """Put the README into the folder with the first sync of an agent: a person may delete it."""
    file = context.file
    if file.sha256:
        return
    name = file.project.name or file.project.slug
    text = readme(name, context.sections, Limits.of(file.project.files_limits))
    storage.put_beside(file.project, README, text.encode())


def _read(context: _Context) -> Stored:
    """Read the file when nobody has been saving it for a moment."""
    for _ in range(LOOKS):
        stored = storage.read(context.path)
        age = (time.time_ns() - stored.modified_ns) / 1e9
        if (stored.missing and not context.file.sha256) or (not stored.missing and not 0 <= age < SETTLED_SECONDS):
            break
        time.sleep(SETTLED_SECONDS)
    return stored


def _older(context: _Context, stored: Stored) -> Document | None:
    """Return the document of an agent whose first file has an older name or shape; None when it has none.

    An older file stays where it is. One in the place of the new file is first copied beside it.
    """
    file = context.file
    context.older = None
    if file.sha256:
        return None
    if stored.missing:
        found = storage.older_files(file.project, file.agent)
        files = [(name, storage.read(path).data) for name, path in found]
    elif is_older(parse(stored.data), context.sections):
        name = storage.relative_to_folder(file.project, file.agent)
        found, files = [(name, context.path)], [(name, stored.data)]
        storage.put_beside(file.project, f"{name}.older-{stored.sha256[:8]}", stored.data)
    else:
        return None
    if not files:
        return None
    name = file.project.name or file.project.slug
    made = convert(files, file.agent, name, context.sections, context.limits.as_dict(), context.at)
    if problem := next((report.problem for report in made.reports if report.problem), ""):
        raise Unusable(FileState.UNREADABLE, f"{problem}.")
    if problem := parse(made.document.to_bytes()).unreadable:  # numbered lines that are entries now, several files
        names = ", ".join(name for name, _ in files)
        raise Unusable(FileState.UNREADABLE, f"{names} cannot be taken in: {problem}.")
    context.older, context.older_paths = made, tuple(path for _, path in found)
    return made.document


def _document(context: _Context, stored: Stored) -> Document:
    """Return the file to compare with; one that is gone is what it was, so that its lines do not count as removed."""
    file = context.file
    if stored.missing and file.text:
        return parse(file.text.encode())
    if stored.missing:
        name = file.project.name or file.project.slug
        return new_document(file.agent, name, context.sections, context.limits.as_dict(), context.at)
    document = parse(stored.data)
    if document.unreadable:
        raise Unusable(FileState.UNREADABLE, f"{context.path} cannot be read: {document.unreadable}.")
    return document


@dataclass(slots=True)
class _Found:
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


def _compare(context: _Context, document: Document) -> _Found:
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
    known = {pk: Known(row.observation, row.category, row.active) for pk, row in memories.items()}
    outside = {row.observation: pk for pk, row in sorted(out.items(), reverse=True)}
    made = plan(base, document, known, context.sections, outside, context.limits.sections)
    in_file = {row.memory_id for row in made.placed}
    ready = [row for pk, row in out.items() if pk not in in_file and _may_be_written(row)]
    contradicting = _contradicting(in_file, [row.pk for row in ready])
    disputed = {one.newer_id for one in contradicting}
    known_text = {
        pk: row.text
        for pk, row in entries.items()
        if row.left_because and (row.left_because != CONTRADICTS or pk in disputed)
    }
    fresh = [row for row in ready if known_text.get(row.pk) != row.observation]
    return _Found(made, memories, entries, fresh, [row for row in ready if row not in fresh], contradicting)


def _taken_out(context: _Context) -> set[int | None]:
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


# A person's changes.


def _take_in(context: _Context, document: Document, found: _Found, done: Synced) -> None:
    """Store what people changed in the file, and note the conflicts."""
    made = found.plan
    if not (made.by_people or made.conflicts or _has_unsure_lines(context)):
        return
    authors = context.authors(document)
    for memory_id, entry in made.returned.items():
        _place(context, memory_id, entry, authors.of(entry.start, entry.end))
    for one in made.changed:
        done.taken += _change(context, one, authors, done)
    for memory_id in made.removed:
        _remove(context, memory_id, authors.last)
        done.taken += 1
    for entry in made.added:  # last: a line may say in its section what a memory said before it moved
        done.taken += _add(context, entry, authors)
    with writing():
        for conflict in made.conflicts:
            line = next((row for row in document.entries if row.text == conflict.file_text), None)
            author = authors.of(line.start, line.end) if line else authors.last
            conflicts.note(context.file, conflict, author=author, at=context.at)
    _confirm_committed(context, document, authors)


def _provenance(context: _Context, author: str) -> Provenance:
    """Return the provenance of a line: a person's who committed it, else of outside text, which the gate judges."""
    person = is_person(author)
    return Provenance(
        Source.HUMAN if person else Source.IMPORT,
        author,
        project_id=context.file.project_id,
        agent=context.file.agent,
        channel=CHANNEL,
        at=context.at,
        exposure="nothing" if person else "outside",
        exposed_to=() if person else ("an uncommitted line of the file",),
    )


def _add(context: _Context, entry: Entry, authors: Authors) -> int:
    author = authors.of(entry.start, entry.end)
    category = context.sections.type_of(entry.section)
    try:
        if back := _taken_out_before(context, entry, author):
            _bring_back(context, back, entry, author, category)
            return 1
        statement = Statement(category, entry.text, taxonomy=AGENT.slug, confidence=1.0 if is_person(author) else 0.7)
        stored = store.place(statement, _provenance(context, author), at=context.at)
    except InvalidMemory as error:
        log.info("a line of %s is not stored: %s", context.path, error)
        return 0
    if stored.memory_id is None:
        return 0
    _place(context, stored.memory_id, entry, author)
    return 1


def _taken_out_before(context: _Context, entry: Entry, author: str) -> Memory | None:
    """Return the memory of a line that is back: cut in one save and pasted in the next, or on another branch.

    What a person took out, only a person brings back.
    """
    rows = context.rows().filter(active=False, inactive_reason=Inactive.OPERATOR, observation=entry.text)
    for memory in rows.order_by("pk"):
        last = MemoryChange.objects.filter(memory=memory).order_by("-pk").first()
        if last is None or (last.kind, last.reason) != (Change.DEACTIVATED, REMOVED):
            continue
        if last.actor in (FILE, author) or is_person(author):
            return memory
    return None


def _bring_back(context: _Context, memory: Memory, entry: Entry, author: str, category: str) -> None:
    with writing():
        verbs.reactivate(memory, by=author, at=context.at, reason="Back in the file.")
        if memory.category != category:
            verbs.edit(memory.pk, by=author, at=context.at, reason="Changed in the file.", category=category)
        if memory.waits and is_person(author):
            verbs.approve(memory, by=author, at=context.at, reason="Committed in the file.", expected_text=entry.text)
        _place(context, memory.pk, entry, author)


def _place(context: _Context, memory_id: int, entry: Entry, author: str) -> None:
    AgentFileEntry.objects.update_or_create(
        file=context.file,
        memory_id=memory_id,
        defaults={
            "section": entry.section,
            "text": entry.text,
            "left_because": "",
            "author": author,
            "since": context.since(entry),
            "position": entry.start,
        },
    )


def _change(context: _Context, one: Changed, authors: Authors, done: Synced) -> int:
    author = authors.of(one.entry.start, one.entry.end)
    try:
        with writing():
            verbs.edit(
                one.memory_id,
                by=author,
                at=context.at,
                reason="Changed in the file.",
                observation=verbs.UNSET if one.text is None else one.text,
                category=verbs.UNSET if one.category is None else one.category,
                provenance=_provenance(context, author),
            )
            _place(context, one.memory_id, one.entry, author)
    except MemoriesError as error:  # held by the gate: a person decides
        done.notes.append(str(error))
        base = context.file.entries.filter(memory=one.memory_id).first()
        refused = Found(
            one.memory_id,
            ConflictKind.EDITED,
            one.entry.section,
            base.text if base else "",
            one.entry.text,
            base.text if base else "",
        )
        with writing():
            conflicts.note(context.file, refused, author=author, at=context.at)
        return 0
    return 1


def _remove(context: _Context, memory_id: int, author: str) -> None:
    with transaction.atomic():
        verbs.deactivate(memory_id, by=author, at=context.at, reason=REMOVED)
        context.file.entries.filter(memory=memory_id).delete()


def _has_unsure_lines(context: _Context) -> bool:
    """Whether the file has lines that wait for a commit: held or unconfirmed ones that nobody committed."""
    return any(
        row.memory is not None and row.memory.active and row.memory.waits
        for row in context.file.entries.filter(author=FILE).select_related("memory")
    )


def _was_committed(context: _Context) -> bool:
    """Whether a line of an unchanged file was committed since, so that it is a person's word now."""
    if not _has_unsure_lines(context):
        return False
    authors = authors_of(context.path, parse(storage.read(context.path).data))
    return any(is_person(author) for author in authors.lines.values())


def _confirm_committed(context: _Context, document: Document, authors: Authors) -> None:
    """Approve held and unconfirmed lines that a person has committed."""
    by_text = {(entry.section.casefold(), entry.text): entry for entry in document.entries}
    for row in context.file.entries.filter(author=FILE, left_because="").select_related("memory"):
        entry = by_text.get((row.section.casefold(), row.text))
        author = authors.of(entry.start, entry.end) if entry else FILE
        if not is_person(author) or row.memory is None:
            continue
        if row.memory.waits:
            verbs.approve(row.memory, by=author, at=context.at, reason="Committed in the file.", expected_text=row.text)
        AgentFileEntry.objects.filter(pk=row.pk).update(author=author)


# The database's changes, within the limits.


Line = tuple[int, str, str]
"""A memory and its line: (id, section, text)."""


def _after(context: _Context, document: Document, found: _Found) -> tuple[Document, dict[int, str], list[Line]]:
    """Return the file as it is to be, the memories that are not in it then, with the reason, and those that came in.

    A file within its limits stays there: what a memory's change would make too long or too many leaves. One that a
    person made larger gets nothing.
    """
    limits, came, edits = context.limits, list[Line](), found.plan.edits
    after = _repaired(context, document.edited(edits, context.sections.names, limits.items))
    leaving = {one.newer_id: CONTRADICTS for one in found.contradicting if one.newer_id is not None}
    wanted = [row for row in (*found.fresh, *found.left) if row.pk not in leaving]
    if exceeded(document, limits) and exceeded(after, limits):
        leaving |= {row.pk: TOO_LARGE for row in wanted}
    elif wanted or edits:
        after, gone, came = _fill(context, after, found, wanted)
        after = _repaired(context, after)
        leaving |= gone
    if after.to_bytes() != document.to_bytes():
        after = after.updated(context.at, context.by)
    return after, leaving, came


def _repaired(context: _Context, document: Document) -> Document:
    """Return the document with the required sections that it lacks, as far as its limits allow."""
    for name in context.sections.required:
        more = document.with_sections([name], context.sections.names, context.limits.items)
        document = document if exceeded(more, context.limits) else more
    return document


def _fill(
    context: _Context, document: Document, found: _Found, wanted: Sequence[Memory]
) -> tuple[Document, dict[int, str], list[Line]]:
    """Add the wanted memories, and take out what must leave. Return the file, who left and why, and who came in."""
    limits = context.limits
    by_text = {(entry.section.casefold(), entry.text): entry for entry in document.entries}
    inside: dict[int, Entry] = {}
    for one in found.plan.placed:
        entry = by_text.get((one.section.casefold(), one.text))
        if entry is not None:
            inside[one.memory_id] = entry
    items, gone, names = list[Item[int]](), {}, [section.name for section in document.sections if section.line >= 0]
    names += [name for name in context.sections.required if document.section(name) is None]
    for row in wanted:
        section = _section_for(context, row, names)
        if section is None:
            gone[row.pk] = NO_SECTION
            continue
        items.append(Item(row.pk, section, row.observation, row.confidence, row.created_at))
    for pk, entry in inside.items():
        memory, known = found.memories.get(pk), found.entries.get(pk)
        if memory is not None:
            since = known.since if known else memory.created_at
            lines = tuple(text + end for text, end in document.lines[entry.start : entry.end])
            items.append(Item(pk, entry.section, entry.text, memory.confidence, since, entry.secret, lines))
    standing = sum(item.size for item in items if item.lines)
    new_sections = set(names) - {section.name for section in document.sections}
    headings = sum(len(heading(name, limits.items).encode()) + 3 * len(document.line_end) for name in new_sections)
    others = document.updated(context.at, context.by).size - standing + headings
    gone |= fit(items, limits, limits.bytes - others)
    came = [(item.key, item.section, item.text) for item in items if not item.lines and item.key not in gone]
    removed = frozenset(entry for pk, entry in inside.items() if pk in gone)
    added = [(section, text) for _, section, text in came]
    return document.edited(Edits(remove=removed, add=added), context.sections.names, limits.items), gone, came


def _section_for(context: _Context, row: Memory, names: list[str]) -> str | None:
    """Return the section of a new line: its type's; Recent Learnings where the file has no room for that one."""
    for wanted in (context.sections.section_of(row.category), RECENT):
        known = next((name for name in names if same_name(name, wanted)), None)
        if known is not None:
            return known
        if len(names) < context.limits.sections:
            names.append(wanted)
            return wanted
    return None


def _mark_left(context: _Context, leaving: Mapping[int, str]) -> None:
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
    context: _Context, after: Document, stored: Stored, found: _Found, came: Sequence[Line], done: Synced
) -> None:
    """Note what both sides have now."""
    file = context.file
    by_text: dict[tuple[str, str], Entry] = {}
    for entry in after.entries:
        by_text.setdefault((entry.section.casefold(), entry.text), entry)
    over = exceeded(after, context.limits)
    with writing():
        opened = found.plan.unsettled
        file.entries.filter(Q(memory__in=found.plan.gone) | Q(memory=None)).delete()
        placed = [(row.memory_id, row.section, row.text) for row in found.plan.placed if row.memory_id not in opened]
        lines = {memory_id: by_text.get((section.casefold(), text)) for memory_id, section, text in (*placed, *came)}
        _note_lines(context, {pk: entry for pk, entry in lines.items() if entry is not None and pk > 0})
        for one in found.contradicting:
            conflicts.note_contradiction(file, one, at=context.at)
        _close_answered(context, found)
        done.conflicts = file.conflicts.filter(answered_at=None).count()
        done.left = file.entries.exclude(left_because="").count()
        done.state = FileState.FULL if over else FileState.OK
        done.problem = f"{'; '.join(over)}. Nothing is added to it." if over else ""
        file.path, file.state, file.problem = done.path, done.state, done.problem[:500]
        file.text, file.sha256 = after.to_bytes().decode(), stored.sha256
        file.seen_change = context.seen
        file.size, file.modified_ns, file.synced_at = stored.size, stored.modified_ns, context.at
        if done.written:
            file.written_at, file.written_by = context.at, context.by[:150]
        # Not the columns that a person may have changed meanwhile.
        file.save(update_fields=SYNCED_COLUMNS)


def _note_lines(context: _Context, lines: Mapping[int, Entry]) -> None:
    """Note the lines that the file has, by their memories."""
    rows = context.file.entries.filter(memory__in=lines)
    known = {row.memory_id: row for row in rows if row.memory_id is not None}
    edited = {pk for pk, row in known.items() if row.text != lines[pk].text}
    alive = set(Memory.objects.filter(pk__in=set(lines) - set(known)).values_list("pk", flat=True))
    authors = _authors_of(alive | edited)
    new, changed = [], []
    for pk, entry in lines.items():
        row = known.get(pk)
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


def _close_answered(context: _Context, found: _Found) -> None:
    """Close conflicts that are none any more: both sides agree, or the contradiction was answered elsewhere."""
    others = {one.newer_id for one in found.contradicting if one.newer_id is not None}
    conflicts.close_settled(context.file, still=found.plan.unsettled, contradicting=others, at=context.at)
