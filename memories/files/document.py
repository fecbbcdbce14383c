"""An agent's memory file as a document: sections, entries and everything else, byte for byte. Pure.

The file is a person's: an edit replaces, removes or adds lines of entries and touches no other byte.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache

from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import document as tracked
from claudeops.lib.tracked_file.document import COMMENT, Item, Line
from memories.capture.fields import LONGEST_OBSERVATION
from memories.capture.text import fold
from memories.files.sections import RECENT, SectionSet

MOST_ENTRIES = 10_000
"""What limits can allow at most: 50 sections of 200 entries. Each new one becomes a memory, which takes time."""
LONGEST_NAME = 120
"""Characters of a section's name that tell it from others."""

TITLE = re.compile(r"#\s+\S")
MOST_ITEMS = re.compile(r" ?\(max:?[^()]*\)\Z", re.IGNORECASE)
ENTRY = re.compile(r"([-*+])(\s+)(\S.*)\Z", re.DOTALL)
UPDATED = re.compile(r"<!--\s*Last Updated\b.*-->\s*\Z", re.IGNORECASE)
SECTION_LEVEL = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its lines in the document, from `start` up to `end` (exclusive), and their folded text.

    Credentials are masked in the text, as it is stored, and stay in the lines; `secret` says that they hold some.
    """

    text: str
    section: str
    start: int
    end: int
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A section by its name without "(Max: …)"; "" is what stands before the first. `prose` are its other lines.

    `line` is that of its heading (-1 without one), `room` the line before which a new entry goes. Comments and code are
    no prose; a text that is longer than a memory can be is no entry.
    """

    name: str
    line: int
    room: int
    entries: tuple[Entry, ...]
    prose: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edits:
    """Edits of one document. `add` are (section, text), in order; `replace` is by the entry."""

    replace: Mapping[Entry, str] = field(default_factory=dict)
    remove: frozenset[Entry] = frozenset()
    add: Sequence[tuple[str, str]] = ()

    def __bool__(self) -> bool:
        return bool(self.replace or self.remove or self.add)


@dataclass(frozen=True)
class Document(tracked.Document):
    """`unreadable` says why a file could not be read; it then has no lines. `conflict`: it is in a merge conflict."""

    unreadable: str = ""
    conflict: bool = False

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        starts = [(one.at, _name(one.text)) for one in self.headings if one.level == SECTION_LEVEL]
        bounds = [(-1, ""), *starts, (len(self.lines), "")]
        ranges = zip(bounds, [at for at, _ in bounds[1:]], strict=False)
        sections = [self._section(name, line, end) for (line, name), end in ranges]
        return tuple(one for one in sections if one.line >= 0 or one.entries or one.prose)

    def _section(self, name: str, line: int, end: int) -> Section:
        items = self._items_by_section.get(line, ())
        entries = tuple(entry for item in items if (entry := _entry(item, name)) is not None)
        taken = {at for item in items for at in range(item.at, item.end)}
        prose = tuple(
            text
            for at, (text, _) in enumerate(self.lines[line + 1 : end], line + 1)
            if at not in taken and not self.classes[at] and text.strip() and not (line < 0 and TITLE.match(text))
        )
        last = next((at for at in range(end - 1, line, -1) if self.lines[at][0].strip()), line)
        return Section(name, line, items[-1].below if items else last + 1, entries, prose)

    @cached_property
    def _items_by_section(self) -> Mapping[int, Sequence[Item]]:
        starts = [one.at for one in self.headings if one.level == SECTION_LEVEL]
        by_section: dict[int, list[Item]] = {}
        for item in self.items:
            by_section.setdefault(starts[place - 1] if (place := bisect(starts, item.at)) else -1, []).append(item)
        return by_section

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for section in self.sections for entry in section.entries)

    def section(self, name: str) -> Section | None:
        """Return the first section of this name, whatever its case and blanks."""
        return next((one for one in self.sections if same_name(one.name, name) and one.line >= 0), None)

    def edited(self, edits: Edits, order: Sequence[str] = (), items: int = 15) -> Document:
        """Return the document with the edits. A section to add to that is missing is put in by `order`."""
        missing = [name for name, _ in edits.add if self.section(name) is None]
        if missing:
            # The entries keep their lines only where nothing is put in before them: first everything else.
            rest = self.edited(Edits(edits.replace, edits.remove))
            return rest.with_sections(missing, order, items).edited(Edits(add=edits.add), order, items)
        blocks: list[tuple[int, int, list[Line]]] = [(entry.start, entry.end, []) for entry in edits.remove]
        for entry, text in edits.replace.items():
            opening = ENTRY.match(self.lines[entry.start][0])
            new = f"{opening[1]}{opening[2]}{fold(text)}" if opening else f"- {fold(text)}"
            blocks.append((entry.start, entry.end, [(new, self.lines[entry.end - 1][1])]))
        added: dict[int, list[Line]] = {}
        for name, text in edits.add:
            if (section := self.section(name)) is not None:
                added.setdefault(section.room, []).append((f"- {fold(text)}", self.line_end))
        return self.patched([*blocks, *((room, room, lines) for room, lines in added.items())])

    def with_sections(self, names: Sequence[str], order: Sequence[str], items: int) -> Document:
        """Return the document with those sections of `names` that it lacks, where `order` has them, else at the end."""
        document = self
        for name in dict.fromkeys(names):
            if document.section(name) is None:
                document = document._with_section(name, order, items)
        return document

    def _with_section(self, name: str, order: Sequence[str], items: int) -> Document:
        names = [wanted.casefold() for wanted in order]
        later = names[names.index(name.casefold()) + 1 :] if name.casefold() in names else []
        after = (section for section in self.sections if section.line >= 0 and _key(section.name) in map(_key, later))
        return self.with_lines([heading(name, items)], next((section.line for section in after), None))

    def updated(self, at: datetime, by: str) -> Document:
        """Return the document with its line "Last Updated" renewed; one without such a line stays as it is."""
        line = f"<!-- Last Updated: {at:%Y-%m-%d %H:%M} UTC | Auto-updated by: {one_line(by)} -->"
        for number, (text, end) in enumerate(self.lines):
            if UPDATED.match(text) and self.classes[number] in ("", COMMENT):
                return self.put(number, number + 1, [(line, end)])
        return self


