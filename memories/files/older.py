"""Older shapes of an agent's memory file, taken into the present one: other names, flat lists, dates. Pure.

No line is lost: what is no entry and no heading stays as prose where it stood. The older file itself is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from claudeops.lib.tracked_file.document import FRONT
from memories.capture.fields import agent_id
from memories.files.document import ENTRY, Document, new_document, parse, same_name
from memories.files.sections import RECENT, SectionSet

NAME = re.compile(r"(?P<agent>.+?)(?P<suffix>[ _-]+(?:memories|memory))?\.md\Z", re.IGNORECASE)
NO_AGENTS = frozenset({"readme", "index", "changelog", "contributing", "license", "agents", "claude", "memory"})
"""Names of files that a folder of agent files has beside them."""
MARK = re.compile(r"<!--\s*(?:MEMORY LIMITS|Last Updated)\b", re.IGNORECASE)
DEEPER = re.compile(r"#{3,6}\s+(\S.*)\Z", re.DOTALL)
TOP = re.compile(r"#\s+(\S.*)\Z", re.DOTALL)
ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<bullet>[-*+•●▪‣·–—]|\d{1,3}[.)])(?P<gap>[ \t]+)(?P<text>\S.*)\Z", re.DOTALL)
NO_LEAD = re.compile(r"\s*(?:#|<!--|`{3}|~{3}|.*-->\s*\Z)")
"""A line that is no part of the paragraph before a list: a title, a comment or a fence."""
DAY = r"\d{4}-\d{2}-\d{2}"
TIME = r"(?:[ T]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z| ?UTC|[+-]\d{2}:?\d{2})?)?"
DATED = re.compile(
    rf"(?:\[(?P<a>{DAY}){TIME}\](?!\()|\((?P<b>{DAY}){TIME}\)|(?P<c>{DAY}){TIME}(?=\s*[:–—-]\s))"
    r"(?:\s*[:–—-](?=\s))?\s*"
)


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the lines of one older file. `lines` are those that are not blank."""

    name: str
    lines: int = 0
    entries: int = 0
    dated: int = 0
    sections: tuple[str, ...] = ()
    prose: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [_count(self.entries, "entry", "entries"), _count(len(self.sections), "section", "sections")]
        parts += [f"{_count(self.dated, 'date', 'dates')}"] if self.dated else []
        parts += [f"{_count(len(self.prose), 'line', 'lines')} of prose"] if self.prose else []
        return f"{self.name} is taken in: {_count(self.lines, 'line', 'lines')}, of them {', '.join(parts)}."


@dataclass(frozen=True, slots=True)
class Converted:
    """A file in the present shape. `sources` says for each of its lines where it stood: (file, line from 0), or None.

    `dates` are the days (UTC) that stood before entries, by their line in the document.
    """

    document: Document
    sources: tuple[tuple[int, int] | None, ...] = ()
    dates: dict[int, datetime] = field(default_factory=dict)
    reports: tuple[Report, ...] = ()

    def since(self, start: int, end: int) -> datetime | None:
        """Return the day of an entry that stands on these lines."""
        return next((self.dates[number] for number in range(start, end) if number in self.dates), None)


@dataclass(slots=True)
class _Line:
    text: str
    source: tuple[int, int] | None = None
    day: datetime | None = None


@dataclass(slots=True)
class _Block:
    """A section: its name ("" is what stands before the first) and its lines with the heading."""

    name: str
    lines: list[_Line] = field(default_factory=list)


def agent_of(name: str) -> tuple[str, bool]:
    """Return the agent that a file of an older name is of ("" for none), and whether the name alone says so.

    `research_memories.md` says so; `research.md` may be anything, and counts for an agent that is known.
    """
    match = NAME.match(name)
    if match is None or agent_id(match["agent"]) in NO_AGENTS:
        return "", False
    return agent_id(match["agent"]), match["suffix"] is not None


def is_older(document: Document, sections: SectionSet) -> bool:
    """Whether a file under its present name, that was never synced, has an older shape.

    One with our comment line, or with a section that is required, is a person's as it stands.
    """
    if document.unreadable or any(MARK.match(text.lstrip()) for text, _ in document.lines):
        return False
    if any(document.section(name) is not None for name in sections.required):
        return False
    rest = [text for (text, _), kind in zip(document.lines, document.classes, strict=True) if kind != FRONT]
    return rest != [line.text for line in _flat(_blocks(document, 0))]


def convert(
    files: Sequence[tuple[str, bytes]],
    agent: str,
    project: str,
    sections: SectionSet,
    limits: Mapping[str, int],
    at: datetime,
) -> Converted:
    """Return the older files of one agent, by name and bytes, as one in the present shape.

    Sections of one name become one, entries before the first section with what leads them in Recent Learnings; a date
    before an entry becomes its day. Line ends, a byte order mark and front matter are those of the first file. Each can
    be read.
    """
    blocks: list[_Block] = []
    reports = []
    end, bom, front = "", False, list[tuple[str, str]]()
    for number, (name, data) in enumerate(files):
        document = parse(data)
        if not end:
            end, bom = document.line_end, document.bom
            parts = zip(document.lines, document.classes, strict=True)
            front = [(text, last or end) for (text, last), kind in parts if kind == FRONT]
        new_blocks = _blocks(document, number)
        reports.append(_report(name, document, new_blocks))
        for block in new_blocks:
            _join(blocks, block)
    lines = _flat(blocks)
    lines = _with_head(lines, new_document(agent, project, sections, limits, at))
    while lines and not lines[-1].text.strip():
        lines.pop()
    return Converted(
        Document((*front, *((line.text, end or "\n") for line in lines)), bom),
        (*(None for _ in front), *(line.source for line in lines)),
        {number: line.day for number, line in enumerate(lines, len(front)) if line.day is not None},
        tuple(reports),
    )


