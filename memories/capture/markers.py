"""Find memories in an agent's text and structured response. Pure: the caller decides which text may be read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memories.capture.fields import SERVICE, SERVICE_LENGTH
from memories.capture.lines import accepted_lines
from memories.capture.statement import Statement
from memories.taxonomy import OPS

MARKER = re.compile(rf"\[MEMORY:({'|'.join(OPS.categories)})(?::([a-zA-Z0-9._-]+))?\]\s*(.+)")
LOOKS_LIKE = re.compile(r"\[MEMORY:([^\]\[]*)\]")
OPENING = "[MEMORY:"
EMPHASIS = ("**", "__", "*", "_")


@dataclass(frozen=True, slots=True)
class UnknownMarker:
    """A marker that cannot be stored; `reason` says why, for the log."""

    category: str
    line_text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MemoryMarkers:
    """The markers of a text; `quoted` counts marker lines that are another's words (`capture/lines.py`): not read."""

    found: list[Statement] = field(default_factory=list)
    unknown: list[UnknownMarker] = field(default_factory=list)
    quoted: int = 0


def memory_markers(text: str) -> MemoryMarkers:
    """Return the memory markers of `text`, at most one a line. One without an observation is ignored."""
    if OPENING not in text:
        return MemoryMarkers()
    accepted = accepted_lines(text)
    found: list[Statement] = []
    unknown: list[UnknownMarker] = []
    taken = 0
    for place in accepted.markers:
        line = place.line
        if place.number == taken or not line.startswith(OPENING, place.start):
            continue
        match = MARKER.match(line, place.start)
        if match is None:
            unknown += _unknown(line, place.start)
            continue
        taken = place.number
        category, service, rest = match.groups()
        if len(service or "") > SERVICE_LENGTH:
            reason = f"the service's name is longer than {SERVICE_LENGTH} characters"
            unknown.append(UnknownMarker(category, line, reason))
            continue
        statement = Statement(category, _unwrap(line[: place.start], rest.strip()), service)
        if statement.observation:
            found.append(statement)
    return MemoryMarkers(found, unknown, sum(OPENING in line for line in accepted.skipped))


def memory_from_key(key: str, value: str) -> Statement | UnknownMarker:
    """Read `service:category` or `category` and the observation; an unambiguous `category:service` is accepted too."""
    parts = [part.strip() for part in str(key).split(":")]
    shown = f"{key}: {value}"
    if len(parts) == 2 and parts[1] not in OPS.categories and parts[0] in OPS.categories:
        parts.reverse()
    category = parts[-1]
    service = parts[0] if len(parts) == 2 else ""
    if len(parts) > 2:
        return UnknownMarker(category, shown, "the key is neither service:category nor category")
    if category not in OPS.categories:
        return UnknownMarker(category, shown, _no_category(category))
    if service and not SERVICE.fullmatch(service):
        return UnknownMarker(category, shown, _no_service(service))
    statement = Statement(category, str(value), service)
    return statement if statement.observation else UnknownMarker(category, shown, "there is no observation")


def _unknown(line: str, start: int) -> list[UnknownMarker]:
    if bracket := LOOKS_LIKE.match(line, start):
        category, _, service = bracket[1].partition(":")
        if category not in OPS.categories:
            return [UnknownMarker(category, line, _no_category(category))]
        if ":" in bracket[1] and not SERVICE.fullmatch(service):
            return [UnknownMarker(category, line, _no_service(service))]
    return []


def _no_category(category: str) -> str:
    return f"{category!r} is not a category ({', '.join(OPS.categories)})"


def _no_service(service: str) -> str:
    return f"{service!r} is not a service's name (letters, digits, dots, hyphens, underscores)"


def _unwrap(before: str, observation: str) -> str:
    """Remove the emphasis opened directly before the marker: **[MEMORY:timing]** Takes 60 s."""
    for mark in EMPHASIS:
        if before.endswith(mark):
            if observation.startswith(mark):
                return observation[len(mark) :].lstrip()
            return observation.removesuffix(mark).rstrip()
    return observation
