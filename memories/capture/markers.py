"""Find memories in an agent's text and structured response. Pure: the caller decides which text may be read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memories.capture.fields import SERVICE, SERVICE_LENGTH
from memories.capture.lines import accepted_lines
from memories.capture.statement import Statement
from memories.errors import InvalidMemory
from memories.taxonomy import OPS, PROJECT, Taxonomy

OF_SERVICES = dict.fromkeys(OPS.categories, OPS)
OF_PROJECTS = dict.fromkeys(PROJECT.categories, PROJECT)
"""The taxonomy of each category of a marker. No name is in both."""
MARKER = re.compile(rf"\[MEMORY:({'|'.join(OF_SERVICES | OF_PROJECTS)})(?::([a-zA-Z0-9._-]+))?\]\s*(.+)")
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


def memory_markers(text: str, *, in_project: bool = False) -> MemoryMarkers:
    """Return the memory markers of `text`, at most one a line. One without an observation is ignored.

    `in_project`: its session has a project, so that the categories of the project taxonomy are known as well.
    """
    if OPENING not in text:
        return MemoryMarkers()
    accepted = accepted_lines(text)
    statements: list[Statement] = []
    unknown: list[UnknownMarker] = []
    last_line = 0
    for place in accepted.markers:
        line = place.line
        if place.number == last_line or not line.startswith(OPENING, place.start):
            continue
        match = MARKER.match(line, place.start)
        if match is None or _taxonomy(match[1], in_project) is None:
            unknown += _unknown(line, place.start, in_project)
            continue
        last_line = place.number
        category, service, rest = match.groups()
        if len(service or "") > SERVICE_LENGTH:
            reason = f"the service's name is longer than {SERVICE_LENGTH} characters"
            unknown.append(UnknownMarker(category, line, reason))
            continue
        statement = _statement(category, _unwrap(line[: place.start], rest.strip()), service)
        if statement.observation:
            statements.append(statement)
    return MemoryMarkers(statements, unknown, sum(OPENING in line for line in accepted.skipped))


def memory_from_key(key: str, value: str, *, in_project: bool = False) -> Statement | UnknownMarker:
    """Read `service:category` or `category` and the observation; an unambiguous `category:service` is accepted too.

    `in_project` as for `memory_markers`.
    """
    parts = [part.strip() for part in str(key).split(":")]
    shown = f"{key}: {value}"
    categories = _known(in_project)
    if len(parts) == 2 and parts[1] not in categories and parts[0] in categories:
        parts.reverse()
    category = parts[-1]
    service = parts[0] if len(parts) == 2 else ""
    if len(parts) > 2:
        return UnknownMarker(category, shown, "the key is neither service:category nor category")
    if category not in categories:
        return UnknownMarker(category, shown, _no_category(category, in_project))
    if service and not SERVICE.fullmatch(service):
        return UnknownMarker(category, shown, _no_service(service))
    statement = _statement(category, str(value), service)
    return statement if statement.observation else UnknownMarker(category, shown, "there is no observation")


def statement_of(category: str, text: str, service: str | None = None, *, in_project: bool = False) -> Statement:
    """Return the statement of a caller that names its category, in the taxonomy that the category is of.

    `in_project` as for `memory_markers`. Raises InvalidMemory.
    """
    if _taxonomy(category, in_project) is None:
        reason = "a category of projects, and you have none" if category in OF_PROJECTS else "not a category"
        raise InvalidMemory(f"{category!r} is {reason}.", f"Use {', '.join(_known(in_project))}.", field="category")
    return _statement(category, text, service)


def _known(in_project: bool) -> dict[str, Taxonomy]:
    return OF_SERVICES | OF_PROJECTS if in_project else OF_SERVICES


def _taxonomy(category: str, in_project: bool) -> Taxonomy | None:
    return OF_SERVICES.get(category) or (OF_PROJECTS.get(category) if in_project else None)


def _statement(category: str, text: str, service: str | None) -> Statement:
    if category in OF_SERVICES:
        return Statement(category, text, service)
    # An imported log gives a project's memory as much as a run: the taxonomy has no first confidence of imports.
    return Statement(category, text, service, PROJECT.slug, PROJECT.first_confidence["run"])


def _unknown(line: str, start: int, in_project: bool) -> list[UnknownMarker]:
    if bracket := LOOKS_LIKE.match(line, start):
        category, _, service = bracket[1].partition(":")
        if _taxonomy(category, in_project) is None:
            return [UnknownMarker(category, line, _no_category(category, in_project))]
        if ":" in bracket[1] and not SERVICE.fullmatch(service):
            return [UnknownMarker(category, line, _no_service(service))]
    return []


def _no_category(category: str, in_project: bool) -> str:
    if category in OF_PROJECTS:
        return f"{category!r} is a category of projects, and its session has none"
    return f"{category!r} is not a category ({', '.join(_known(in_project))})"


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
