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
from claudeops.lib.tracked_file import CODE, conflict_line, front_matter
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

LINE = re.compile(r"([^\n]*?)(\r?\n|\Z)")
HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*?)(?:[ \t]+#+)?[ \t]*\Z")
ENTRY = re.compile(r"[-*+][ \t]+(\S.*)\Z")
DATED = re.compile(r"\((\d{4}-\d{2}-\d{2})\)[ \t]+(\S.*)\Z")
RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}\Z")
FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})")
COMMENT = re.compile(r" {0,3}<!--")
INDENTED = re.compile(r"(?: {2}|\t)[ \t]*\S")
MOST_COMPARED = 25_000_000
"""Pairs of lines that a difference looks at; beyond, all that differs is one change."""

Line = tuple[str, str]


class Misfit(MemoriesError):
    """A change of the document that cannot be made; `code` says why."""

    code = "memory_file"


class Missing(Misfit):
    """The entry to change or remove is not in the document."""

    code = "entry_missing"


class Full(Misfit):
    code = "memory_file_full"


COMMENT_LINE = "comment"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its folded text without the date, and its lines from `line` up to `end` (exclusive), from 0.

    `section` is the slug of its category, or the folded title of a section that is no category's; "" before the first.
    `date` is None where the line has none.
    """

    section: str
    date: date | None
    text: str
    line: int
    end: int


@dataclass(frozen=True, slots=True)
class Section:
    """A section by its slug or title: its heading's line, and the line at which the next one begins (exclusive)."""

    name: str
    line: int
    end: int


@dataclass(frozen=True)
class Document:
    """The lines of a file as (text, line end)."""

    lines: tuple[Line, ...] = ()

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        tops = [one for one in self._headings if one[1] <= SECTION_LEVEL]
        ends = [at for at, _, _ in tops[1:]] + [len(self.lines)]
        return tuple(
            Section(section_name(title), at, end)
            for (at, level, title), end in zip(tops, ends, strict=False)
            if level == SECTION_LEVEL
        )

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries())

    @property
    def line_end(self) -> str:
        return next((end for _, end in self.lines if end), "\n")

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """Say for each line whether it stands in a code fence (CODE), a comment or front matter; "" for none."""
        return tuple(_hidden(self.lines))

    @cached_property
    def conflict(self) -> int | None:
        """Return the line (from 0) at which a merge conflict begins that nobody has resolved; None without one."""
        return conflict_line([text for text, _ in self.lines], self.hidden)

    @cached_property
    def _headings(self) -> tuple[tuple[int, int, str], ...]:
        """Return (line, level, title) of each heading."""
        return tuple(
            (at, len(match[1]), fold(match[2]))
            for at, (text, _) in enumerate(self.lines)
            if not self.hidden[at] and (match := HEADING.match(_bare(text, at)))
        )

    def _entries(self) -> Iterator[Entry]:
        section, at = "", 0
        starts = {one.line: one.name for one in self.sections}
        tops = {at for at, level, _ in self._headings if level == 1}
        while at < len(self.lines):
            section = starts.get(at, "" if at in tops else section)
            text = _bare(self.lines[at][0], at)
            match = None if self.hidden[at] or RULE.match(text) else ENTRY.match(text)
            content = fold(match[1]) if match else ""
            if not content:
                at += 1
                continue
            end = self._end_of_entry(at)
            day, rest = _dated(content)
            yield Entry(section, day, rest, at, end)
            at = end

    def _end_of_entry(self, line: int) -> int:
        """Return the line behind an entry's indented lines, which a person wrote below it."""
        end = at = line + 1
        while at < len(self.lines):
            text = self.lines[at][0]
            if INDENTED.match(text):
                end = at + 1
            elif text.strip():
                break
            at += 1
        return end


def parse(text: str) -> Document:
    """Read a document; any text is one. A line ends with \\n or \\r\\n, as in git."""
    lines = tuple((match[1], match[2]) for match in LINE.finditer(text))
    return Document(lines[:-1] if lines and lines[-1] == ("", "") else lines)


def render(document: Document) -> str:
    return "".join(text + end for text, end in document.lines)


def section_name(title: str) -> str:
    """Return the slug of the category whose section has this title; else the folded title."""
    wanted = fold(title).casefold()
    return next((slug for slug, heading in SECTIONS.items() if wanted in (heading.casefold(), slug)), fold(title))


def entry_text(text: str) -> str:
    """Return `text` as an entry holds it: one line, without credentials, that opens and closes no comment."""
    masked = fold(mask(fold(text)))
    return masked.replace("<!--", "<! --").replace("-->", "-- >")


def entry_line(text: str, on: date) -> str:
    return f"- ({on.isoformat()}) {entry_text(text)}"


def find(document: Document, target: str, section: str = "") -> Entry | None:
    """Return the first entry of this text, in `section` (a slug) if there is one; None without any."""
    wanted = fold(target)
    for texts in (lambda entry: (entry.text,), lambda entry: (mask(entry.text), entry_text(entry.text))):
        entries = [entry for entry in document.entries if wanted in texts(entry)]
        if entries:
            return next((entry for entry in entries if entry.section == section), entries[0])
    return None


