"""What the page of a session shows besides its log: its escalation chain, neighbours, limits and its rail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models.functions import Substr
from django.urls import reverse

from claudeops.lib.charts.strip import MOST, Strip
from claudeops.lib.detail_page import Neighbour, Neighbours
from sessions_app.models import LogEntry, LogKind, Session, Status
from sessions_app.queue.dispatch import budget_of
from sessions_app.runner.run import timeout_of
from sessions_app.web.session_band import Limits
from sessions_app.web.strips import strip_of

DEEPEST = 5
"""Most generations that are followed: there are three tiers; the limit guards against a cycle."""

SAID_READ = 400
"""Characters that are read of what a running session said last."""

BROADEST = 20
"""Most children that are shown of one generation."""

TOKENS = {
    "input_tokens": "Input",
    "cache_creation_input_tokens": "Into cache",
    "cache_read_input_tokens": "From cache",
    "output_tokens": "Output",
}
TIERS = {0: "0, the operator", 1: "1, observes", 2: "2, investigates", 3: "3, remediates"}


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


CHAINED = ("id", "agent", "tier", "status", "parent", "follows_as")


def neighbours_of(session: Session) -> Neighbours:
    """Return the sessions before and after it in the list of all sessions, by the time they were queued."""
    here, rows = session.queued_at, Session.objects.all()
    older = rows.filter(queued_at__lte=here).exclude(queued_at=here, pk__gte=session.pk)
    newer = rows.filter(queued_at__gte=here).exclude(queued_at=here, pk__lte=session.pk)
    before = older.order_by("-queued_at", "-id").values_list("pk", flat=True).first()
    after = newer.order_by("queued_at", "id").values_list("pk", flat=True).first()
    return Neighbours(_neighbour(before), _neighbour(after), "by the time they were queued")


def _neighbour(pk: int | None) -> Neighbour | None:
    return None if pk is None else Neighbour(f"{pk}", reverse("session", args=[pk]))


def limits_of(session: Session) -> Limits:
    """Return the limits of the session; its dollars are those that its claim reserved, if it did."""
    turns = session.agent.max_turns if session.agent else None
    return Limits(
        timeout_of(session), turns or settings.CLAUDEOPS_MAX_TURNS, session.reserved_usd or budget_of(session.agent)
    )


def last_said(session: Session) -> str:
    """Return the last text of a session's own, its first line without a marker; empty before it."""
    rows = LogEntry.objects.filter(session=session, kind=LogKind.TEXT).order_by("-seq")
    text = rows.annotate(head=Substr("text", 1, SAID_READ)).values_list("head", flat=True).first() or ""
    return next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("[")), "")


def runs_of(session: Session) -> Strip | None:
    """Return the strip of the last runs of the session's agent; None without an agent."""
    if session.agent_id is None:
        return None
    rows = Session.objects.filter(agent=session.agent_id).exclude(status=Status.QUEUED)
    listed = rows.only("status", "status_reason", "summary", "queued_at", "started_at").order_by("-queued_at", "-id")
    return strip_of(reversed(listed[:MOST]))


def counted(session: Session) -> dict[str, list[tuple[str, Any]]]:
    """Return the tokens by name for people, and what was counted else: of the usage and by the ingest."""
    usage = {name: value for name, value in session.usage.items() if isinstance(value, int | float)}
    rest = {name: value for name, value in usage.items() if name not in TOKENS}
    return {
        "tokens": [(label, usage[name]) for name, label in TOKENS.items() if name in usage],
        "stats": [*sorted(rest.items()), *sorted(session.stats.items())],
    }
