"""Parse event and cooldown markers in an agent's text, and the structured answer. Pure.

`memories.capture.markers` parses memory markers, from the same accepted lines.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memories.capture.lines import accepted_lines
from memories.capture.text import fold, normalise_service

EVENT = re.compile(r"\[EVENT:([a-zA-Z0-9_-]+)(?::([a-zA-Z0-9_-]+))?\]\s*(.+)")
COOLDOWN = re.compile(r"\[COOLDOWN:(restart|redeployment):([a-zA-Z0-9_-]+)\]\s*(success|failure)\s*[—–-]\s*(.+)")
COOLDOWN_LIKE = re.compile(r"\[COOLDOWN:[^\]\n]*\].*")

WARNINGS = frozenset({"warning", "warn", "degraded"})
CRITICALS = frozenset({"critical", "error", "err", "fatal", "failure", "failed"})

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
        """Identifies the message within its session, whatever its letter case and spacing."""
        return _digest("event", self.level, self.service or "", fold(self.message).casefold())


@dataclass(frozen=True, slots=True)
class CooldownMarker:
    action: str
    service: str
    outcome: str
    message: str

    def fingerprint(self, tool_calls: int) -> str:
        """Identifies the report within its session.

        `tool_calls` is how many tools the session had called before the report. A restart needs a tool call: the same
        words with no call in between are a repetition, with one they are a second restart.
        """
        return _digest(
            "cooldown", self.action, self.service, self.outcome, fold(self.message).casefold(), str(tool_calls)
        )


@dataclass(frozen=True, slots=True)
class Check:
    """The health of a service, as the agent reported it."""

    service: str
    status: str
    healthy: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Markers:
    events: tuple[EventMarker, ...] = ()
    cooldowns: tuple[CooldownMarker, ...] = ()
    malformed: tuple[str, ...] = ()


NO_MARKERS = Markers()


def level_of(word: str) -> str:
    """The level (info, warning, critical) that the agent's word stands for."""
    word = word.lower()
    return "warning" if word in WARNINGS else "critical" if word in CRITICALS else "info"


def markers(text: str) -> Markers:
    """Event and cooldown markers in the accepted lines of `text`; the first of each kind in a line."""
    if "[EVENT:" not in text and "[COOLDOWN:" not in text:
        return NO_MARKERS
    events, cooldowns, malformed = [], [], []
    for _, line in accepted_lines(text).lines:
        if found := EVENT.search(line):
            events.append(_event(found[1], found[2], found[3]))
        if found := COOLDOWN.search(line):
            service = normalise_service(found[2]) or found[2].lower()
            cooldowns.append(CooldownMarker(found[1], service, found[3], fold(found[4])[:MESSAGE_LIMIT]))
        elif found := COOLDOWN_LIKE.search(line):
            malformed.append(found[0][:200])
    return Markers(tuple(events), tuple(cooldowns), tuple(malformed))


def structured_events(items: Iterable[Any]) -> tuple[list[EventMarker], int]:
    """Events of the structured answer, and how many invalid items were dropped."""
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
    """Health checks of the structured answer (the last of each service), and how many items were dropped."""
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
