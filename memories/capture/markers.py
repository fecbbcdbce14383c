"""Find memory markers in an agent's text and memories in its structured response. Pure.

The caller decides which text may be read (assistant text, no tool results, no subagents).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memories.capture.fields import SERVICE, SERVICE_LENGTH
from memories.capture.lines import accepted_lines
from memories.capture.statement import Statement
from memories.taxonomy import OPS

MARKER = re.compile(rf"\[MEMORY:({'|'.join(OPS.categories)})(?::([a-zA-Z0-9_-]+))?\]\s*(.+)")
LOOKS_LIKE = re.compile(r"\[MEMORY:([^\]\[]*)\]")
OPENING = "[MEMORY:"
EMPHASIS = ("**", "__", "`", "*", "_")


@dataclass(frozen=True, slots=True)
class UnknownMarker:
    """A marker that cannot be stored; `reason` says why, for the log."""

    category: str
    line_text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MemoryMarkers:
    """The markers of a text; `quoted` counts marker lines in quotations and code, which are not read."""

    found: list[Statement] = field(default_factory=list)
    unknown: list[UnknownMarker] = field(default_factory=list)
    quoted: int = 0


def memory_markers(text: str) -> MemoryMarkers:
    """The memory markers of `text`, at most one a line. A marker without an observation is ignored."""
    if OPENING not in text:
        return MemoryMarkers()
    accepted = accepted_lines(text)
    found: list[Statement] = []
    unknown: list[UnknownMarker] = []
    for _, line in accepted.lines:
        if OPENING not in line:
            continue
        match = MARKER.search(line)
        unknown += _unknown(line[: match.start()] if match else line, line)
        if match is None:
            continue
        category, service, rest = match.groups()
        if len(service or "") > SERVICE_LENGTH:
            reason = f"the service's name is longer than {SERVICE_LENGTH} characters"
            unknown.append(UnknownMarker(category, line, reason))
            continue
        statement = Statement(category, _unwrap(line[: match.start()], rest.strip()), service)
        if statement.observation:
            found.append(statement)
    return MemoryMarkers(found, unknown, sum(OPENING in line for line in accepted.skipped))


def memory_from_key(key: str, value: str) -> Statement | UnknownMarker:
    """A memory of the structured response: `key` is `service:category` or `category`, `value` the observation.

    The order of the text marker, `category:service`, is accepted where it is unambiguous.
    """
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


def _unknown(part: str, line: str) -> list[UnknownMarker]:
    """The first bracket of `part` that resembles a memory marker but is none."""
    for bracket in LOOKS_LIKE.finditer(part):
        category, _, service = bracket[1].partition(":")
        if category not in OPS.categories:
            return [UnknownMarker(category, line, _no_category(category))]
        if ":" in bracket[1] and not SERVICE.fullmatch(service):
            return [UnknownMarker(category, line, _no_service(service))]
    return []


def _no_category(category: str) -> str:
    return f"{category!r} is not a category ({', '.join(OPS.categories)})"


def _no_service(service: str) -> str:
    return f"{service!r} is not a service's name (letters, digits, hyphens, underscores)"


def _unwrap(before: str, observation: str) -> str:
    """Remove the emphasis opened directly before the marker: **[MEMORY:timing]** Takes 60 s."""
    for mark in EMPHASIS:
        if before.endswith(mark):
            if observation.startswith(mark):
                return observation[len(mark) :].lstrip()
            return observation.removesuffix(mark).rstrip()
    return observation
