"""Read a session's log for its page: lines with their markers, one page at a time, from either end.

The cursor is a line's `seq`, which is assigned in order and in the transaction that stores the line: it stays valid
after a lost connection or a restart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlencode

from django.db.models import Count, Q, QuerySet

from claudeops.lib import local_time
from claudeops.lib.secrets import mask_bytes
from memories.capture.lines import LINE_BREAK, Place, accepted_lines
from memories.capture.markers import LOOKS_LIKE, MARKER
from sessions_app.models import LogEntry, LogKind, Session
from sessions_app.runner.markers import COOLDOWN, COOLDOWN_LIKE, EVENT

PAGE = 300
LONG_LINE = 600
"""Most characters of a line that is not folded."""
HEAD = 160
"""Most characters of a folded line's summary."""
HIGHEST = 2**31 - 1
"""The highest possible `seq`."""
AROUND = 30
"""Lines before a line that was asked for."""
MOST_SEARCHED = 20_000
"""Lines that one page of a search looks through at most."""

LABELS = {kind.value: str(kind.label) for kind in LogKind}
ERROR = "Error: "
OPENINGS = ("[MEMORY:", "[EVENT:", "[COOLDOWN:")
BRACKET = re.compile(r"\[[^\]\n]*\]")
MARKERS = (("memory", MARKER), ("event", EVENT), ("cooldown", COOLDOWN))
UNREAD = (LOOKS_LIKE, COOLDOWN_LIKE)


KINDS = {
    "text": Q(kind=LogKind.TEXT),
    "calls": Q(kind=LogKind.TOOL_USE),
    "results": Q(kind=LogKind.TOOL_RESULT),
    "errors": Q(is_error=True),
}
"""What a page of the log can be restricted to."""


@dataclass(frozen=True, slots=True)
class Only:
    """Which lines are shown: all, those of a key of KINDS, those that hold `words` (upper and lower case alike)."""

    kind: str = ""
    words: str = ""

    @property
    def query(self) -> str:
        """The restriction in an address, behind another parameter: "&kind=errors&q=lock", or nothing."""
        parameters = urlencode({name: value for name, value in (("kind", self.kind), ("q", self.words)) if value})
        return f"&{parameters}" if parameters else ""

    def of(self, rows: QuerySet[LogEntry]) -> QuerySet[LogEntry]:
        rows = rows.filter(KINDS[self.kind]) if self.kind else rows
        return rows.filter(text__icontains=self.words) if self.words else rows


ALL = Only()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text. `kind` is memory, event, cooldown, unread (a malformed marker), hit, or empty (plain text)."""

    kind: str
    text: str


class Line:
    """One line for a page. `words` are searched for: they are marked in it."""

    def __init__(self, entry: LogEntry, words: str = "") -> None:
        self.entry = entry
        self.words = words

    @property
    def seq(self) -> str:
        return str(self.entry.seq)

    @cached_property
    def tool(self) -> str:
        """The name of the tool that a call asks for; empty for other lines."""
        name, colon, _ = self.entry.text.partition(": ")
        return name if self.entry.kind == LogKind.TOOL_USE and colon else ""

    @cached_property
    def text(self) -> str:
        """The text without what the label says."""
        if self.tool:
            return self.entry.text.removeprefix(f"{self.tool}: ")
        is_failed_call = self.is_error and self.entry.kind == LogKind.TOOL_RESULT
        return self.entry.text.removeprefix(ERROR) if is_failed_call else self.entry.text

    @cached_property
    def fold(self) -> str:
        """The summary of a folded text; empty for one that is not: a short one, or a result of one short line."""
        text = self.text.strip()
        if self.entry.kind == LogKind.TOOL_RESULT and not self.is_error:
            return "" if len(text) <= HEAD and "\n" not in text else _first_line(text)
        return "" if len(text) <= LONG_LINE and text.count("\n") < 12 else _first_line(text)

    @property
    def label(self) -> str:
        is_failed_call = self.is_error and self.entry.kind == LogKind.TOOL_RESULT
        return "error" if is_failed_call else self.tool or LABELS[self.entry.kind]

    @property
    def clock(self) -> str:
        return local_time.clock(self.entry.at)

    @property
    def exactly(self) -> str:
        return local_time.on_hover(self.entry.at)

    @property
    def lines(self) -> int:
        return self.text.strip().count("\n") + 1

    @property
    def is_error(self) -> bool:
        return bool(self.entry.is_error)

    @cached_property
    def marked(self) -> bool:
        return any(part.kind for part in self.parts)

    @cached_property
    def parts(self) -> list[Part]:
        """The text split at its markers, of which only an agent's own text has any, and at what is searched for."""
        pieces = parts(self.text) if self.entry.kind == LogKind.TEXT else [Part("", self.text)]
        return [piece for part in pieces for piece in hits(part, self.words)] if self.words else pieces


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
        earlier = shown.get(place.number)
        if kind and (earlier is None or (earlier[1] == "unread" and kind != "unread")):
            shown[place.number] = (place, kind)
    begins = [0, *(line_break.end() for line_break in LINE_BREAK.finditer(text))]
    pieces: list[Part] = []
    start = 0
    for number, (place, kind) in shown.items():
        bracket = BRACKET.match(place.line, place.start)
        end = bracket.end() if bracket else len(place.line)
        begin = begins[number - 1]
        pieces += [Part("", text[start : begin + place.start]), Part(kind, place.line[place.start : end])]
        start = begin + end
    return [part for part in (*pieces, Part("", text[start:])) if part.text]


def _kind(place: Place) -> str:
    """Return the kind of a marker; "" for one that is neither stored nor reported."""
    for kind, pattern in MARKERS:
        if pattern.match(place.line, place.start):
            return kind
    return "unread" if any(pattern.match(place.line, place.start) for pattern in UNREAD) else ""


