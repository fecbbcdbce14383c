"""An agent's memory file as a document: sections, entries and everything else, byte for byte. Pure.

The file is a person's: an edit replaces, removes or adds lines of entries and touches no other byte.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache

from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import conflict_line, front_matter
from memories.capture.fields import LONGEST_OBSERVATION
from memories.capture.text import fold
from memories.files.sections import RECENT, SectionSet

LONGEST = 5 * 1024 * 1024
"""Bytes of a file that is read."""
MOST_ENTRIES = 10_000
"""What limits can allow at most: 50 sections of 200 entries. Each new one becomes a memory, which takes time."""
LONGEST_NAME = 120
"""Characters of a section's name that tell it from others."""

BREAK = re.compile(r"\r\n|\n|\r")
TITLE = re.compile(r"#\s+\S")
HEADING = re.compile(r"##\s+(\S.*)\Z", re.DOTALL)
MOST_ITEMS = re.compile(r" ?\(max:?[^()]*\)\Z", re.IGNORECASE)
ENTRY = re.compile(r"([-*+])(\s+)(\S.*)\Z", re.DOTALL)
CONTINUED = re.compile(r"(?:  |\t)\s*(\S.*)\Z", re.DOTALL)
BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
RULE = re.compile(r"([-*_])\s*(?:\1\s*){2,}\Z")
UPDATED = re.compile(r"<!--\s*Last Updated\b.*-->\s*\Z", re.IGNORECASE)


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
class Document:
    """The lines of a file as (text, line end). `unreadable` says why it could not be read; it then has no lines.

    `conflict`: that is because it is in a merge conflict.
    """

    lines: tuple[tuple[str, str], ...] = ()
    bom: bool = False
    unreadable: str = ""
    conflict: bool = False

    def to_bytes(self) -> bytes:
        text = "".join(text + end for text, end in self.lines)
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode()

    @property
    def size(self) -> int:
        return len(self.to_bytes())

    @property
    def line_end(self) -> str:
        return next((end for _, end in self.lines if end), "\n")

    @cached_property
    def classes(self) -> Sequence[str]:
        """Say for each line whether it stands in a fence, an HTML comment or front matter; "" for none of them."""
        return _classes(self.lines)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        return _sections(self.lines, self.classes)

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
        lines: list[list[tuple[str, str]]] = [[line] for line in self.lines]
        for entry in edits.remove:
            for number in range(entry.start, entry.end):
                lines[number] = []
        for entry, text in edits.replace.items():
            first, end = self.lines[entry.start][0], self.lines[entry.end - 1][1]
            match = ENTRY.match(first)
            opening = f"{match[1]}{match[2]}" if match else "- "
            for number in range(entry.start, entry.end):
                lines[number] = []
            lines[entry.start] = [(opening + fold(text), end)]
        added: dict[int, list[tuple[str, str]]] = {}
        for name, text in edits.add:
            section = self.section(name)
            if section is not None:
                added.setdefault(section.room, []).append((f"- {fold(text)}", self.line_end))
        new_lines: list[tuple[str, str]] = []
        for number in range(len(lines) + 1):
            new_lines += added.get(number, [])
            new_lines += lines[number] if number < len(lines) else []
        return Document(self._ended(new_lines), self.bom)

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
        place = next((section.line for section in after), len(self.lines))
        end = self.line_end
        new = [(heading(name, items), end), ("", end)]
        before = list(self.lines[:place])
        if before and before[-1][0].strip():
            new.insert(0, ("", end))
        new_lines = [*before, *new, *self.lines[place:]]
        if place == len(self.lines):
            new_lines.pop()  # no blank line at the end
        return Document(self._ended(new_lines), self.bom)

    def updated(self, at: datetime, by: str) -> Document:
        """Return the document with its line "Last Updated" renewed; one without such a line stays as it is."""
        line = f"<!-- Last Updated: {at:%Y-%m-%d %H:%M} UTC | Auto-updated by: {one_line(by)} -->"
        for number, (text, end) in enumerate(self.lines):
            if UPDATED.match(text) and self.classes[number] not in (FENCED, FRONT):
                return Document((*self.lines[:number], (line, end), *self.lines[number + 1 :]), self.bom)
        return self

    def _ended(self, lines: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Return lines of which each but the last has an end, and the last has one if the document's last had one."""
        had = not self.lines or bool(self.lines[-1][1])
        last = len(lines) - 1
        return tuple(
            (text, (end or self.line_end) if number < last or had else "") for number, (text, end) in enumerate(lines)
        )


def parse(data: bytes) -> Document:
    """Read a file. Never raises for its content: what cannot be read is `unreadable`."""
    if len(data) > LONGEST:
        return Document(unreadable=f"it has more than {LONGEST // 1024 // 1024} MB")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Document(unreadable="it is in UTF-16; save it in UTF-8")
    if b"\x00" in data:
        return Document(unreadable="it holds NUL bytes")
    bom = data.startswith(codecs.BOM_UTF8)
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        return Document(unreadable=f"byte {error.start + 3 * bom:,} is not UTF-8")
    lines = lines_of(text)
    document = Document(tuple(lines), bom)
    begin = conflict_line([text for text, _ in lines], document.classes)
    if begin is not None:
        return Document(unreadable=f"a merge conflict begins in line {begin + 1:,}", conflict=True)
    if len(lines) > MOST_ENTRIES and len(document.entries) > MOST_ENTRIES:
        return Document(unreadable=f"it has more than {MOST_ENTRIES:,} entries")
    return document


def lines_of(text: str) -> list[tuple[str, str]]:
    """Return the lines of a text as (text, line end)."""
    lines, start = [], 0
    for match in BREAK.finditer(text):
        lines.append((text[start : match.start()], match[0]))
        start = match.end()
    return [*lines, (text[start:], "")] if start < len(text) else lines


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


FENCED, COMMENT, FRONT = "fenced", "comment", "front"
UNSEEN = (COMMENT, FRONT)


def _classes(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Say for each line whether it stands in a fence, an HTML comment or front matter; "" for none of them.

    What is opened and never closed opens nothing: whoever types it has not finished, and the entries below are still
    there.
    """
    classes: list[str] = [FRONT] * front_matter([text for text, _ in lines])
    endless: dict[str, int] = {}  # by character, the shortest opening that nothing below closes
    while len(classes) < len(lines):
        number = len(classes)
        opened = _opening(lines[number][0])
        end = None
        if opened and endless.get(opened[0], len(opened) + 1) > len(opened):
            end = _closing(lines, number, opened)
            if end is None:
                endless[opened[0]] = len(opened)
        kind = "" if end is None else COMMENT if opened == "<" else FENCED
        classes += [kind] * (1 if end is None else end + 1 - number)
    return classes


def _opening(text: str) -> str:
    """Return what a line opens: the characters of a fence, or "<" for a comment."""
    fence = FENCE.match(text)
    return fence[1] if fence else "<" if text.lstrip().startswith("<!--") else ""


def _closing(lines: Sequence[tuple[str, str]], number: int, opened: str) -> int | None:
    if opened == "<":
        if "-->" in lines[number][0].split("<!--", 1)[1]:
            return number
        return next((at for at in range(number + 1, len(lines)) if "-->" in lines[at][0]), None)
    for at in range(number + 1, len(lines)):
        match = FENCE.match(lines[at][0])
        if match and match[1].startswith(opened) and not lines[at][0].strip().strip(opened[0]):
            return at
    return None


def _sections(lines: Sequence[tuple[str, str]], classes: Sequence[str]) -> tuple[Section, ...]:
    starts = [
        (number, _name(match[1]))
        for number, (text, _) in enumerate(lines)
        if not classes[number] and (match := HEADING.match(text))
    ]
    sections = []
    bounds = [(-1, ""), *starts]
    for place, (line, name) in enumerate(bounds):
        end = bounds[place + 1][0] if place + 1 < len(bounds) else len(lines)
        section = _section(lines, classes, name, line, end)
        if line >= 0 or section.entries or section.prose:
            sections.append(section)
    return tuple(sections)


def _name(heading: str) -> str:
    """Return the name of a section as it is stored: one line, without "(Max: …)" and closing characters."""
    name = fold(heading)
    plain = name.rstrip("# ") or name
    return mask(MOST_ITEMS.sub("", plain).rstrip() or plain)[:LONGEST_NAME].rstrip()


def _section(lines: Sequence[tuple[str, str]], classes: Sequence[str], name: str, line: int, end: int) -> Section:
    entries: list[Entry] = []
    prose: list[str] = []
    number = room = line + 1
    while number < end:
        text = lines[number][0]
        match = None if classes[number] or RULE.match(text) else ENTRY.match(text)
        number += 1
        if match is None:
            if not classes[number - 1] and text.strip() and not (line < 0 and TITLE.match(text)):
                prose.append(text)
            if text.strip() and not entries:
                room = number  # below what people wrote, which would else become a part of the entry
            continue
        start, parts = number - 1, [match[3]]
        while number < end and (more := _continues(lines, classes, number)) and not BULLET.match(lines[number][0]):
            parts.append(more)
            number += 1
        folded = fold(" ".join(parts))
        masked = mask(folded)
        if masked and len(masked) <= LONGEST_OBSERVATION:
            entries.append(Entry(masked, name, start, number, masked != folded))
        while number < end and _continues(lines, classes, number):  # nested bullets
            prose.append(lines[number][0])
            number += 1
        room = number
    return Section(name, line, room, tuple(entries), tuple(prose))


def _continues(lines: Sequence[tuple[str, str]], classes: Sequence[str], number: int) -> str:
    match = None if classes[number] else CONTINUED.match(lines[number][0])
    return match[1] if match else ""