def parse(data: bytes) -> Document:
    """Read a file. Never raises for its content: what cannot be read is `unreadable`."""
    try:
        document = Document.read(tracked.decode(data))
    except ValueError as error:
        return Document(unreadable=str(error))
    if document.conflict_line is not None:
        return Document(unreadable=f"a merge conflict begins in line {document.conflict_line + 1:,}", conflict=True)
    if len(document.lines) > MOST_ENTRIES and len(document.entries) > MOST_ENTRIES:
        return Document(unreadable=f"it has more than {MOST_ENTRIES:,} entries")
    return document


def new_document(agent: str, project: str, sections: SectionSet, limits: Mapping[str, int], at: datetime) -> Document:
    """Return the file of an agent that has learned nothing: its sections, empty."""
    rows = [
        f"# {one_line(title_of(agent))} Memory - {one_line(project)}",
        "",
        (
            f"<!-- MEMORY LIMITS: {limits['kilobytes']} KB | {limits['sections']} sections | "
            f"{limits['items']} items a section | {limits['line']} characters a line -->"
        ),
        f"<!-- Last Updated: {at:%Y-%m-%d %H:%M} UTC | Auto-updated by: claudeops -->",
    ]
    # As many as it may have: those that are required, and the one for everything else, before the others.
    chosen = sorted(sections.names, key=lambda name: (name not in sections.required, name != RECENT))
    for name in sorted(chosen[: limits["sections"]], key=sections.names.index):
        rows += ["", heading(name, limits["items"])]
    return Document(tuple((row, "\n") for row in rows))


def title_of(agent: str) -> str:
    """Return the name of an agent for a heading: data_engineer is Data Engineer."""
    return " ".join(part.capitalize() for part in agent.split("_") if part)


def heading(name: str, items: int) -> str:
    return f"## {one_line(name)} (Max: {items} items)"


def same_name(one: str, other: str) -> bool:
    return _key(one) == _key(other)


@lru_cache(1024)
def _key(name: str) -> str:
    return MOST_ITEMS.sub("", " ".join(name.split())).casefold()


def one_line(text: str) -> str:
    return fold(text).replace("--", "-").replace("<", "").replace(">", "").replace("|", "/")


def _name(heading: str) -> str:
    """Return the name of a section as it is stored: one line, without "(Max: …)"."""
    name = fold(heading)
    return mask(MOST_ITEMS.sub("", name).rstrip() or name)[:LONGEST_NAME].rstrip()


def _entry(item: Item, section: str) -> Entry | None:
    """Return the entry that an item is; None where a memory cannot hold its text."""
    text = fold(item.text)
    masked = mask(text)
    if not masked or len(masked) > LONGEST_OBSERVATION:
        return None
    return Entry(masked, section, item.at, item.end, masked != text)
