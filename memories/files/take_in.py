"""Store what people changed in an agent's file as their changes of its memories, and note the conflicts."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction

from claudeops.lib.domain_error import DomainError
from claudeops.lib.tracked_file import disk
from memories import store
from memories.capture.gate import judge
from memories.capture.statement import Provenance, Statement
from memories.capture.text import fold
from memories.committers import at_work
from memories.errors import InvalidMemory
from memories.files import conflicts
from memories.files.authors import FILE, Authors, authors_of, is_person
from memories.files.comparison import Comparison, Context
from memories.files.document import Document, Entry, parse
from memories.files.merge import Changed, FoundConflict
from memories.lifecycle import verbs
from memories.lifecycle.lock import writing
from memories.models import AgentFileEntry, Change, ConflictKind, Inactive, Memory, MemoryChange, Source, Verdict
from memories.taxonomy import AGENT

log = logging.getLogger(__name__)

CHANNEL = "file"
REMOVED = "Removed from the file."
LOOKED_BACK = timedelta(days=1)
"""A line may have stood in the file before a sync saw it."""


def take_in(context: Context, document: Document, found: Comparison) -> tuple[int, list[str]]:
    """Return how many changes of people were stored, and why others were not: these are conflicts."""
    plan, count, notes = found.plan, 0, list[str]()
    if not (plan.by_people or plan.conflicts or _has_unsure_lines(context)):
        return count, notes
    authors = context.authors(document)
    for memory_id, entry in plan.returned.items():
        _place(context, memory_id, entry, authors.of(entry.start, entry.end))
    for one in plan.changed:
        refused = _change(context, one, authors)
        notes += [refused] if refused else []
        count += not refused
    for memory_id in plan.removed:
        _remove(context, memory_id, authors.last)
        count += 1
    for entry in plan.added:  # last: a line may say in its section what a memory said before it moved
        count += _add(context, entry, authors)
    with writing():
        for conflict in plan.conflicts:
            line = next((row for row in document.entries if row.text == conflict.file_text), None)
            author = authors.of(line.start, line.end) if line else authors.last
            conflicts.note(context.file, conflict, author=author, at=context.at)
    _confirm_committed(context, document, authors)
    return count, notes


def _provenance(context: Context, author: str, text: str) -> Provenance:
    """Return the provenance of a line: a person's who committed it, else of outside text, which the gate judges.

    What the gate does not allow is no person's by a commit: one of all that is there is no word about each line.
    """
    person = is_person(author) and judge(text, fold(text)).verdict == Verdict.ALLOW
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


def _add(context: Context, entry: Entry, authors: Authors) -> int:
    author = authors.of(entry.start, entry.end)
    category = context.sections.type_of(entry.section)
    try:
        if back := _taken_out_before(context, entry, author):
            _bring_back(context, back, entry, author, category)
            return 1
        statement = Statement(category, entry.text, taxonomy=AGENT.slug, confidence=1.0 if is_person(author) else 0.7)
        stored = store.place(statement, _provenance(context, author, entry.text), at=context.at)
    except InvalidMemory as error:
        log.info("a line of %s is not stored: %s", context.path, error)
        return 0
    if stored.memory_id is None:
        return 0
    _place(context, stored.memory_id, entry, author, authors.stated.get(entry.start, ""))
    return 1


def _taken_out_before(context: Context, entry: Entry, author: str) -> Memory | None:
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


def _bring_back(context: Context, memory: Memory, entry: Entry, author: str, category: str) -> None:
    with writing():
        verbs.reactivate(memory, by=author, at=context.at, reason="Back in the file.")
        if memory.category != category:
            verbs.edit(memory.pk, by=author, at=context.at, reason="Changed in the file.", category=category)
        if memory.waits and memory.verdict == Verdict.ALLOW and is_person(author):
            verbs.approve(memory, by=author, at=context.at, reason="Committed in the file.", expected_text=entry.text)
        _place(context, memory.pk, entry, author)


def _place(context: Context, memory_id: int, entry: Entry, author: str, stated: str = "") -> None:
    AgentFileEntry.objects.update_or_create(
        file=context.file,
        memory_id=memory_id,
        defaults={
            "section": entry.section,
            "text": entry.text,
            "left_because": "",
            "author": author,
            "stated": stated,
            "since": context.since(entry),
            "position": entry.start,
        },
    )


def _change(context: Context, one: Changed, authors: Authors) -> str:
    """Store a changed line; returns why it was not stored, empty when it was."""
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
                provenance=_provenance(context, author, one.entry.text),
            )
            _place(context, one.memory_id, one.entry, author)
    except DomainError as error:  # held by the gate: a person decides
        base = context.file.entries.filter(memory=one.memory_id).first()
        refused = FoundConflict(
            one.memory_id,
            ConflictKind.EDITED,
            one.entry.section,
            base.text if base else "",
            one.entry.text,
            base.text if base else "",
        )
        with writing():
            conflicts.note(context.file, refused, author=author, at=context.at)
        return str(error)
    return ""


def _remove(context: Context, memory_id: int, author: str) -> None:
    with transaction.atomic():
        verbs.deactivate(memory_id, by=author, at=context.at, reason=REMOVED)
        context.file.entries.filter(memory=memory_id).delete()


def _has_unsure_lines(context: Context) -> bool:
    """Whether the file has lines that a commit confirms: unconfirmed ones, not held, that nobody committed."""
    return any(
        row.memory is not None and row.memory.verdict == Verdict.ALLOW and row.memory.waits
        for row in context.file.entries.filter(author=FILE).select_related("memory")
    )


def was_committed(context: Context) -> bool:
    """Whether a line of an unchanged file was committed since, so that it is a person's word now."""
    if not _has_unsure_lines(context):
        return False
    authors = authors_of(context.path, parse(disk.read(context.path).data), context.look)
    return any(is_person(author) for author in authors.lines.values())


def _confirm_committed(context: Context, document: Document, authors: Authors) -> None:
    """Approve unconfirmed lines that a person has committed, where no agent was at work since a day before they came.

    A commit of all that is there is no word about each line, so that what the gate holds stays held.
    """
    by_text = {(entry.section.casefold(), entry.text): entry for entry in document.entries}
    for row in context.file.entries.filter(author=FILE, left_because="").select_related("memory"):
        entry = by_text.get((row.section.casefold(), row.text))
        author = authors.of(entry.start, entry.end) if entry else FILE
        if not is_person(author) or row.memory is None:
            continue
        if row.memory.verdict == Verdict.HOLD:
            continue
        if row.memory.waits:
            if at_work(context.file.project, row.memory.created_at - LOOKED_BACK, context.at):
                continue
            verbs.approve(row.memory, by=author, at=context.at, reason="Committed in the file.", expected_text=row.text)
        AgentFileEntry.objects.filter(pk=row.pk).update(author=author)
