"""Read what the overview shows, at most once in five seconds for all browsers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Model
from django.utils import timezone

from claudeops.features.overview import agents, feed, figures, health, silence
from claudeops.lib.change_token import hash_of

SECONDS = 5
"""Most seconds a snapshot is used; an open overview polls every three seconds."""
STATE, SNAPSHOT = "overview-state", "overview-snapshot"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the overview shows, with the entries of one kind or of all.

    `state` is a hash of it and of the minute, since ages are shown in minutes.
    """

    figures: figures.Figures
    agents: agents.Agents
    health: health.Health
    entries: list[feed.Entry]
    silence: tuple[silence.Alarm, ...]
    state: str


def state(name: str = "") -> str:
    """Return the state of the page with the feed of `name` (of feed.NAMES, or empty for all)."""
    return cache.get(f"{STATE}-{name}") or snapshot(name).state


def snapshot(name: str = "") -> Snapshot:
    current: Snapshot | None = cache.get(f"{SNAPSHOT}-{name}")
    if current is None:
        current = _read(timezone.now(), name)
        cache.set_many({f"{SNAPSHOT}-{name}": current, f"{STATE}-{name}": current.state}, SECONDS)
    return current


def forget() -> None:
    """Read anew next time: a person has changed something, and looks for it."""
    cache.delete_many([f"{what}-{name}" for what in (SNAPSHOT, STATE) for name in ("", *feed.NAMES)])


def _read(at: datetime, name: str) -> Snapshot:
    numbers, condition, entries = figures.read(at), health.read(at), feed.newest(name)
    rows = agents.read(at, numbers.cost_today)
    sessions = [_values(row) for row in (*numbers.running, *numbers.queued, *numbers.failed)]
    counts = [getattr(numbers, field) for field in numbers.__slots__ if field not in figures.ROWS]
    of_agents = [(row, _values(row.agent)) for row in rows.rows]
    quiet = silence.alarms()
    minute = at.replace(second=0, microsecond=0)
    keys = [(entry.key, entry.mark) for entry in entries]
    state = hash_of([minute, sessions, of_agents, rows.total, rows.enabled, counts, condition, keys, quiet])
    return Snapshot(numbers, rows, condition, entries, quiet, state)


def _values(row: Model) -> dict[str, Any]:
    return {name: value for name, value in vars(row).items() if name != "_state"}
