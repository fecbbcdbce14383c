"""MEMORY.md as a document: sections, entries `- (YYYY-MM-DD) …` and everything else, byte for byte. Pure.

The file is a person's: an edit adds, replaces or removes the lines of entries and touches no other byte. The dates of
new entries are days of UTC, so that each host writes the same one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import SequenceMatcher
from functools import cached_property
from types import MappingProxyType

from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import document as tracked
from claudeops.lib.tracked_file.merge import merge
from memories.capture.text import fold
from memories.errors import MemoriesError

MOST = 200
"""Entries of a file; an addition beyond is refused."""
WARN_AT = 180
"""Entries from which on the file is said to be nearly full, and removals are proposed."""
TITLE = "# Memory"
SECTION_LEVEL = 2
SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "preferences": "Preferences",
        "rules-conventions": "Rules and conventions",
        "system-architecture": "System architecture",
        "operations": "Operations",
        "memory-system": "Memory system",
        "projects": "Projects",
        "people-relationships": "People and relationships",
    }
)
"""The titles of the sections by the categories of the taxonomy knowledge, in the order in which they are made."""

DATED = re.compile(r"\((\d{4}-\d{2}-\d{2})\)[ \t]+(\S.*)\Z")


class Misfit(MemoriesError):
    """A change of the document that cannot be made; `code` says why."""

    code = "memory_file"


class Missing(Misfit):
    """The entry to change or remove is not in the document."""

    code = "entry_missing"


class Full(Misfit):
    code = "memory_file_full"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its folded text without the date, its lines from `line` up to `end`, what stands below up to `below`.

    `section` is the slug of its category, or the folded title of a section that is no category's; "" before the first.
    `date` is None where the line has none.
    """

    section: str
    date: date | None
    text: str
    line: int
    end: int
    below: int


@dataclass(frozen=True, slots=True)
class Section:
    """A section by its slug or title: its heading's line, and the line at which the next one begins (exclusive)."""

    name: str
    line: int
    end: int


@dataclass(frozen=True)
class Document(tracked.Document):
    @cached_property
    def sections(self) -> tuple[Section, ...]:
        tops = [one for one in self.headings if one.level <= SECTION_LEVEL]
        ends = [one.at for one in tops[1:]] + [len(self.lines)]
        return tuple(
            Section(section_name(one.text), one.at, end)
            for one, end in zip(tops, ends, strict=False)
            if one.level == SECTION_LEVEL
        )

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries())

    def _entries(self) -> Iterator[Entry]:
        sections = [*self.sections, Section("", len(self.lines), len(self.lines))]
        at = 0
        for item in self.items:
            while item.at >= sections[at].end:
                at += 1
            day, text = _dated(fold(item.text))
            if text:
                name = sections[at].name if item.at > sections[at].line else ""
                yield Entry(name, day, text, item.at, item.end, item.below)


parse = Document.read


def section_name(title: str) -> str:
    """Return the slug of the category whose section has this title; else the folded title."""
    wanted = fold(title).casefold()
    return next((slug for slug, heading in SECTIONS.items() if wanted in (heading.casefold(), slug)), fold(title))


def entry_text(text: str) -> str:
    """Return `text` as an entry holds it: one line, without credentials, that opens and closes no comment."""
    masked = fold(mask(fold(text)))
    return masked.replace("<!--", "<! --").replace("-->", "-- >")


def entry_line(text: str, on: date | None) -> str:
    return f"- ({on.isoformat()}) {entry_text(text)}" if on else f"- {entry_text(text)}"


def find(document: Document, target: str, section: str = "") -> Entry | None:
    """Return the first entry of this text, in `section` (a slug) if there is one; None without any."""
    wanted = fold(target)
    for texts in (lambda entry: (entry.text,), lambda entry: (mask(entry.text), entry_text(entry.text))):
        entries = [entry for entry in document.entries if wanted in texts(entry)]
        if entries:
            return next((entry for entry in entries if entry.section == section), entries[0])
    return None


def add(document: Document, section: str, text: str, *, on: date | None, most: int = MOST) -> Document:
    """Add an entry as the last of its section (a slug); the section is made in its order when it is missing.

    Raises Full beyond `most` entries, Misfit for an empty text.
    """
    if len(document.entries) >= most:
        raise Full(
            f"MEMORY.md has {len(document.entries)} entries; at most {most} are kept.",
            "Approve a proposal that removes one, or remove entries from the file.",
        )
    if not entry_text(text):
        raise Misfit("The entry is empty.")
    return _with_entry(document, section, entry_line(text, on))


