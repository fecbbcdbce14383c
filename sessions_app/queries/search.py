"""One search: memories, sessions, events, journal, decisions and skills, each kind apart with its count.

Memories are found by recall; of the others, which have no index of words, those that have every word of the text: of
sessions, events and journal entries among the newest SEARCHED.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.urls import reverse

from memories.access import Access
from memories.injection.escape import safe
from memories.library import journal, skills
from memories.library.decisions.filters import DecisionFilterSet, visible_decisions
from memories.library.decisions.index import told_key, told_text
from memories.queries.journal import JournalFilterSet, visible_entries
from memories.recall.service import Question, ask
from sessions_app.hooks.news import words_of
from sessions_app.models import Event, Session
from sessions_app.queries.filters import EventListFilterSet

SEARCHED = 20_000
MOST_COUNTED = 100
"""Hits up to which a kind is counted."""
LONGEST = 200
"""Characters of a text that are looked for."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One row. `url` is its permanent address; `at` (UTC) may be None."""

    title: str
    url: str
    beside: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """The hits of one kind: `count` in all, MOST_COUNTED for as many or more.

    `url` is their list with this text, "" for none.
    """

    name: str
    count: int
    hits: tuple[Hit, ...]
    url: str


@dataclass(frozen=True, slots=True)
class _Asked:
    access: Access
    text: str
    limit: int
    told: bool

    def said(self, text: str) -> str:
        """Return a text as this caller gets it: an agent gets none that would not be injected."""
        return safe(words_of(text)) if self.told else text


def search(access: Access, text: str, *, kinds: Collection[str] = (), limit: int = 5, told: bool = False) -> list[Kind]:
    """Search within what `access` may see; `told`: for an agent. An empty text finds nothing. Raises InvalidRecall."""
    plain = " ".join(text.replace("\0", " ").split())[:LONGEST]
    asked = _Asked(access, plain, limit, told)
    return [find(asked) for name, find in KINDS.items() if plain and (not kinds or name in kinds)]


def _memories(asked: _Asked) -> Kind:
    found = ask(asked.access, Question(asked.text, limit=20), "search")
    hits = [
        Hit(asked.said(one.observation), reverse("memory", args=[one.memory_id]), one.service or "", one.updated_at)
        for one in found.hits
    ]
    return Kind("memories", len(hits), tuple(hits[: asked.limit]), _address("recall", query=asked.text))


def _sessions(asked: _Asked) -> Kind:
    rows = visible_sessions(asked.access)
    newest = rows.order_by("-queued_at", "-id").values_list("queued_at", flat=True)
    if oldest := newest[SEARCHED - 1 : SEARCHED].first():
        rows = rows.filter(queued_at__gte=oldest)
    for word in asked.text.split():
        rows = rows.filter(Q(summary__icontains=word) | Q(status_reason__icontains=word) | Q(task__icontains=word))
    return _kind("sessions", asked, rows.select_related("agent").order_by("-queued_at", "-id"), _session)


def _session(asked: _Asked, row: Session) -> Hit:
    agent = row.agent.slug if row.agent else ""
    title = f"#{row.pk} {asked.said(row.ended_with)}".strip()
    return Hit(title, reverse("session", args=[row.pk]), f"{agent} {row.get_status_display()}".strip(), row.queued_at)


def _events(asked: _Asked) -> Kind:
    filters = EventListFilterSet({"text": asked.text}, queryset=visible_events(asked.access))
    return _kind("events", asked, filters.qs.order_by("-created_at", "-id"), _event)


def _event(asked: _Asked, row: Event) -> Hit:
    address = f"{reverse('session', args=[row.session_id])}?tab=events" if row.session_id else reverse("events")
    return Hit(asked.said(row.message), address, f"{row.level} {row.service or ''}".strip(), row.created_at)


def _journal(asked: _Asked) -> Kind:
    journal.catch_up()
    filters = JournalFilterSet({"text": asked.text}, queryset=visible_entries(asked.access))

    def hit(asked: _Asked, row: Any) -> Hit:
        title = f"{row.action} {row.tool}: {asked.said('' if asked.told and row.held else row.detail)}"
        return Hit(title, reverse("journal-entry", args=[row.uid]), row.agent or row.by, row.at)

    return _kind("journal", asked, filters.qs.order_by("-at", "-id"), hit)


def _decisions(asked: _Asked) -> Kind:
    filters = DecisionFilterSet({"text": asked.text}, queryset=visible_decisions(asked.access))
    rows = filters.qs.select_related("project").defer("text").order_by("project__slug", "number", "name")

    def hit(asked: _Asked, row: Any) -> Hit:
        title = f"{told_key(row.key) if asked.told else row.key}: {told_text(row.title) if asked.told else row.title}"
        address = reverse("decision-record", args=[row.project.slug, row.name])
        return Hit(title, address, f"{row.status or 'no status'}, {row.project.slug}")

    return _kind("decisions", asked, rows, hit, page="decision-records")


def _skills(asked: _Asked) -> Kind:
    rows = skills.matching(skills.visible_skills(asked.access), asked.text).select_related("project").defer("text")

    def hit(asked: _Asked, row: Any) -> Hit:
        title = f"{asked.said(row.name)}: {asked.said(row.description)}"
        return Hit(title, reverse("skill", args=[row.pk]), row.project.slug if row.project else "the account's")

    return _kind("skills", asked, rows, hit, page="")


def _kind(
    name: str, asked: _Asked, rows: QuerySet[Any], hit: Callable[[_Asked, Any], Hit], *, page: str | None = None
) -> Kind:
    """Count and show the rows; `page` is the name of their list where it is another one, "" for none."""
    shown = list(rows[: asked.limit])
    count = len(shown) if len(shown) < asked.limit else rows[:MOST_COUNTED].count()
    url = "" if page == "" else _address(page or name, text=asked.text)
    return Kind(name, count, tuple(hit(asked, row) for row in shown), url)


def _address(page: str, **query: str) -> str:
    return f"{reverse(page)}?{urlencode(query)}"


KINDS: Mapping[str, Callable[[_Asked], Kind]] = {
    "memories": _memories,
    "sessions": _sessions,
    "events": _events,
    "journal": _journal,
    "decisions": _decisions,
    "skills": _skills,
}


def visible_sessions(access: Access) -> QuerySet[Session]:
    """Filter to the sessions that a caller may see: with a project its own."""
    rows = Session.objects.all()
    return rows.filter(project=access.project_id) if access.confined else rows


def visible_events(access: Access) -> QuerySet[Event]:
    """Filter to the events that a caller may see: with a project those of its sessions."""
    rows = Event.objects.all()
    return rows.filter(session__project=access.project_id) if access.confined else rows
