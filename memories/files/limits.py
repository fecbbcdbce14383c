"""The limits of an agent's file: what has to leave so that it stays within them, and what a file exceeds. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from memories.files.document import Document, same_name
from memories.files.sections import RECENT
from memories.models.project import FILE_LIMITS, limits_of

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Limits:
    """Kilobytes (of 1,024 bytes), sections, items a section, characters a line."""

    kilobytes: int
    sections: int
    items: int
    line: int

    @classmethod
    def of(cls, *levels: Mapping[str, int]) -> Limits:
        """Return the limits of the first of `levels` (the file's, the project's) that states each, else the default."""
        return cls(**limits_of(*levels))

    @property
    def bytes(self) -> int:
        return self.kilobytes * 1024

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in FILE_LIMITS}


@dataclass(frozen=True, slots=True)
class Item(Generic[K]):
    """An entry that is in the file, or is to come in: what decides who leaves. `since` is aware UTC.

    `stays`: it never leaves, since its line holds what is stored nowhere else, or a person made the file so. `lines`
    are those that it has in the file, with their ends; a new one has none yet.
    """

    key: K
    section: str
    text: str
    confidence: float
    since: datetime
    stays: bool = False
    lines: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its lines, with bullet and line end."""
        return sum(len(line.encode()) for line in self.lines) or len(self.text.encode()) + 4

    @property
    def longest(self) -> int:
        """Characters of its longest line, with the bullet."""
        return max((len(line.rstrip("\r\n")) for line in self.lines), default=len(self.text) + 2)

    @property
    def rank(self) -> tuple[bool, bool, float, datetime, str]:
        """Order what leaves first: of Recent Learnings, the lowest in confidence, the oldest."""
        return (self.stays, not same_name(self.section, RECENT), self.confidence, self.since, self.text)


def fit(items: Sequence[Item[K]], limits: Limits, room: int) -> dict[K, str]:
    """Return which of the items have to leave, and why, so that the others are within the limits.

    `room` are the bytes that the file has for entries. A line that is too long leaves; of a section that is full, and
    of a file that is full, what ranks lowest.
    """
    too_long = [item.key for item in items if item.longest > limits.line and not item.stays]
    gone = dict.fromkeys(too_long, f"longer than {limits.line} characters")
    by_section: dict[str, list[Item[K]]] = {}
    for item in items:
        if item.key not in gone and item.section:  # above the first heading there is no section that could be full
            by_section.setdefault(" ".join(item.section.split()).casefold(), []).append(item)
    for group in by_section.values():
        group.sort(key=lambda item: item.rank)
        for item in group[: max(0, len(group) - limits.items)]:
            if item.stays:
                break
            gone[item.key] = f"more than {limits.items} items in {item.section}"
    remaining = sorted((item for item in items if item.key not in gone), key=lambda item: item.rank)
    size = sum(item.size for item in remaining)
    for item in remaining:
        if size <= room or item.stays:
            break
        size -= item.size
        gone[item.key] = f"more than {limits.kilobytes} KB"
    return gone


def exceeded(document: Document, limits: Limits) -> list[str]:
    """Say what of the document is beyond the limits; empty when nothing is."""
    named = [section for section in document.sections if section.line >= 0]
    problems = []
    if document.size > limits.bytes:
        problems.append(f"{document.size / 1024:.1f} KB, at most {limits.kilobytes}")
    if len(named) > limits.sections:
        problems.append(f"{len(named)} sections, at most {limits.sections}")
    problems += [
        f"{len(section.entries)} items in {section.name}, at most {limits.items}"
        for section in named
        if len(section.entries) > limits.items
    ]
    if long := sum(longest(document, entry.start, entry.end) > limits.line for entry in document.entries):
        problems.append(f"{long} line{'s' * (long > 1)} longer than {limits.line} characters")
    return problems


def has_room(document: Document, limits: Limits) -> bool:
    """Whether the document has neither too many bytes nor too many sections."""
    return document.size <= limits.bytes and sum(one.line >= 0 for one in document.sections) <= limits.sections


def longest(document: Document, start: int, end: int) -> int:
    """Return the characters of the longest of these lines."""
    return max(len(text) for text, _ in document.lines[start:end])


def sizes(items: Iterable[Item[K]]) -> int:
    return sum(item.size for item in items)
