"""Compare two sessions: prompts, memories, tool calls and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Substr

from claudeops.lib.diff import DiffLine, line_diff
from sessions_app.models import Event, InjectionReceipt, LogEntry, LogKind, Session
from sessions_app.queries.failures import VARIES
from sessions_app.queries.usual import completed_before

READ = 3_000
"""Tool calls, and events, of a session that are compared."""
SHOWN = 30
"""Differences of one kind that are listed of a side."""
CALL = 200
"""Characters of a call that are compared."""


@dataclass(frozen=True, slots=True)
class OnlyIn:
    """Texts that are in one session only, each with its number there; `more` counts those that are not listed."""

    rows: list[tuple[str, int]]
    more: int


@dataclass(frozen=True, slots=True)
class Sides:
    """What is in one of two sessions only; `same` counts the texts that both have."""

    one: OnlyIn
    other: OnlyIn
    same: int


@dataclass(frozen=True, slots=True)
class Told:
    """A memory of a receipt: its id and its text as it was told."""

    pk: int
    text: str


@dataclass(frozen=True, slots=True)
class Memories:
    """Memories that one of two prompts had, in the order of its receipt; `same` counts those that both had."""

    one: list[Told]
    other: list[Told]
    same: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """`one` compared with `other`. Lines of `prompt` are gone (only in `other`) or new (only in `one`).

    `tools` has (tool, calls in `one`, calls in `other`), where the numbers differ. `pruned` are those of the two whose
    calls are not stored any more.
    """

    one: Session
    other: Session
    prompt: list[DiffLine]
    memories: Memories
    tools: list[tuple[str, int, int]]
    calls: Sides
    events: Sides
    pruned: list[int]


def last_good(session: Session) -> int | None:
    """Return the id of the last completed session of the same agent before `session`."""
    return completed_before(session).values_list("pk", flat=True).first()


def compare(one: Session, other: Session) -> Comparison:
    """Compare two sessions, in five queries."""
    by_session = dict(InjectionReceipt.objects.filter(session__in=(one, other)).values_list("session", "included"))
    here, there = _calls(one), _calls(other)
    return Comparison(
        one=one,
        other=other,
        prompt=line_diff(other.prompt, one.prompt),
        memories=memories_of(by_session.get(one.pk, []), by_session.get(other.pk, [])),
        tools=tools_of(here, there),
        calls=sides_of(here, there),
        events=sides_of(_events(one), _events(other)),
        pruned=[row.pk for row, calls in ((one, here), (other, there)) if row.tool_calls and not calls],
    )


def _calls(session: Session) -> list[str]:
    rows = LogEntry.objects.filter(session=session, kind=LogKind.TOOL_USE).order_by("seq")
    return list(rows.annotate(head=Substr("text", 1, CALL)).values_list("head", flat=True)[:READ])


def _events(session: Session) -> list[str]:
    rows = Event.objects.filter(session=session).order_by("created_at", "pk")
    events = rows.values_list("level", "service", "message")[:READ]
    return [f"{level} · {service or 'general'}: {message}" for level, service, message in events]


def sides_of(one: Iterable[str], other: Iterable[str]) -> Sides:
    """Return the texts that are in one side only, each as it first stands there. Pure.

    Numbers and identifiers are not compared: a call for process 17 is one for process 18.
    """
    here, there = _folded(one), _folded(other)
    return Sides(_only(here, there), _only(there, here), len(here.keys() & there.keys()))


def _folded(texts: Iterable[str]) -> dict[str, tuple[str, int]]:
    by_key: dict[str, tuple[str, int]] = {}
    for text in texts:
        key = " ".join(VARIES.sub("#", text).split())
        first, number = by_key.get(key, (text, 0))
        by_key[key] = (first, number + 1)
    return by_key


def _only(here: dict[str, tuple[str, int]], there: dict[str, tuple[str, int]]) -> OnlyIn:
    rows = [entry for key, entry in here.items() if key not in there]
    return OnlyIn(rows[:SHOWN], max(0, len(rows) - SHOWN))


def tools_of(one: Iterable[str], other: Iterable[str]) -> list[tuple[str, int, int]]:
    """Count the calls by tool where the two sides differ, the largest difference first. Pure."""
    here, there = Counter(map(_tool, one)), Counter(map(_tool, other))
    rows = [(tool, here[tool], there[tool]) for tool in sorted({*here, *there}) if here[tool] != there[tool]]
    return sorted(rows, key=lambda row: -abs(row[1] - row[2]))[:SHOWN]


def _tool(call: str) -> str:
    return call.split(":", 1)[0].split("\n", 1)[0][:80]


def memories_of(one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> Memories:
    """Compare the memories of two receipts by their ids. Pure."""
    here, there = ({entry["id"]: str(entry["observation"]) for entry in side} for side in (one, other))
    return Memories(
        [Told(pk, text) for pk, text in here.items() if pk not in there],
        [Told(pk, text) for pk, text in there.items() if pk not in here],
        len(here.keys() & there.keys()),
    )
