"""Parts of a page that shows one record: band, tabs, neighbours. Values in, shown by templates/detail. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

SENTENCE = re.compile(r"(?<=\w\w)\w\. (?![a-z])")
"""The last letter of a sentence and what follows: "e.g. " and "1. " end none, and a sentence begins with a capital."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its neighbour: "4 min 12 s", beside it "usually 1 min 52 s". All texts are for people.

    `url` makes the value a link; `percent` (0 to 100) draws a meter below it, None: no meter.
    """

    label: str
    value: str
    beside: str = ""
    url: str = ""
    percent: int | None = None


@dataclass(frozen=True, slots=True)
class Band:
    """What stands first on the page. `icon` is a name of templates/_icons.html, `tone` ok, bad, warn, info or empty.

    `state` is one word or two ("timed out"), `sentence` says what `title` left open; it may be empty. `is_live`:
    the state may change while the page is open; without a connection the page says when it was so.
    """

    title: str
    state: str
    icon: str
    tone: str = ""
    sentence: str = ""
    figures: Sequence[Figure] = field(default_factory=tuple)
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab; `name` is in the address (`?tab=name`), `count` is for people and may be empty."""

    name: str
    label: str
    count: str = ""
    is_shown: bool = False


@dataclass(frozen=True, slots=True)
class Tabs:
    """The tabs of a panel, one of them shown."""

    all: Sequence[Tab]
    shown: str


def tabs_of(tabs: Sequence[Tab], asked: str, default: str) -> Tabs:
    """Mark the tab that was asked for as shown; `default` if there is none of that name."""
    shown = asked if any(tab.name == asked for tab in tabs) else default
    return Tabs(tuple(replace(tab, is_shown=tab.name == shown) for tab in tabs), shown)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The record before or after the shown one: its number and its address."""

    label: str
    url: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The records beside the shown one; None at an end. `order` says of which order: "by time of queueing"."""

    before: Neighbour | None
    after: Neighbour | None
    order: str


def headline(text: str, most: int = 140) -> tuple[str, str]:
    """Split a text into a title of at most `most` characters and the rest, one line each.

    The title is the first sentence, without its full stop; of a longer one its beginning, and then the rest is all of
    it.
    """
    line = " ".join(text.split())
    end = SENTENCE.search(line, 0, most + 1)
    if end is not None:
        return line[: end.start() + 1], line[end.end() :]
    title = line.removesuffix(".")
    if len(title) <= most:
        return title, ""
    return title[: most - 1].rstrip() + "…", line


def percent(part: float, whole: float) -> int | None:
    """Return `part` of `whole` in whole percent, 0 to 100; None when `whole` is zero: there is no limit."""
    return max(0, min(100, round(100 * part / whole))) if whole else None