def add(document: Document, section: str, text: str, *, on: date, most: int = MOST) -> Document:
    """Add an entry as the last of its section (a slug); the section is made in its order when it is missing.

    Raises Full beyond `most` entries, Misfit for an empty text or where no entry can stand.
    """
    if len(document.entries) >= most:
        raise Full(
            f"MEMORY.md has {len(document.entries)} entries; at most {most} are kept.",
            "Approve a proposal that removes one, or remove entries from the file.",
        )
    if not entry_text(text):
        raise Misfit("The entry is empty.")
    line = (entry_line(text, on), document.line_end)
    expected = Counter(_keys(document)) + Counter([(section, entry_text(text))])
    for place in _places(document, section, line):
        if Counter(_keys(place)) == expected:
            return place
    raise Misfit(
        f"No entry can be added to the section {SECTIONS.get(section, section)} of MEMORY.md.",
        "Look for a code fence or a comment that is not closed, and close it.",
    )


def change(document: Document, target: str, text: str, *, on: date, section: str = "") -> Document:
    """Replace the line of the entry `target`, at its place, with its bullet; lines below it stay. Raises Missing."""
    entry = _found(document, target, section)
    if not entry_text(text):
        raise Misfit("The entry is empty.")
    old, end = document.lines[entry.line]
    mark = "\ufeff" if entry.line == 0 and old.startswith("\ufeff") else ""
    bullet = old.removeprefix(mark)[0]
    new = (f"{mark}{bullet} ({on.isoformat()}) {entry_text(text)}", end)
    return _put(document, entry.line, entry.line + 1, [new])


def remove(document: Document, target: str, *, section: str = "") -> Document:
    """Remove the entry `target` with the indented lines below it. Raises Missing."""
    entry = _found(document, target, section)
    return _put(document, entry.line, entry.end, [])


def _found(document: Document, target: str, section: str) -> Entry:
    entry = find(document, target, section)
    if entry is None:
        raise Missing(f"MEMORY.md has no entry “{fold(target)[:120]}”.", "Somebody changed or removed it meanwhile.")
    return entry


def _places(document: Document, section: str, line: Line) -> Iterator[Document]:
    """Make the documents with the new line, the best place first: an unclosed fence or comment may hide one."""
    here = next((one for one in document.sections if one.name == section), None)
    if here is None:
        yield _with_section(document, section, line)
        return
    end = next((at for at, _, _ in document._headings if here.line < at < here.end), here.end)
    entries = [entry for entry in document.entries if here.line < entry.line < end]
    blank = ("", line[1])
    if entries:
        yield _put(document, entries[-1].end, entries[-1].end, [line])
    else:
        last = max(at for at in range(here.line, end) if at == here.line or document.lines[at][0].strip())
        after = [blank] if last + 1 < len(document.lines) and document.lines[last + 1][0].strip() else []
        yield _put(document, last + 1, last + 1, [blank, line, *after])
    yield _put(document, here.line + 1, here.line + 1, [blank, line])


def _with_section(document: Document, section: str, line: Line) -> Document:
    nl = line[1]
    order = list(SECTIONS)
    rank = order.index(section) if section in order else len(order)
    later = (one.line for one in document.sections if one.name in SECTIONS and order.index(one.name) > rank)
    lines = [(f"## {SECTIONS.get(section, section)}", nl), ("", nl), line]
    if not any(text.strip("\ufeff \t\r") for text, _ in document.lines):
        mark = "\ufeff" if document.lines and document.lines[0][0].startswith("\ufeff") else ""
        return Document(((f"{mark}{TITLE}", nl), ("", nl), *lines))
    at = next(later, len(document.lines))
    before = [] if at == 0 or not document.lines[at - 1][0].strip("\ufeff \t\r") else [("", nl)]
    return _put(document, at, at, [*before, *lines, *([("", nl)] if at < len(document.lines) else [])])


def _put(document: Document, start: int, end: int, lines: Sequence[Line]) -> Document:
    """Replace the lines from `start` up to `end`; a line before new ones ends, also if it was the last."""
    before = list(document.lines[:start])
    if before and lines and not before[-1][1]:
        before[-1] = (before[-1][0], document.line_end)
    return Document((*before, *lines, *document.lines[end:]))


def _keys(document: Document) -> Iterator[tuple[str, str]]:
    return ((entry.section, entry.text) for entry in document.entries)


def _bare(text: str, at: int) -> str:
    return text.removeprefix("\ufeff") if at == 0 else text


def _dated(text: str) -> tuple[date | None, str]:
    match = DATED.match(text)
    if not match:
        return None, text
    try:
        return date.fromisoformat(match[1]), match[2]
    except ValueError:
        return None, text


