"""What a session's page shows: its chain, what it was told, what it said, what came of it. Reads only.

Each list is cut and says so; the numbers of queries does not depend on how much there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet

from memories.models import MemoryChange
from sessions_app.models import CooldownAction, Event, InjectionReceipt, LogEntry, ServiceCheck, Session

SHOWN = 100
LOG_LINES = 200
LONG_LINE = 600
"""Characters from which a log line is folded."""
DEEPEST = 5
"""Ancestors followed: there are three tiers, the rest is a guard against a ring."""

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Cut(Generic[Row]):
    """The first rows of a list, and whether there are more."""

    rows: list[Row]
    more: bool


def cut(rows: QuerySet[Row], most: int = SHOWN) -> Cut[Row]:
    found = list(rows[: most + 1])
    return Cut(found[:most], len(found) > most)


@dataclass(frozen=True, slots=True)
class Line:
    """A log entry as it is shown: `head` stands for a long text that is folded."""

    entry: LogEntry
    head: str


@dataclass(frozen=True, slots=True)
class Log:
    """One page of the readable log. `following` is the number to go on after; None at the end."""

    lines: list[Line]
    after: int
    following: int | None


def log_of(session: Session, after: int) -> Log:
    """The log entries with a number above `after`, LOG_LINES of them."""
    found = cut(LogEntry.objects.filter(session=session, seq__gt=after).order_by("seq"), LOG_LINES)
    lines = [Line(entry, _head(entry.text)) for entry in found.rows]
    return Log(lines, after, found.rows[-1].seq if found.more else None)


def _head(text: str) -> str:
    """The first line of a long text, or nothing for a short one."""
    if len(text) <= LONG_LINE and text.count("\n") < 12:
        return ""
    first = text.strip().split("\n", 1)[0]
    return first if len(first) <= 160 else first[:159] + "…"


def ancestors_of(session: Session) -> list[Session]:
    """The sessions this one came from, the first one first."""
    found: list[Session] = []
    parent = session.parent
    while parent is not None and len(found) < DEEPEST and parent.pk not in {row.pk for row in found}:
        found.append(parent)
        parent = parent.parent
    return found[::-1]


def receipt_of(session: Session) -> InjectionReceipt | None:
    return InjectionReceipt.objects.filter(session=session).first()


def page_of(session: Session, *, after: int = 0) -> dict[str, Any]:
    """The context of the page of `session`; `after` is the number of the last log entry already seen."""
    changes = MemoryChange.objects.filter(session=session).select_related("memory").order_by("at", "pk")
    return {
        "session": session,
        "ancestors": ancestors_of(session),
        "children": cut(session.children.select_related("agent").order_by("pk"), 20),
        "receipt": receipt_of(session),
        "events": cut(Event.objects.filter(session=session).order_by("created_at", "pk")),
        "changes": cut(changes),
        "cooldowns": cut(CooldownAction.objects.filter(session=session).order_by("created_at", "pk")),
        "checks": cut(ServiceCheck.objects.filter(session=session).order_by("healthy", "service")),
        "log": log_of(session, after),
        "stats": sorted(session.stats.items()),
        "usage": sorted((name, value) for name, value in session.usage.items() if isinstance(value, int | float)),
    }