def change(document: Document, target: str, text: str, *, on: date, section: str = "") -> Document:
    """Replace the entry `target`, at its place, with its bullet; what stands below it stays. Raises Missing."""
    entry = _found(document, target, section)
    if not entry_text(text):
        raise Misfit("The entry is empty.")
    new = f"{document.texts[entry.line][0]}{entry_line(text, on)[1:]}"
    return document.put(entry.line, entry.end, [(new, document.lines[entry.end - 1][1])])


def remove(document: Document, target: str, *, section: str = "") -> Document:
    """Remove the entry `target` with the indented lines below it. Raises Missing."""
    entry = _found(document, target, section)
    return document.put(entry.line, entry.below, [])


def _found(document: Document, target: str, section: str) -> Entry:
    entry = find(document, target, section)
    if entry is None:
        raise Missing(f"MEMORY.md has no entry “{fold(target)[:120]}”.", "Somebody changed or removed it meanwhile.")
    return entry


def _with_entry(document: Document, section: str, line: str) -> Document:
    here = next((one for one in document.sections if one.name == section), None)
    if here is None:
        return _with_section(document, section, line)
    end = next((one.at for one in document.headings if here.line < one.at < here.end), here.end)
    nl = document.line_end
    if entries := [entry for entry in document.entries if here.line < entry.line < end]:
        return document.put(entries[-1].below, entries[-1].below, [(line, nl)])
    last = max(at for at in range(here.line, end) if at == here.line or document.texts[at].strip())
    after = [("", nl)] if any(text.strip() for text in document.texts[last + 1 : last + 2]) else []
    return document.put(last + 1, last + 1, [("", nl), (line, nl), *after])


def _with_section(document: Document, section: str, line: str) -> Document:
    order = list(SECTIONS)
    later = order[order.index(section) + 1 :] if section in order else []
    lines = [f"## {SECTIONS.get(section, section)}", "", line]
    if not any(text.strip() for text in document.texts):
        return document.put(0, len(document.lines), [(text, document.line_end) for text in (TITLE, "", *lines)])
    return document.with_lines(lines, next((one.line for one in document.sections if one.name in later), None))


def _keys(document: Document) -> Iterator[tuple[str, str]]:
    return ((entry.section, entry.text) for entry in document.entries)


def _dated(text: str) -> tuple[date | None, str]:
    match = DATED.match(text)
    if not match:
        return None, text
    try:
        return date.fromisoformat(match[1]), match[2]
    except ValueError:
        return None, text


# What a commit did, by entries.


@dataclass(frozen=True, slots=True)
class Difference:
    added: tuple[Entry, ...]
    removed: tuple[Entry, ...]


def difference(before: Document, after: Document) -> Difference:
    """Return the entries of `after` that are new, and those of `before` that are gone, by section and text."""
    old, new = Counter(_keys(before)), Counter(_keys(after))
    return Difference(_left(after, new - old), _left(before, old - new))


def _left(document: Document, wanted: Counter[tuple[str, str]]) -> tuple[Entry, ...]:
    entries = []
    for entry in document.entries:
        if wanted[entry.section, entry.text] > 0:
            wanted[entry.section, entry.text] -= 1
            entries.append(entry)
    return tuple(entries)


def keeps_others(before: Document, after: Document, gone: Sequence[Entry], new: Sequence[Entry]) -> bool:
    """Say whether an edit changed nothing but these entries: the others have the section that they had."""
    others = Counter(_keys(before)) - Counter((entry.section, entry.text) for entry in gone)
    return Counter(_keys(after)) == others + Counter((entry.section, entry.text) for entry in new)


def became(before: Document, after: Document, target: str, section: str = "") -> tuple[str, int]:
    """Return the entry of `after` that stands where `before` had `target`, with its line; "" when it was removed."""
    entry = find(before, target, section)
    if entry is None:
        return "", 0
    gone = before.put(entry.line, entry.end, [("\0", before.line_end)])
    clash = next((one for one in merge(before, after, gone).clashes if one.ours.count("\0")), None)
    if clash is None:
        return "", 0
    lines = range(clash.line, clash.line + len(clash.theirs))
    old_keys = {(one.section, one.text) for one in before.entries}
    new = [one for one in after.entries if one.line in lines and (one.section, one.text) not in old_keys]
    best = max(new, key=lambda one: SequenceMatcher(None, one.text, entry.text).ratio(), default=None)
    return (best.text, best.line) if best else ("", clash.line)


def put_back(document: Document, entry: Entry) -> Document:
    """Add an entry as it was, with its date. Raises Misfit."""
    return add(document, entry.section, entry.text, on=entry.date)
