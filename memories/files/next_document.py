"""Make the document that an agent's file is to have next: with the memories' changes, within the limits. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from memories.files.comparison import CONTRADICTS, Comparison, Context
from memories.files.document import Document, Edits, Entry, heading, same_name
from memories.files.limits import Item, fit, has_room, longest
from memories.files.sections import RECENT
from memories.models import Memory

NO_SECTION = "the file has as many sections as it may have"

Line = tuple[int, str, str]
"""A memory and its line: (id, section, text)."""


def next_document(
    context: Context, document: Document, found: Comparison
) -> tuple[Document, dict[int, str], list[Line]]:
    """Return the file as it is to be, the memories that are not in it then, with the reason, and those that came in.

    A file within its limits stays there: what a memory's change would make too long or too many leaves. Of what a
    person made larger nothing leaves: a section with too many lines gets no more, a file that is too large no line.
    """
    came, edits = list[Line](), found.plan.edits
    after = _repaired(context, document.edited(edits, context.sections.names, context.limits.items))
    leaving = {one.newer_id: CONTRADICTS for one in found.contradicting if one.newer_id is not None}
    wanted = [row for row in (*found.fresh, *found.left) if row.pk not in leaving]
    if wanted or edits:
        after, gone, came = _fill(context, document, after, found, wanted)
        after = _repaired(context, after)
        leaving |= gone
    if after.to_bytes() != document.to_bytes():
        after = after.updated(context.at, context.by)
    return after, leaving, came


def _repaired(context: Context, document: Document) -> Document:
    """Return the document with the required sections that it lacks, as far as its limits allow."""
    for name in context.sections.required:
        more = document.with_sections([name], context.sections.names, context.limits.items)
        document = more if has_room(more, context.limits) else document
    return document


def _fill(
    context: Context, before: Document, document: Document, comparison: Comparison, wanted: Sequence[Memory]
) -> tuple[Document, dict[int, str], list[Line]]:
    """Add the wanted memories, and take out what must leave. Return the file, who left and why, and who came in.

    `before` is the file as a person saved it.
    """
    limits = context.limits
    is_large = before.size > limits.bytes
    full = {one.name.casefold() for one in before.sections if len(one.entries) > limits.items}
    long = {one.text for one in before.entries if longest(before, one.start, one.end) > limits.line}
    by_text = {(entry.section.casefold(), entry.text): entry for entry in document.entries}
    inside: dict[int, Entry] = {}
    for one in comparison.plan.placed:
        entry = by_text.get((one.section.casefold(), one.text))
        if entry is not None:
            inside[one.memory_id] = entry
    items, gone, names = list[Item[int]](), {}, [section.name for section in document.sections if section.line >= 0]
    lacking = [name for name in context.sections.required if document.section(name) is None]
    names += lacking[: max(0, limits.sections - len(names))]
    for row in wanted:
        section = _section_for(context, row, names)
        if section is None:
            gone[row.pk] = NO_SECTION
            continue
        items.append(Item(row.pk, section, row.observation, row.confidence, row.created_at))
    for pk, entry in inside.items():
        memory, file_entry = comparison.memories.get(pk), comparison.entries.get(pk)
        if memory is not None:
            since = file_entry.since if file_entry else memory.created_at
            lines = tuple(text + end for text, end in document.lines[entry.start : entry.end])
            stays = entry.secret or is_large or entry.section.casefold() in full or entry.text in long
            items.append(Item(pk, entry.section, entry.text, memory.confidence, since, stays, lines))
    standing = sum(item.size for item in items if item.lines)
    new_sections = set(names) - {section.name for section in document.sections}
    headings = sum(len(heading(name, limits.items).encode()) + 3 * len(document.line_end) for name in new_sections)
    others = document.updated(context.at, context.by).size - standing + headings
    gone |= fit(items, limits, limits.bytes - others)
    came = [(item.key, item.section, item.text) for item in items if not item.lines and item.key not in gone]
    removed = frozenset(entry for pk, entry in inside.items() if pk in gone)
    added = [(section, text) for _, section, text in came]
    return document.edited(Edits(remove=removed, add=added), context.sections.names, limits.items), gone, came


def _section_for(context: Context, row: Memory, names: list[str]) -> str | None:
    """Return the section of a new line: its type's; Recent Learnings where the file has no room for that one."""
    for wanted in (context.sections.section_of(row.category), RECENT):
        existing = next((name for name in names if same_name(name, wanted)), None)
        if existing is not None:
            return existing
        if len(names) < context.limits.sections:
            names.append(wanted)
            return wanted
    return None