def _blocks(document: Document, number: int) -> list[_Block]:
    """Return the sections of an older file, its lines as they are in the present shape."""
    named = {section.line: section.name for section in document.sections if section.line >= 0}
    has_title = has_section = False
    level: int | None = None  # how far the entry is indented that the next line may belong to
    blocks = [_Block("")]
    for place, (text, _) in enumerate(document.lines):
        if document.classes[place] == FRONT:
            continue
        line = _Line(text, (number, place))
        if document.classes[place]:
            blocks[-1].lines.append(line)
            continue
        name, level = named.get(place, ""), level if text[:1] in (" ", "\t") or ITEM.match(text) else None
        has_section = has_section or bool(name)
        if not name and (other := _heading(text, has_section, has_title)):
            line.text = f"## {other}"
            name = _plain(other)
        if name:
            blocks.append(_Block(name, [line]))
            has_title, level = True, None
            continue
        has_title = has_title or bool(TOP.match(text))
        item = None if _is_rule(text) else ITEM.match(text)
        width = len(item["indent"].expandtabs(4)) if item else 0
        if item is not None and (level is None or width <= level):
            level = width
            line.text, line.day = _as_entry(text, item)
            if not blocks[-1].name:
                lead = _lead_in(blocks[-1].lines)
                blocks.append(_Block(RECENT, [_Line(f"## {RECENT}"), *lead]))
        blocks[-1].lines.append(line)
    return [block for block in blocks if block.lines]


def _lead_in(lines: list[_Line]) -> list[_Line]:
    """Take the paragraph that leads in a list off the lines before it: it goes with the list, or turns it round."""
    end = len(lines)
    while end and not lines[end - 1].text.strip():
        end -= 1
    start = end
    while start and lines[start - 1].text.strip() and not NO_LEAD.match(lines[start - 1].text):
        start -= 1
    if start == end or (end < len(lines) and not lines[end - 1].text.rstrip().endswith(":")):
        return []
    lead = lines[start:]
    del lines[start:]
    return lead


def _heading(text: str, has_section: bool, has_title: bool) -> str:
    """Return the name of the section that a line begins which begins none in the present shape; "" for none.

    Three or more `#` do in a file that has none of two above; one `#`, when it is not the file's title.
    """
    match = None if has_section else DEEPER.match(text)
    match = match or (TOP.match(text) if has_title else None)
    return (match[1].rstrip("# \t") or match[1].strip()) if match else ""


def _plain(name: str) -> str:
    return parse(f"## {name}\n".encode()).sections[0].name


def _is_rule(text: str) -> bool:
    return not text.strip("-*_ \t")


def _as_entry(text: str, item: re.Match[str]) -> tuple[str, datetime | None]:
    """Return an item as the line of an entry, and the day that stood before its text."""
    rest, day = item["text"], None
    if match := DATED.match(rest):
        day = _day(match["a"] or match["b"] or match["c"])
        if day is not None and rest[match.end() :].strip():
            rest = rest[match.end() :]
        else:
            day = None
    if day is None and not item["indent"] and ENTRY.match(text):
        return text, None
    return f"- {rest}", day


def _day(text: str) -> datetime | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day.year >= 1970 else None


def _join(blocks: list[_Block], new: _Block) -> None:
    """Put a section behind the others, or its lines into the one of its name."""
    existing = next((block for block in blocks if same_name(block.name, new.name)), None)
    if existing is None:
        blocks.append(_Block(new.name, list(new.lines)))
        if not new.name:  # what stands before the first section
            blocks.insert(0, blocks.pop())
        return
    while existing.lines and not existing.lines[-1].text.strip():
        existing.lines.pop()
    lines = new.lines[1:] if new.name else new.lines
    while lines and not lines[0].text.strip():
        lines = lines[1:]
    existing.lines += lines


def _flat(blocks: Iterable[_Block]) -> list[_Line]:
    """Return the lines of the sections, with a blank line before each heading that lacks one."""
    lines: list[_Line] = []
    for block in blocks:
        made_up = bool(block.name) and block.lines[0].source is None
        if lines and lines[-1].text.strip() and made_up:
            lines.append(_Line(""))
        lines += block.lines
    return lines


def _with_head(lines: list[_Line], new: Document) -> list[_Line]:
    """Return the lines with the title and the comments of a new file, where they are missing."""
    title, blank, *comments = [_Line(text) for text, _ in new.lines[:4]]
    first = next((number for number, line in enumerate(lines) if line.text.strip()), None)
    has_title = first is not None and TOP.match(lines[first].text) is not None
    cut = first + 1 if first is not None and has_title else 0
    head = lines[:cut] if has_title else [title]
    if not any(MARK.match(line.text.lstrip()) for line in lines):
        head = [*head, blank, *comments]
    gap = [_Line("")] if lines[cut:] and lines[cut].text.strip() else []
    return [*head, *gap, *lines[cut:]]


def _report(name: str, document: Document, blocks: Sequence[_Block]) -> Report:
    lines = _flat(blocks)
    flat_document = Document(tuple((line.text, "\n") for line in lines))
    return Report(
        name,
        lines=sum(bool(text.strip()) for text, _ in document.lines),
        entries=len(flat_document.entries),
        dated=sum(line.day is not None for line in lines),
        sections=tuple(block.name for block in blocks if block.name),
        prose=tuple(_prose(flat_document)),
    )


def _prose(document: Document) -> Iterator[str]:
    for section in document.sections:
        yield from section.prose


def _count(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"
