"""Read a session's log for its page: lines with their markers, one page at a time, from either end.

The cursor is a line's `seq`, which is assigned in order and in the transaction that stores the line: it stays valid
after a lost connection or a restart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from django.db.models import QuerySet

from claudeops.lib import local_time
from memories.capture.lines import LINE_BREAK, Place, accepted_lines
from memories.capture.markers import LOOKS_LIKE, MARKER
from sessions_app.models import LogEntry, LogKind
from sessions_app.runner.markers import COOLDOWN, COOLDOWN_LIKE, EVENT

PAGE = 300
LONG_LINE = 600
"""Most characters of a line that is not folded."""
HEAD = 160
"""Most characters of a folded line's summary."""
HIGHEST = 2**31 - 1
"""The highest possible `seq`."""

LABELS = {kind.value: str(kind.label) for kind in LogKind}
ERROR = "Error: "
OPENINGS = ("[MEMORY:", "[EVENT:", "[COOLDOWN:")
BRACKET = re.compile(r"\[[^\]\n]*\]")
MARKERS = (("memory", MARKER), ("event", EVENT), ("cooldown", COOLDOWN))
UNREAD = (LOOKS_LIKE, COOLDOWN_LIKE)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text. `kind` is memory, event, cooldown, unread (a malformed marker), or empty (plain text)."""

    kind: str
    text: str


class Line:
    def __init__(self, entry: LogEntry) -> None:
        self.entry = entry

    @cached_property
    def head(self) -> str:
        """The summary of a long text, which is folded; empty for a short text."""
        text = self.entry.text
        if len(text) <= LONG_LINE and text.count("\n") < 12:
            return ""
        return _first_line(text)

    @cached_property
    def fold(self) -> str:
        """Like `head`, but every tool result is folded unless it is one short line."""
        if self.entry.kind != LogKind.TOOL_RESULT:
            return self.head
        text = self.entry.text.strip()
        return "" if len(text) <= HEAD and "\n" not in text else _first_line(text)

    @property
    def label(self) -> str:
        return LABELS[self.entry.kind]

    @property
    def clock(self) -> str:
        return local_time.clock(self.entry.at)

    @property
    def exactly(self) -> str:
        return local_time.on_hover(self.entry.at)

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
        """The text split at its markers. Only an agent's own text has any."""
        return parts(self.entry.text) if self.entry.kind == LogKind.TEXT else [Part("", self.entry.text)]


def _first_line(text: str) -> str:
    first = text.strip().split("\n", 1)[0]
    return first if len(first) <= HEAD else first[: HEAD - 1] + "…"


def parts(text: str) -> list[Part]:
    """Split `text` at the brackets of the agent's own markers, but not of those that are not read."""
    if not any(opening in text for opening in OPENINGS):
        return [Part("", text)]
    shown: dict[int, tuple[Place, str]] = {}  # one of each line, a malformed one only where no other is
    for place in accepted_lines(text).markers:
        kind = _kind(place)
        known = shown.get(place.number)
        if kind and (known is None or (known[1] == "unread" and kind != "unread")):
            shown[place.number] = (place, kind)
    begins = [0, *(line_break.end() for line_break in LINE_BREAK.finditer(text))]
    found: list[Part] = []
    start = 0
    for number, (place, kind) in shown.items():
        bracket = BRACKET.match(place.line, place.start)
        end = bracket.end() if bracket else len(place.line)
        begin = begins[number - 1]
        found += [Part("", text[start : begin + place.start]), Part(kind, place.line[place.start : end])]
        start = begin + end
    return [part for part in (*found, Part("", text[start:])) if part.text]


def _kind(place: Place) -> str:
    """Return the kind of a marker; "" for one that is neither stored nor reported."""
    for kind, pattern in MARKERS:
        if pattern.match(place.line, place.start):
            return kind
    return "unread" if any(pattern.match(place.line, place.start) for pattern in UNREAD) else ""


@dataclass(frozen=True, slots=True)
class Log:
    """A page of lines with a `seq` above `floor`, in order. `more_before` and `more_after`: there are others."""

    lines: list[Line]
    floor: int
    more_before: bool = False
    more_after: bool = False
    most_in_browser: ClassVar[int] = 3000
    """Lines that an open page keeps; a multiple of ten."""

    @property
    def first(self) -> int:
        """The `seq` of the first line; without lines, the one after `floor`."""
        return self.lines[0].entry.seq if self.lines else self.floor + 1

    @property
    def last(self) -> int:
        """The `seq` of the last line: the cursor of the next page."""
        return self.lines[-1].entry.seq if self.lines else self.floor

    @property
    def left_out(self) -> int:
        """How many lines lie between `floor` and the first line."""
        return self.first - self.floor - 1 if self.more_before else 0


def newest(session_id: int, *, before: int = HIGHEST, floor: int = 0, most: int = PAGE) -> Log:
    """Return the last `most` lines with a `seq` above `floor` and below `before`."""
    found = list(_entries(session_id, floor).filter(seq__lt=before).order_by("-seq")[: most + 1])
    return Log([Line(entry) for entry in found[:most][::-1]], floor, more_before=len(found) > most)


def following(session_id: int, after: int, *, most: int = PAGE) -> Log:
    """Return the first `most` lines with a `seq` above `after`."""
    found = list(_entries(session_id, after).order_by("seq")[: most + 1])
    return Log([Line(entry) for entry in found[:most]], after, more_after=len(found) > most)


def _entries(session_id: int, above: int) -> QuerySet[LogEntry]:
    return LogEntry.objects.filter(session=session_id, seq__gt=above)
