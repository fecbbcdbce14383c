"""Jump: find a page, an agent, a service, a session or a recent memory by a few letters. Each look-up is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from memories.models import Memory
from sessions_app.models import Agent, Session

EACH = 6
"""Hits of one kind."""
RECENT_MEMORIES, RECENT_SESSIONS = 2000, 500
"""How many are read, newest first: a search of all memories is the recall page's, which the last hit leads to."""
LONGEST = 200
LARGEST = 2**63 - 1

SEES_MEMORIES, SEES_SESSIONS = "memories.view_memory", "sessions_app.view_session"
PAGES = (
    ("Overview", "overview", ""),
    ("Sessions", "sessions", SEES_SESSIONS),
    ("Events", "events", "sessions_app.view_event"),
    ("Memories", "memories", SEES_MEMORIES),
    ("Desk", "desk", SEES_MEMORIES),
    ("Recall", "recall", SEES_MEMORIES),
    ("Cooldowns", "cooldowns", "sessions_app.view_cooldownaction"),
    ("Agents", "admin:sessions_app_agent_changelist", "sessions_app.view_agent"),
    ("All records", "admin:index", ""),
    ("Preferences", "preferences", ""),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """One place: its address, what it is called, and what stands beside that."""

    url: str
    text: str
    beside: str = ""


def find(user: Any, text: str) -> list[tuple[str, list[Hit]]]:
    """Return (heading, hits) for each kind that has hits and that the account may see; without a text the pages."""
    wanted = " ".join("".join(char if char.isprintable() else " " for char in text.lower()).split())[:LONGEST]
    kinds = (("Go to", _pages), ("Agents", _agents), ("Services", _services), ("Sessions", _sessions))
    groups = [(heading, list(hits(user, wanted))) for heading, hits in (*kinds, ("Memories", _memories))]
    return [(heading, hits) for heading, hits in groups if hits]


def _pages(user: Any, wanted: str) -> Iterator[Hit]:
    for label, name, permission in PAGES:
        if wanted in label.lower() and (not permission or user.has_perm(permission)):
            yield Hit(reverse(name), label)


def _agents(user: Any, wanted: str) -> Iterator[Hit]:
    if wanted and user.has_perm("sessions_app.view_agent"):
        for pk, slug, tier in Agent.objects.filter(slug__icontains=wanted).values_list("pk", "slug", "tier")[:EACH]:
            yield Hit(reverse("admin:sessions_app_agent_change", args=[pk]), slug, f"tier {tier}")


def _services(user: Any, wanted: str) -> Iterator[Hit]:
    if wanted and user.has_perm(SEES_MEMORIES):
        # From its place in the index on, in the database's own order: a few names are read, however many there are.
        rows = Memory.objects.filter(service__gte=wanted).order_by("service")
        for service in rows.values_list("service", flat=True).distinct()[:EACH]:
            if service and service.startswith(wanted):
                yield Hit(f"{reverse('memories')}?{urlencode({'service': service})}", service, "its memories")


def _sessions(user: Any, wanted: str) -> Iterator[Hit]:
    if not wanted or not user.has_perm(SEES_SESSIONS):
        return
    number = wanted.removeprefix("session").strip().removeprefix("#")
    if number.isascii() and number.isdigit() and int(number) <= LARGEST:
        rows = Session.objects.filter(pk=int(number))
        most = 1
    else:
        rows, most = Session.objects.order_by("-queued_at", "-id"), RECENT_SESSIONS
    found = 0
    for pk, status, slug, summary in rows.values_list("pk", "status", "agent__slug", "summary")[:most]:
        if most == 1 or wanted in f"{slug or ''} {summary}".lower():
            found += 1
            yield Hit(
                reverse("session", args=[pk]), f"#{pk} {slug or ''} {summary}"[:LONGEST], status.replace("_", " ")
            )
        if found == EACH:
            return


def _memories(user: Any, wanted: str) -> Iterator[Hit]:
    if not wanted or not user.has_perm(SEES_MEMORIES):
        return
    found = 0
    rows = Memory.objects.order_by("-updated_at", "-id").values_list("pk", "observation", "service")
    for pk, observation, service in rows[:RECENT_MEMORIES]:
        if found < EACH and wanted in observation.lower():
            found += 1
            yield Hit(reverse("memory", args=[pk]), observation[:LONGEST], service or "general")
    yield Hit(f"{reverse('recall')}?{urlencode({'query': wanted})}", f"Search all memories for “{wanted}”", "recall")


@require_safe
@never_cache
def jump(request: HttpRequest) -> HttpResponse:
    """Show what `q` finds; a page that works without JavaScript, and to which Ctrl-K leads."""
    text = request.GET.get("q", "")[:LONGEST]
    return render(request, "jump.html", {"text": text, "groups": find(request.user, text)})
