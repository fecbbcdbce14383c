"""Parse event and cooldown markers in an agent's text, and the structured answer. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memories.capture.lines import accepted_lines
from memories.capture.text import fold, normalise_service
from sessions_app.models.event import level_of

EVENT = re.compile(r"\[EVENT:([a-zA-Z0-9_-]+)(?::([a-zA-Z0-9._-]+))?\]\s*(.+)")
COOLDOWN = re.compile(r"\[COOLDOWN:(restart|redeployment):([a-zA-Z0-9._-]+)\]\s*(success|failure)\s*[—–-]\s*(.+)")
COOLDOWN_LIKE = re.compile(r"\[COOLDOWN:[^\]\n]*\].*")
OPENINGS = ("[EVENT:", "[COOLDOWN:")

# Status words that count as healthy; any other word does not.
HEALTHY = frozenset({"healthy", "ok", "up", "running", "pass", "passed", "passing", "green", "good", "available"})

MESSAGE_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class EventMarker:
    level: str
    service: str | None
    message: str

    @property
    def fingerprint(self) -> str:
        """Identify the message within its session, whatever its letter case and spacing."""
        return _digest("event", self.level, self.service or "", fold(self.message).casefold())


@dataclass(frozen=True, slots=True)
class CooldownMarker:
    action: str
    service: str
    outcome: str
    message: str

    def fingerprint(self, tool_calls: int) -> str:
        """Identify the report within its session.

        `tool_calls` counts the session's tool calls before it. A restart needs a tool call: the same words with no call
        in between are a repetition, with one they are a second restart.
        """
        return _digest(
            "cooldown", self.action, self.service, self.outcome, fold(self.message).casefold(), str(tool_calls)
        )


@dataclass(frozen=True, slots=True)
class Check:
    service: str
    status: str
    healthy: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Markers:
    events: tuple[EventMarker, ...] = ()
    cooldowns: tuple[CooldownMarker, ...] = ()
    malformed: tuple[str, ...] = ()
    quoted: int = 0


NO_MARKERS = Markers()


def markers(text: str) -> Markers:
    """Parse the event and cooldown markers of `text` that are the agent's own; the first of each kind in a line.

    `quoted` counts the lines with a marker that are another's words and not read (`memories/capture/lines.py`).
    """
    if not any(opening in text for opening in OPENINGS):
        return NO_MARKERS
    events: dict[int, EventMarker] = {}
    cooldowns: dict[int, CooldownMarker] = {}
    malformed: dict[int, str] = {}
    accepted = accepted_lines(text)
    for place in accepted.markers:
        if match := EVENT.match(place.line, place.start):
            events.setdefault(place.number, _event(match[1], match[2], match[3]))
        elif match := COOLDOWN.match(place.line, place.start):
            service = normalise_service(match[2]) or match[2].lower()
            report = CooldownMarker(match[1], service, match[3], fold(match[4])[:MESSAGE_LIMIT])
            cooldowns.setdefault(place.number, report)
        elif match := COOLDOWN_LIKE.match(place.line, place.start):
            malformed.setdefault(place.number, match[0][:200])
    quoted = sum(any(opening in line for opening in OPENINGS) for line in accepted.skipped)
    wrong = tuple(words for number, words in malformed.items() if number not in cooldowns)
    return Markers(tuple(events.values()), tuple(cooldowns.values()), wrong, quoted)


def structured_events(items: Iterable[Any]) -> tuple[list[EventMarker], int]:
    """Return the events of the structured answer, and how many invalid items were dropped."""
    events, dropped = [], 0
    for item in items:
        message = item.get("message") if isinstance(item, Mapping) else None
        if not isinstance(message, str) or not message.strip():
            dropped += 1
            continue
        service = item.get("service")
        events.append(_event(str(item.get("level") or "info"), service if isinstance(service, str) else None, message))
    return events, dropped


def structured_checks(items: Iterable[Any]) -> tuple[list[Check], int]:
    """Return the health checks of the structured answer (the last of each service), and how many items were dropped."""
    checks: dict[str, Check] = {}
    dropped = 0
    for item in items:
        name = item.get("name") if isinstance(item, Mapping) else None
        service = normalise_service(name) if isinstance(name, str) else None
        if not service or len(service) > 64:
            dropped += 1
            continue
        status = fold(str(item.get("status") or "unknown"))[:64]
        detail = item.get("detail")
        checks[service] = Check(
            service, status, status.lower() in HEALTHY, fold(detail)[:MESSAGE_LIMIT] if isinstance(detail, str) else ""
        )
    return list(checks.values()), dropped


def _event(word: str, service: str | None, message: str) -> EventMarker:
    name = normalise_service(service)
    return EventMarker(level_of(word), name[:64] if name else None, fold(message)[:MESSAGE_LIMIT])


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()
