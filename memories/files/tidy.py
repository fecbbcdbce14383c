"""Carry out what `suggest` offers: join entries, clean and shorten a file, make a memory of the project; and on or off.

Each edit of a file happens under its lock, and the sync that follows finds both sides in step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q

from claudeops.lib.tracked_file import disk
from claudeops.lib.tracked_file.disk import Unusable
from memories import store
from memories.capture.fields import agent_id
from memories.capture.statement import HUMAN, Provenance, Statement
from memories.errors import InvalidMemory
from memories.files import storage, suggest
from memories.files.document import Document, Edits, parse
from memories.files.limits import Limits, exceeded
from memories.files.sections import sections_for
from memories.files.suggest import Join, Leaving, Line, Route, Shared
from memories.files.sync import agents_of, sync_file
from memories.lifecycle.merge import merge
from memories.models import (
    AgentCapture,
    AgentFile,
    AgentFileEntry,
    Memory,
    MemoryChange,
    Project,
    Verdict,
    to_utc,
)
from memories.models.project import checked_file_limits
from memories.taxonomy import AGENT, PROJECT

UNUSED_AFTER = timedelta(days=30)
JOINED = "They say nearly the same."


@dataclass(frozen=True, slots=True)
class Optimized:
    """What would make a file better: joins, lines that are too long, and what leaves one beyond its limits.

    `exceeded` says in words what is beyond them.
    """

    agent: str
    joins: list[Join]
    too_long: list[str]
    exceeded: list[str]
    leaving: list[Leaving]

    def __bool__(self) -> bool:
        return bool(self.joins or self.too_long or self.exceeded)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was cleaned, or would be: `kind` is unused, section or repeated; `what` names it."""

    agent: str
    kind: str
    what: str


def lines_of(project: Project, agent: str | None = None) -> list[Line]:
    """Return the active memories of a project's agents that have been in a file, in its order. Two queries at most."""
    rows = AgentFileEntry.objects.filter(
        file__project=project, memory__active=True, memory__verdict=Verdict.ALLOW, memory__taxonomy=AGENT.slug
    )
    if agent is not None:
        rows = rows.filter(file__agent=agent_id(agent))
    rows = rows.select_related("memory", "file").order_by("file__agent", "position", "pk")
    return [line for line in map(Line.of, rows) if line is not None]


def join(one: Join, *, by: str, at: datetime | None = None) -> MemoryChange | None:
    """Merge the entries of a suggestion; the sync that follows takes their lines out. Raises InvalidMemory.

    Returns the change of the memory that stays.
    """
    return merge(one.target.memory_id, [line.memory_id for line in one.others], by=by, at=at, reason=JOINED)


def optimize(file: AgentFile) -> Optimized:
    """Return what would make a file better, from its text of the last sync. Changes nothing."""
    limits = Limits.of(file.limits, file.project.files_limits)
    document = parse(file.text.encode())
    lines = lines_of(file.project, file.agent)
    over = exceeded(document, limits)
    return Optimized(
        file.agent,
        suggest.joins(lines),
        [entry.text for entry in document.entries if len(entry.text) + 2 > limits.line],
        over,
        suggest.leaving(document, lines, limits) if over else [],
    )


def carry_out(found: Optimized, file: AgentFile, *, by: str, at: datetime | None = None) -> None:
    """Join what could be joined, take out what is then still beyond the limits, and sync. Memories stay stored."""
    for one in found.joins:
        join(one, by=by, at=at)
    sync_file(file.project, file.agent, by=by, at=at)
    file.refresh_from_db()
    _take_out(file, optimize(file).leaving)
    sync_file(file.project, file.agent, by=by, at=at, force=True)


def _take_out(file: AgentFile, leaving: Sequence[Leaving]) -> None:
    why = {one.line.memory_id: one.why for one in leaving}
    places = {(one.line.section.casefold(), one.line.text) for one in leaving}

    def without(document: Document) -> Document:
        gone = [entry for entry in document.entries if (entry.section.casefold(), entry.text) in places]
        return document.edited(Edits(remove=frozenset(gone)))

    # First the rows: a line that then stands in the file without one is taken back by the next sync.
    for memory_id, reason in why.items():
        AgentFileEntry.objects.filter(file=file, memory=memory_id).update(left_because=reason[:200])
    if why:
        _edit(file, without)


def clean(project: Project, *, by: str, at: datetime | None = None, agent: str = "", yes: bool) -> list[Cleaned]:
    """Return unused files, empty sections and repeated lines, and remove them if `yes`.

    A file is unused that has been empty for 30 days. Required sections stay, and what a person wrote below a heading.
    A file that cannot be read is left alone.
    """
    when, items = to_utc(at), []
    files = AgentFile.objects.select_related("project").filter(project=project, enabled=True)
    for file in files.filter(agent=agent_id(agent)) if agent else files:
        try:
            items += _clean(file, when, by, yes)
        except Unusable:
            continue
    return items


