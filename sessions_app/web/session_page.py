"""What the page of a session shows besides its log: its escalation chain, its receipt and its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet

from memories.models import MemoryChange
from sessions_app.models import CooldownAction, Event, InjectionReceipt, ServiceCheck, Session

SHOWN = 100
DEEPEST = 5
"""Most generations that are followed: there are three tiers; the limit guards against a cycle."""

BROADEST = 20
"""Most children that are shown of one generation."""

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Cut(Generic[Row]):
    rows: list[Row]
    more: bool


def cut(rows: QuerySet[Row], most: int = SHOWN) -> Cut[Row]:
    found = list(rows[: most + 1])
    return Cut(found[:most], len(found) > most)


def ancestors_of(session: Session) -> list[Session]:
    found: list[Session] = []
    parent = session.parent
    while parent is not None and len(found) < DEEPEST and parent.pk not in {row.pk for row in found}:
        found.append(parent)
        parent = parent.parent
    return found[::-1]


@dataclass(frozen=True, slots=True)
class Link:
    """One session of a chain; `depth` counts the generations from the first one, 0."""

    session: Session
    depth: int
    own: bool


def chain_of(session: Session) -> list[Link]:
    """Return all sessions that escalated to and from `session`, parents first; empty without any."""
    above = ancestors_of(session)
    found = [Link(one, depth, False) for depth, one in enumerate(above)]
    found.append(Link(session, len(above), True))
    below = _descendants(session, depth=len(above) + 1)
    return found + below if above or below else []


def _descendants(session: Session, depth: int) -> list[Link]:
    seen, generation = {session.pk}, [session.pk]
    children: dict[int, list[Session]] = {}
    for _ in range(DEEPEST):
        rows = Session.objects.filter(parent__in=generation).exclude(pk__in=seen).select_related("agent")
        listed = list(rows.only(*CHAINED, "agent__slug").order_by("pk")[:BROADEST])
        for row in listed:
            children.setdefault(row.parent_id or 0, []).append(row)
        generation = [row.pk for row in listed]
        seen.update(generation)
        if not generation:
            break
    return list(_in_order(session.pk, children, depth))


def _in_order(pk: int, children: dict[int, list[Session]], depth: int) -> list[Link]:
    found: list[Link] = []
    for child in children.get(pk, []):
        found += [Link(child, depth, False), *_in_order(child.pk, children, depth + 1)]
    return found


CHAINED = ("id", "agent", "tier", "status", "parent")


def receipt_of(session: Session) -> InjectionReceipt | None:
    return InjectionReceipt.objects.filter(session=session).first()


def results_of(session: Session) -> dict[str, Any]:
    changes = MemoryChange.objects.filter(session=session).select_related("memory").order_by("at", "pk")
    return {
        "events": cut(Event.objects.filter(session=session).order_by("created_at", "pk")),
        "changes": cut(changes),
        "cooldowns": cut(CooldownAction.objects.filter(session=session).order_by("created_at", "pk")),
        "checks": cut(ServiceCheck.objects.filter(session=session).order_by("healthy", "service")),
    }


def counted(session: Session) -> dict[str, list[tuple[str, Any]]]:
    return {
        "stats": sorted(session.stats.items()),
        "usage": sorted((name, value) for name, value in session.usage.items() if isinstance(value, int | float)),
    }
