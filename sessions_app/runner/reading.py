"""What a session has read so far, by its log: its exposure, and where outside text stands in the log. Pure.

An exposure begins with the result of a tool call: text that was said before it was said without it. It never shrinks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from memories.models import Exposure
from sessions_app.runner.exposure import SUBAGENT, Judgement
from sessions_app.runner.quoting import shows_form

MOST_SOURCES = 20
MORE = "more"
"""Stands for the sources after the first MOST_SOURCES."""
MOST_CALLS = 64
"""Calls that wait for their results; the oldest of more than these counts as read."""
MOST_RESULTS = 64
"""Outside results whose places are kept, the newest; older ones are hardly before the model any more."""
UNREAD = "unread lines"
UNKNOWN_CALL = "unknown call"
OWN = -1
"""Instead of a source: a result of the house that holds a marker, or the form of a learning."""


@dataclass(frozen=True, slots=True)
class Read:
    """What had been read when something was said. `results` are (offset of the line in the raw log, source)."""

    exposure: str = Exposure.NOTHING.value
    sources: tuple[str, ...] = ()
    results: tuple[tuple[int, str], ...] = ()


@dataclass(slots=True)
class Reading:
    """Accumulators. `calls` are the judgements of calls without a result yet, `results` are "offset:source's index"."""

    exposure: str = Exposure.NOTHING.value
    sources: list[str] = field(default_factory=list)
    calls: dict[str, list[str] | None] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    folder: str = ""

    def add(self, judgement: Iterable[str] | None) -> None:
        """Count what was read: None is nothing, no source is the house."""
        if judgement is None:
            return
        if self.exposure == Exposure.NOTHING:
            self.exposure = Exposure.HOUSE.value
        for source in judgement:
            self.exposure = Exposure.OUTSIDE.value
            if source not in self.sources and len(self.sources) <= MOST_SOURCES:
                self.sources.append(source if len(self.sources) < MOST_SOURCES else MORE)

    def missed(self, what: str = UNREAD) -> None:
        """Count text that could not be judged as outside text."""
        self.add((what,))

    def call(self, call_id: str, judgement: Judgement) -> None:
        """Note a call. One without an id counts at once: its result will not be known."""
        known, call_id = None if judgement is None else list(judgement), key_of(call_id)
        if not call_id:
            self.add(known)
            return
        if call_id in self.calls and self.calls[call_id] != known:
            self.add(self.calls[call_id])
        self.calls[call_id] = known
        if len(self.calls) > MOST_CALLS:
            self.add(self.calls.pop(next(iter(self.calls))))

    def denied(self, call_id: str) -> None:
        """Note that the CLI refused a call: its result is the CLI's own."""
        if (key := key_of(call_id)) in self.calls:
            self.calls[key] = None

    def subagent_line(self, call_id: str) -> None:
        """Note that a subagent's own lines are in the log: its answer tells no more than what these count."""
        if self.calls.get(key := key_of(call_id)) == [SUBAGENT]:
            self.calls[key] = None

    def result(self, call_id: str, text: str, offset: int) -> None:
        """Count the result of a call; later statements are compared with one from outside, or that shows a form."""
        judgement = self.calls.pop(key_of(call_id), [UNKNOWN_CALL])
        self.add(judgement)
        if judgement is None or (not judgement and not shows_form(text)):
            return
        source = judgement[0] if judgement else ""
        index = OWN if not judgement else self.sources.index(source if source in self.sources else MORE)
        place = f"{offset}:{index}"
        if place not in self.results[-1:]:
            self.results = [*self.results, place][-MOST_RESULTS:]

    def is_compared(self, offset: int) -> bool:
        """Whether statements are compared with the results of the line at `offset`, which was read last."""
        return bool(self.results) and self.results[-1].startswith(f"{offset}:")

    def read(self) -> Read:
        places = (place.split(":") for place in self.results)
        results = tuple((int(at), self.sources[int(index)] if index != str(OWN) else "") for at, index in places)
        return Read(self.exposure, tuple(self.sources), results)


@lru_cache(maxsize=256)  # a call and its result ask four times
def key_of(call_id: str) -> str:
    """Return a call's id as it is stored: short, whatever a log holds; empty for none."""
    return hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=8).hexdigest() if call_id else ""


def begun(sources: Sequence[str], *, unread: bool) -> Reading:
    """Return the reading of a session whose task comes from `sources`; `unread`: a part of its log was not judged."""
    reading = Reading()
    if sources:
        reading.add(sources)
    if unread:
        reading.missed()
    return reading