def _clean(file: AgentFile, at: datetime, by: str, yes: bool) -> list[Cleaned]:
    stored = disk.read(storage.location(file.project, file.agent))
    document = parse(stored.data)
    if document.unreadable:
        return []
    if _is_unused(file, document, at):
        if yes:
            _delete(file, document)
        return [Cleaned(file.agent, "unused", storage.relative_path(file.project, file.agent))]
    required = sections_for(file.agent, file.project.files_sections).required
    empty = suggest.empty_sections(document, required)
    items = [Cleaned(file.agent, "section", section.name) for section in empty]
    entries = document.entries
    items += [Cleaned(file.agent, "repeated", entries[number].text) for number in suggest.repeated(document)]
    if yes and items:

        def cleaned(now: Document) -> Document:
            again = [now.entries[number] for number in suggest.repeated(now)]
            now = now.edited(Edits(remove=frozenset(again)))
            return suggest.without_sections(now, suggest.empty_sections(now, required))

        _edit(file, cleaned)
        sync_file(file.project, file.agent, by=by, at=at)
    return items


def _is_unused(file: AgentFile, document: Document, at: datetime) -> bool:
    before = at - UNUSED_AFTER
    if file.created_at > before or document.entries or any(section.prose for section in document.sections):
        return False
    captures = AgentCapture.objects.filter(project=file.project_id, agent=file.agent, at__gt=before)
    memories = Memory.objects.filter(project=file.project_id, agent=file.agent, taxonomy=AGENT.slug, active=True)
    return not file.entries.exists() and not captures.exists() and not memories.exists()


def _delete(file: AgentFile, document: Document) -> None:
    with storage.lock_of(file.project_id, file.agent):
        path = storage.location(file.project, file.agent)
        if parse(disk.read(path).data) == document:
            disk.remove(path)
            file.delete()


def _edit(file: AgentFile, change: Callable[[Document], Document]) -> None:
    with storage.lock_of(file.project_id, file.agent):
        path = storage.location(file.project, file.agent)
        stored, document = storage.read_document(path)
        after = change(document).to_bytes()
        if stored.missing or after == stored.data:
            return
        if disk.read(path).data == stored.data:
            disk.write(path, after)


def shared_of(project: Project) -> list[Shared]:
    """Return what several agents of a project know alike and the project's own memories do not say."""
    own = Memory.objects.filter(project=project, taxonomy=PROJECT.slug, active=True, verdict=Verdict.ALLOW)
    return suggest.cross_ref(lines_of(project), list(own.values_list("observation", flat=True)[:5_000]))


def accept(one: Shared, project: Project, *, by: str, at: datetime | None = None) -> int:
    """Make a memory of the project of what several agents know, as the word of the person `by`; returns its id.

    The agents' entries stay. Raises InvalidMemory when an active memory of the project says so already.
    """
    result = store.remember(
        Statement(one.category, one.best.text, taxonomy=PROJECT.slug),
        Provenance(HUMAN, by, project_id=project.pk, channel=HUMAN),
        at=at,
    )
    if result.memory_id is None:
        raise InvalidMemory(f"It is not stored: {result.reason}.")
    return result.memory_id


def routes_of(project: Project, text: str) -> list[Route]:
    """Return which agents of a project a text could go to, the best first."""
    agents = {agent: sections_for(agent, project.files_sections) for agent in agents_of(project)}
    return suggest.route(text, agents, lines_of(project))


def set_limits(project: Project, agent: str, limits: Mapping[str, int | None]) -> dict[str, int]:
    """Give the file of an agent limits of its own (None: the project's again); returns all that it has of its own.

    Raises InvalidMemory for no agent's name, and for a limit that cannot be. The caller syncs with `force`.
    """
    name = agent_id(agent)
    if not name:
        raise InvalidMemory(f"{agent!r} is no name of an agent.", field="agent")
    with transaction.atomic():
        pk = AgentFile.objects.get_or_create(project=project, agent=name)[0].pk
        file = AgentFile.objects.select_for_update().get(pk=pk)
        wanted = {key: value for key, value in {**file.limits, **limits}.items() if value is not None}
        try:
            checked_file_limits(wanted)
        except ValidationError as error:
            raise InvalidMemory(" ".join(error.messages), field="limits") from None
        AgentFile.objects.filter(pk=pk).update(limits=wanted)
    return wanted


def switch(project: Project, agent: str, on: bool, *, by: str, reason: str = "", at: datetime | None = None) -> bool:
    """Switch the file of an agent on or off; False when it was so already. Raises InvalidMemory for no agent's name.

    While it is off it is neither read nor written, and its agent is not told of it. It may not exist yet.
    """
    name = agent_id(agent)
    if not name:
        raise InvalidMemory(f"{agent!r} is no name of an agent.", field="agent")
    file, _ = AgentFile.objects.get_or_create(project=project, agent=name)
    changed = AgentFile.objects.filter(Q(pk=file.pk) & ~Q(enabled=on))
    new = {"enabled": on, "enabled_at": to_utc(at), "enabled_by": by[:150], "enabled_reason": reason[:200]}
    return bool(changed.update(**new))
