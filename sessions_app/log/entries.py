"""A session's readable log as pages show it: lines with their markers, a page at a time, from either end. Reads only.

The cursor is a line's `seq`: it is given out in order, in the transaction that stores the line. What comes after 120
is therefore the same before and after a lost connection, a second reader, or a new server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC
from functools import cached_property

from django.db.models import QuerySet

from claudeops.lib.humanize import exact
from memories.capture.lines import LINE_BREAK, accepted_lines
from memories.capture.markers import LOOKS_LIKE, MARKER
from sessions_app.models import LogEntry, LogKind
from sessions_app.runner.markers import COOLDOWN, COOLDOWN_LIKE, EVENT

PAGE = 300
LONG_LINE = 600
"""Characters from which a log line is folded."""
HEAD = 160
"""Characters of the line that stands for a folded text."""
HIGHEST = 2**31 - 1
"""The highest number a line can have."""

LABELS = {kind.value: str(kind.label) for kind in LogKind}
ERROR = "Error: "
OPENINGS = ("[MEMORY:", "[EVENT:", "[COOLDOWN:")
BRACKET = re.compile(r"\[[^\]\n]*\]")
MARKERS = (("memory", MARKER), ("event", EVENT), ("cooldown", COOLDOWN))
UNREAD = (LOOKS_LIKE, COOLDOWN_LIKE)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a text. `kind` is memory, event, cooldown, unread (looks like a marker and is none), or empty."""

    kind: str
    text: str


class Line:
    """A log entry as it is shown."""

    def __init__(self, entry: LogEntry) -> None:
        self.entry = entry

    @cached_property
    def head(self) -> str:
        """What stands for a long text that is folded; nothing for a short one."""
        text = self.entry.text
        if len(text) <= LONG_LINE and text.count("\n") < 12:
            return ""
        return _first_line(text)

    @cached_property
    def fold(self) -> str:
        """As `head`; what a tool answered is folded unless it is one short line."""
        if self.entry.kind != LogKind.TOOL_RESULT:
            return self.head
        text = self.entry.text.strip()
        return "" if len(text) <= HEAD and "\n" not in text else _first_line(text)

    @property
    def label(self) -> str:
        return LABELS[self.entry.kind]

    @property
    def clock(self) -> str:
        return f"{self.entry.at.astimezone(UTC):%H:%M:%S}"

    @property
    def exactly(self) -> str:
        return exact(self.entry.at)

    @property
    def lines(self) -> int:
        return self.entry.text.strip().count("\n") + 1

    @property
    def is_error(self) -> bool:
        return self.entry.kind == LogKind.TOOL_RESULT and self.entry.text.startswith(ERROR)

    @cached_property
    def marked(self) -> bool:
        return any(part.kind for part in self.parts)

    @cached_property
    def parts(self) -> list[Part]:
        """The text, with the markers in it apart. Only an agent's own text holds any."""
        return parts(self.entry.text) if self.entry.kind == LogKind.TEXT else [Part("", self.entry.text)]


def _first_line(text: str) -> str:
    first = text.strip().split("\n", 1)[0]
    return first if len(first) <= HEAD else first[: HEAD - 1] + "…"


def parts(text: str) -> list[Part]:
    """`text` cut where a marker's bracket begins and ends; put together again, it is what it was.

    Marked is what the readers of markers take: not what is quoted or stands in a code block.
    """
    if not any(opening in text for opening in OPENINGS):
        return [Part("", text)]
    own = {number for number, _line in accepted_lines(text).lines}
    found: list[Part] = []
    start = 0
    for number, (begins, line) in enumerate(_lines(text), start=1):
        if number not in own or "[" not in line:
            continue
        kind, at = _marker(line)
        if not kind:
            continue
        bracket = BRACKET.match(line, at)
        end = bracket.end() if bracket else len(line)
        found += [Part("", text[start : begins + at]), Part(kind, line[at:end])]
        start = begins + end
    return [part for part in (*found, Part("", text[start:])) if part.text]


def _lines(text: str) -> Iterable[tuple[int, str]]:
    """Where each line begins, and the line without its break."""
    start = 0
    for found in LINE_BREAK.finditer(text):
        yield start, text[start : found.start()]
        start = found.end()
    yield start, text[start:]


def _marker(line: str) -> tuple[str, int]:
    """The first marker of a line: its kind, and where it begins."""
    for kind, pattern in MARKERS:
        if match := pattern.search(line):
            return kind, match.start()
    for pattern in UNREAD:
        if match := pattern.search(line):
            return "unread", match.start()
    return "", 0


@dataclass(frozen=True, slots=True)
class Log:
    """Lines in order, those above `floor` and below `before`: the last ones, or the first ones, of what is there.

    `more_before` and `more_after` say on which side of them lines were left out.
    """

    lines: list[Line]
    floor: int
    more_before: bool = False
    more_after: bool = False

    @property
    def first(self) -> int:
        """The number of the first line; where there is none, that of a line after `floor`."""
        return self.lines[0].entry.seq if self.lines else self.floor + 1

    @property
    def last(self) -> int:
        """The number of the last line: the cursor to go on from."""
        return self.lines[-1].entry.seq if self.lines else self.floor

    @property
    def left_out(self) -> int:
        """How many lines are left out between `floor` and the first one."""
        return self.first - self.floor - 1 if self.more_before else 0


def newest(session_id: int, *, before: int = HIGHEST, floor: int = 0, most: int = PAGE) -> Log:
    """The last `most` lines with a number above `floor` and below `before`."""
    found = list(_entries(session_id, floor).filter(seq__lt=before).order_by("-seq")[: most + 1])
    return Log([Line(entry) for entry in found[:most][::-1]], floor, more_before=len(found) > most)


def following(session_id: int, after: int, *, most: int = PAGE) -> Log:
    """The first `most` lines with a number above `after`."""
    found = list(_entries(session_id, after).order_by("seq")[: most + 1])
    return Log([Line(entry) for entry in found[:most]], after, more_after=len(found) > most)


def _entries(session_id: int, above: int) -> QuerySet[LogEntry]:
    return LogEntry.objects.filter(session=session_id, seq__gt=above)