def _hidden(lines: Sequence[Line]) -> Iterator[str]:
    fence, comment = "", False
    data = front_matter([text for text, _ in lines])
    yield from [COMMENT_LINE] * data
    for text, _ in lines[data:]:
        if comment:
            comment = "-->" not in text
            yield COMMENT_LINE
        elif fence:
            closes = text.strip()
            if closes and not closes.strip(fence[0]) and len(closes) >= len(fence):
                fence = ""
            yield CODE
        elif match := FENCE.match(text):
            fence = match[1]
            yield CODE
        elif COMMENT.match(text):
            comment = "-->" not in text.partition("<!--")[2]
            yield COMMENT_LINE
        else:
            yield ""


# A person's edit and a promotion.


@dataclass(frozen=True, slots=True)
class Clash:
    """Lines that two edits of one text both touched; `line` is that of `theirs` in the file, from 0."""

    base: tuple[str, ...]
    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Merged:
    """Both edits in one document. At a clash it has `theirs`."""

    document: Document
    clashes: tuple[Clash, ...]


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines that stand in an edited text where the base has those from `start` up to `end`."""

    start: int
    end: int
    lines: tuple[Line, ...]
    is_ours: bool

    def touches(self, other: _Hunk) -> bool:
        """Say whether both change one line, or one inserts in the middle of what the other replaced."""
        if self.start == self.end or other.start == other.end:
            return max(self.start, other.start) < min(self.end, other.end)
        return self.start < other.end and other.start < self.end


def merge(base: Document, theirs: Document, ours: Document) -> Merged:
    """Apply the edit from `base` to `ours` to `theirs`, which is the file as it is: its other bytes stay.

    Lines are compared without their ends. Lines that both insert at one place both stay, theirs first. What touches
    the same lines is a clash, unless both made the same of them.
    """
    hunks = [*_hunks(base, theirs, is_ours=False), *_hunks(base, ours, is_ours=True)]
    lines: list[Line] = []
    clashes: list[Clash] = []
    at = shift = 0  # the base's line, and how far theirs is from it
    for group in _groups(sorted(hunks, key=lambda one: (one.start, one.end, one.is_ours))):
        start, end = min(one.start for one in group), max(one.end for one in group)
        lines += theirs.lines[at + shift : start + shift]
        there, here = (_side(base, group, start, end, is_ours=side) for side in (False, True))
        moved = sum(len(one.lines) - (one.end - one.start) for one in group if not one.is_ours)
        if all(one.is_ours for one in group):
            lines += here
        else:
            if any(one.is_ours for one in group) and _texts(here) != _texts(there):
                clashes.append(Clash(_texts(base.lines[start:end]), _texts(there), _texts(here), len(lines)))
            lines += theirs.lines[start + shift : end + shift + moved]
        at, shift = end, shift + moved
    lines += theirs.lines[at + shift :]
    ended = [(text, end or theirs.line_end) for text, end in lines[:-1]]
    return Merged(Document((*ended, *lines[-1:])), tuple(clashes))


def _groups(hunks: Sequence[_Hunk]) -> Iterator[list[_Hunk]]:
    """Group the hunks that touch each other."""
    group: list[_Hunk] = []
    for hunk in hunks:
        if group and not any(hunk.touches(one) for one in group):
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _side(base: Document, group: Sequence[_Hunk], start: int, end: int, *, is_ours: bool) -> list[Line]:
    """Return what one side has in place of the base's lines from `start` up to `end`."""
    lines: list[Line] = []
    at = start
    for hunk in group:
        if hunk.is_ours == is_ours:
            lines += [*base.lines[at : hunk.start], *hunk.lines]
            at = hunk.end
    return [*lines, *base.lines[at:end]]


def _texts(lines: Sequence[Line]) -> tuple[str, ...]:
    return tuple(text for text, _ in lines)


def _hunks(base: Document, changed: Document, *, is_ours: bool) -> list[_Hunk]:
    a, b = _texts(base.lines), _texts(changed.lines)
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    middle_a, middle_b = a[head : len(a) - tail], b[head : len(b) - tail]
    if not middle_a and not middle_b:
        return []
    if len(middle_a) * len(middle_b) > MOST_COMPARED:
        return [_Hunk(head, len(a) - tail, changed.lines[head : len(b) - tail], is_ours)]
    codes = SequenceMatcher(None, middle_a, middle_b, autojunk=False).get_opcodes()
    return [
        _Hunk(head + i1, head + i2, changed.lines[head + j1 : head + j2], is_ours)
        for tag, i1, i2, j1, j2 in codes
        if tag != "equal"
    ]


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
    gone = _put(before, entry.line, entry.line + 1, [("\0", before.line_end)])
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
    return add(document, entry.section, entry.text, on=entry.date) if entry.date else _put_undated(document, entry)


def _put_undated(document: Document, entry: Entry) -> Document:
    dated_document = add(document, entry.section, entry.text, on=date.min)
    lines = [
        (f"- {entry_text(entry.text)}", end) if text == entry_line(entry.text, date.min) else (text, end)
        for text, end in dated_document.lines
    ]
    return Document(tuple(lines))
