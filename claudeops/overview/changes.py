"""Read what the overview shows, at most once in five seconds for all browsers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Model
from django.utils import timezone

from claudeops.lib.change_token import hash_of
from claudeops.overview import agents, feed, figures, health

SECONDS = 5
"""Most seconds a snapshot is used; an open overview polls every three seconds."""
STATE, SNAPSHOT = "overview-state", "overview-snapshot"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the overview shows. `state` is a hash of it and of the minute, since ages are shown in minutes."""

    figures: figures.Figures
    agents: agents.Agents
    health: health.Health
    entries: list[feed.Entry]
    state: str


def state() -> str:
    return cache.get(STATE) or snapshot().state


def snapshot() -> Snapshot:
    found: Snapshot | None = cache.get(SNAPSHOT)
    if found is None:
        found = _read(timezone.now())
        cache.set_many({SNAPSHOT: found, STATE: found.state}, SECONDS)
    return found


def forget() -> None:
    """Read anew next time: a person has changed something, and looks for it."""
    cache.delete_many((SNAPSHOT, STATE))


def _read(at: datetime) -> Snapshot:
    numbers, condition, entries = figures.read(at), health.read(at), feed.entries(feed.places())
    rows = agents.read(at, numbers.cost_today)
    sessions = [_values(row) for row in (*numbers.running, *numbers.queued, *numbers.failed)]
    counts = [getattr(numbers, name) for name in numbers.__slots__ if name not in figures.ROWS]
    of_agents = [(row, _values(row.agent)) for row in rows.rows]
    minute = at.replace(second=0, microsecond=0)
    keys = [entry.key for entry in entries]
    state = hash_of([minute, sessions, of_agents, rows.total, rows.enabled, counts, condition, keys])
    return Snapshot(numbers, rows, condition, entries, state)


def _values(row: Model) -> dict[str, Any]:
    return {name: value for name, value in vars(row).items() if name != "_state"}