def hits(part: Part, words: str) -> list[Part]:
    """Split a plain part where it holds `words`."""
    if part.kind:
        return [part]
    pieces = re.split(f"({re.escape(words)})", part.text, flags=re.IGNORECASE)
    return [Part("hit" if number % 2 else "", piece) for number, piece in enumerate(pieces) if piece]


@dataclass(frozen=True, slots=True)
class Log:
    """A page of lines with a `seq` above `floor`, in order. `more_before` and `more_after`: there may be others.

    `looked_from` and `looked_to` are where a search came to its limit, 0 without. `at` is the line that was asked for.
    """

    lines: list[Line]
    floor: int
    more_before: bool = False
    more_after: bool = False
    only: Only = ALL
    looked_from: int = 0
    looked_to: int = 0
    at: int = 0
    most_in_browser: ClassVar[int] = 3000
    """Lines that an open page keeps; a multiple of ten."""

    @property
    def first(self) -> int:
        """The `seq` before which others are; without lines, the one after `floor`."""
        return self.looked_from or (self.lines[0].entry.seq if self.lines else self.floor + 1)

    @property
    def last(self) -> int:
        """The `seq` of the last line: the cursor of the next page."""
        return self.looked_to or self.lines[-1].entry.seq if self.lines else self.floor

    @property
    def left_out(self) -> int:
        """How many lines lie between `floor` and the first line; 0 when not all are shown."""
        return self.first - self.floor - 1 if self.more_before and self.only == ALL else 0


def newest(session_id: int, *, before: int = HIGHEST, floor: int = 0, most: int = PAGE, only: Only = ALL) -> Log:
    """Return the last `most` lines with a `seq` above `floor` and below `before`."""
    low = floor
    if only.words:
        low = max(floor, min(before, last_seq(session_id) + 1) - 1 - MOST_SEARCHED)
    rows = list(only.of(_entries(session_id, low)).filter(seq__lt=before).order_by("-seq")[: most + 1])
    lines = [Line(entry, only.words) for entry in rows[:most][::-1]]
    if len(rows) > most:
        return Log(lines, floor, more_before=True, only=only)
    return Log(lines, floor, more_before=low > floor, only=only, looked_from=low + 1 if low > floor else 0)


def following(session_id: int, after: int, *, most: int = PAGE, only: Only = ALL) -> Log:
    """Return the first `most` lines with a `seq` above `after`."""
    high = after + MOST_SEARCHED if only.words else HIGHEST
    rows = list(only.of(_entries(session_id, after)).filter(seq__lte=high).order_by("seq")[: most + 1])
    lines = [Line(entry, only.words) for entry in rows[:most]]
    if len(rows) > most or not only.words:
        return Log(lines, after, more_after=len(rows) > most, only=only)
    more = last_seq(session_id) > high
    return Log(lines, after, more_after=more, only=only, looked_to=high if more else 0)


def around(session_id: int, seq: int, *, most: int = PAGE, only: Only = ALL) -> Log:
    """Return some lines before the line `seq`, the line, and those that follow it: `most` together."""
    before = newest(session_id, before=seq, most=AROUND, only=only)
    after = following(session_id, seq - 1, most=most - len(before.lines), only=only)
    return replace(
        before, lines=before.lines + after.lines, more_after=after.more_after, looked_to=after.looked_to, at=seq
    )


def last_seq(session_id: int) -> int:
    """Return the `seq` of the newest line; 0 for an empty log."""
    return _entries(session_id, 0).order_by("-seq").values_list("seq", flat=True).first() or 0


def _entries(session_id: int, above: int) -> QuerySet[LogEntry]:
    return LogEntry.objects.filter(session=session_id, seq__gt=above)


MOST_COUNTED = 20_000
"""Entries that are counted by kind at most: reading those of a longer log takes too long for a page."""


@dataclass(frozen=True, slots=True)
class Counts:
    """`texts` and `results` are None for a log that is too long to be counted."""

    all: int
    texts: int | None
    calls: int
    results: int | None
    errors: int


def counts_of(session: Session) -> Counts:
    rows = LogEntry.objects.filter(session=session)
    errors = rows.filter(is_error=True).count()
    last = rows.order_by("-seq").values_list("seq", flat=True).first() or 0
    if last > MOST_COUNTED:
        return Counts(last, None, session.tool_calls, None, errors)
    kinds = dict(rows.order_by().values_list("kind").annotate(Count("seq")))
    calls, results = kinds.get(LogKind.TOOL_USE, 0), kinds.get(LogKind.TOOL_RESULT, 0)
    return Counts(sum(kinds.values()), kinds.get(LogKind.TEXT, 0), calls, results, errors)


PAGE_BYTES = 128 * 1024
MARGIN = 4096
"""Bytes around a page that are masked with it, so that a credential at its edge is whole when it is looked for."""


@dataclass(frozen=True, slots=True)
class RawPage:
    """The bytes from `start` to `end` of `size`; `number` counts pages from 1 to `last`."""

    text: str
    number: int
    last: int
    start: int
    end: int
    size: int


def raw_page(path: Path, number: int) -> RawPage:
    """Return one page of the file, masked; the last one for a number behind it. Raises OSError."""
    size = path.stat().st_size
    last = max(-(-size // PAGE_BYTES), 1)
    number = min(number, last)
    start = (number - 1) * PAGE_BYTES
    before = min(start, MARGIN)
    with path.open("rb") as file:
        file.seek(start - before)
        data = file.read(before + PAGE_BYTES + MARGIN)
    masked, _ = mask_bytes(data)  # as long as what it masks
    shown = masked[before : before + PAGE_BYTES]
    text = shown.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return RawPage(text, number, last, start, start + len(shown), size)
