"""Jump: find a page, an agent, a service, a session or a memory by a few letters, or an action to do at once.

Each look-up is bounded, since it runs while somebody types.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from claudeops.lib.answers import action, by_htmx, toast
from claudeops.lib.list_view.view import LISTS
from claudeops.lib.preferences.chosen import all_views_of, choose, preference_of
from claudeops.lib.preferences.models import Theme
from memories.models import AgentFile, Memory, Project
from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Agent, Session, Trigger

EACH = 6
"""Hits of one kind."""
RECENT_MEMORIES, RECENT_SESSIONS = 2000, 500
"""How many are read, newest first: a search of all memories is the recall page's, which the last hit leads to."""
LONGEST = 200
LARGEST = 2**63 - 1
ONLY_ACTIONS, ONLY_SESSIONS = ">", "#"
"""The first letter that asks for one kind alone."""

SEES_MEMORIES, SEES_SESSIONS, RUNS = "memories.view_memory", "sessions_app.view_session", "sessions_app.run_session"
PAGES = (
    ("Overview", "overview", ""),
    ("Sessions", "sessions", SEES_SESSIONS),
    ("Events", "events", "sessions_app.view_event"),
    ("Memories", "memories", SEES_MEMORIES),
    ("Changes", "memory-changes", SEES_MEMORIES),
    ("Timed memories", "memories-timed", SEES_MEMORIES),
    ("Learning log", "transcripts", "memories.view_transcript"),
    ("Search", "search", ""),
    ("Summary", "summary", SEES_SESSIONS),
    ("Decisions", "decision-records", "memories.view_decision"),
    ("Journal", "journal", "memories.view_journalentry"),
    ("Inbox", "inbox", SEES_MEMORIES),
    ("Memory file", "memory-file", "memories.view_memoryfile"),
    ("Recall", "recall", SEES_MEMORIES),
    ("What an agent will be told", "ask", SEES_SESSIONS),
    ("Why did it not remember?", "trace", SEES_SESSIONS),
    ("Feed", "feed", SEES_SESSIONS),
    ("Cooldowns", "cooldowns", "sessions_app.view_cooldownaction"),
    ("Agents", "admin:sessions_app_agent_changelist", "sessions_app.view_agent"),
    ("Projects", "projects", "memories.view_project"),
    ("Maintenance", "maintenance", "memories.view_maintenancerun"),
    ("Diagnostics", "telemetry", "memories.view_telemetryrecord"),
    ("Forget", "purges", "sessions_app.purge_memory"),
    ("Preferences", "preferences", ""),
    ("Admin", "admin:index", ""),
    ("API", "api-docs", ""),
)
THEMES = {Theme.DARK: "dark", Theme.LIGHT: "light", Theme.SYSTEM: "system"}


@dataclass(frozen=True, slots=True)
class Hit:
    """One place: its address, what it is called, and what stands beside that.

    An action is POSTed to `url`; `confirm` is what it asks before, empty for one that does no harm.
    """

    url: str
    text: str
    beside: str = ""
    icon: str = "next"
    is_action: bool = False
    confirm: str = ""


def find(user: Any, text: str) -> list[tuple[str, list[Hit]]]:
    """Return (heading, hits) for each kind that has hits and that the account may see; without a text the pages.

    A text that begins with ">" finds actions alone, one that begins with "#" sessions alone.
    """
    wanted = " ".join("".join(char if char.isprintable() else " " for char in text.lower()).split())[:LONGEST]
    kinds = KINDS
    if wanted[:1] == ONLY_ACTIONS:
        kinds = (("Do", _actions),)
    elif wanted[:1] == ONLY_SESSIONS:
        kinds = (("Sessions", _sessions),)
    words = wanted.removeprefix(ONLY_ACTIONS).removeprefix(ONLY_SESSIONS).split()
    groups = [(heading, list(hits(user, words))) for heading, hits in kinds]
    return [(heading, hits) for heading, hits in groups if hits]


def _has(words: Sequence[str], *texts: str) -> bool:
    """Whether each word stands somewhere in the texts."""
    text = " ".join(texts).lower()
    return all(word in text for word in words)


def _number(words: Sequence[str], kind: str) -> int | None:
    """Return the number in ["12"] or [kind, "12"]; None for anything else."""
    number = (words[1:] if words[:1] == [kind] else words[:1])[:1]
    text = number[0].removeprefix(ONLY_SESSIONS) if number and len(words) <= 2 else ""
    return int(text) if text.isascii() and text.isdigit() and int(text) <= LARGEST else None


def _pages(user: Any, words: Sequence[str]) -> Iterator[Hit]:
    """Yield the pages, and the built-in and saved views of the lists when the words name more than the page."""
    saved = all_views_of(user) if words else []
    for label, name, permission in PAGES:
        if permission and not user.has_perm(permission):
            continue
        if _has(words, label):
            yield Hit(reverse(name), label)
            continue
        if not words or name not in LISTS:
            continue
        listed = LISTS[name]
        views = [(view.label, view.query) for view in (*listed.built_in, *listed.own_views(user))]
        own = [view for view in saved if view.page == name and _has(words, label, view.name)]
        views += [(view.name, view.query) for view in own[:EACH]]
        for called, query in views:
            if query and _has(words, label, called):
                yield Hit(f"{reverse(name)}?{query}", f"{label}: {called}")


def _agents(user: Any, words: Sequence[str]) -> Iterator[Hit]:
    if words and user.has_perms(("sessions_app.view_agent", "sessions_app.view_session")):
        rows = Agent.objects.all()
        for word in words:
            rows = rows.filter(slug__icontains=word)
        for slug, tier in rows.order_by("slug").values_list("slug", "tier")[:EACH]:
            yield Hit(reverse("agent", args=[slug]), slug, f"tier {tier}")


def _projects(user: Any, words: Sequence[str]) -> Iterator[Hit]:
    if words and user.has_perm("memories.view_project"):
        rows = Project.objects.all()
        for word in words:
            rows = rows.filter(Q(slug__icontains=word) | Q(name__icontains=word))
        for slug, name in rows.order_by("slug").values_list("slug", "name")[:EACH]:
            yield Hit(reverse("project", args=[slug]), slug, name)


def _agent_files(user: Any, words: Sequence[str]) -> Iterator[Hit]:
    if words and user.has_perms(("memories.view_project", SEES_MEMORIES)):
        rows = AgentFile.objects.all()
        for word in words:
            rows = rows.filter(Q(agent__icontains=word) | Q(project__slug__icontains=word))
        for agent, project in rows.order_by("agent", "project__slug").values_list("agent", "project__slug")[:EACH]:
            yield Hit(reverse("agent_file", args=[project, agent]), agent, f"memory file in {project}")


def _services(user: Any, words: Sequence[str]) -> Iterator[Hit]:
    if words and user.has_perm(SEES_MEMORIES):
        wanted = " ".join(words)
        # From its place in the index on, in the database's own order: a few names are read, however many there are.
        rows = Memory.objects.filter(service__gte=wanted).order_by("service")
        for service in rows.values_list("service", flat=True).distinct()[:EACH]:
            if service and service.startswith(wanted):
                yield Hit(f"{reverse('memories')}?{urlencode({'service': service})}", service, "its memories")


def _sessions(user: Any, words: Sequence[str]) -> Iterator[Hit]:
    if not words or not user.has_perm(SEES_SESSIONS):
        return
    number = _number(words, "session")
    if number is not None:
        rows, most = Session.objects.filter(pk=number), 1
    else:
        rows, most = Session.objects.order_by("-queued_at", "-id"), RECENT_SESSIONS
    count = 0
    for pk, status, slug, summary in rows.values_list("pk", "status", "agent__slug", "summary")[:most]:
        if number is not None or _has(words, slug or "", summary):
            count += 1
            text = f"#{pk} {slug or ''} {summary}"[:LONGEST]
            icon = Session(status=status).icon
            yield Hit(reverse("session", args=[pk]), text, status.replace("_", " "), icon=icon)
        if count == EACH:
            return


def _memories(user: Any, words: Sequence[str]) -> Iterator[Hit]:
    if not words or not user.has_perm(SEES_MEMORIES):
        return
    count = 0
    number = _number(words, "memory")
    rows = Memory.objects.order_by("-updated_at", "-id") if number is None else Memory.objects.filter(pk=number)
    columns = ("pk", "observation", "service", "active", "verdict")
    for pk, observation, service, active, verdict in rows.values_list(*columns)[:RECENT_MEMORIES]:
        if count < EACH and (number is not None or _has(words, observation)):
            count += 1
            icon = "inactive" if not active else "held" if verdict == "hold" else "ok"
            yield Hit(reverse("memory", args=[pk]), observation[:LONGEST], service or "general", icon=icon)


def _actions(user: Any, words: Sequence[str]) -> Iterator[Hit]:
    """Yield what can be done at once; without words only what needs no choice."""
    if words and user.has_perm(RUNS) and user.has_perm(SEES_SESSIONS):
        rows = Agent.objects.all()
        for word in words:
            if word not in "run agent":
                rows = rows.filter(slug__icontains=word)
        for slug in rows.order_by("slug").values_list("slug", flat=True)[:EACH]:
            asks = f"Press Enter again to run {slug}"
            address = reverse("jump-run", args=[slug])
            yield Hit(address, f"Run agent {slug}", "a session now", icon="play", is_action=True, confirm=asks)
    if _has(words, "add a memory") and user.has_perm("memories.add_memory"):
        yield Hit(f"{reverse('memories')}#add", "Add a memory", icon="proposal")
    current = preference_of(user).theme
    for theme, name in THEMES.items():
        if theme != current and _has(words, f"switch to {name} theme"):
            address = reverse("jump-theme", args=[theme])
            yield Hit(address, f"Switch to {name} theme", icon="cols", is_action=True)
    if words and user.has_perm(SEES_MEMORIES):
        wanted = " ".join(words)
        search = f"{reverse('recall')}?{urlencode({'query': wanted})}"
        yield Hit(search, f"Search all memories for “{wanted}”", "recall", icon="search")
        everything = f"{reverse('search')}?{urlencode({'q': wanted})}"
        yield Hit(everything, f"Search everything for “{wanted}”", "all kinds", icon="search")


KINDS: tuple[tuple[str, Callable[[Any, Sequence[str]], Iterator[Hit]]], ...] = (
    ("Go to", _pages),
    ("Agents", _agents),
    ("Projects", _projects),
    ("Agent files", _agent_files),
    ("Services", _services),
    ("Sessions", _sessions),
    ("Memories", _memories),
    ("Do", _actions),
)


@require_safe
@never_cache
def jump(request: HttpRequest) -> HttpResponse:
    """Show what `q` finds: for htmx as the options of the palette, else as a page that works without JavaScript."""
    text = request.GET.get("q", "")[:LONGEST]
    context = {"text": text, "groups": find(request.user, text), "words": text.lstrip("#> ").split()}
    return render(request, "_palette_hits.html" if by_htmx(request) else "jump.html", context)


@action((SEES_SESSIONS, RUNS))
def run(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue a session of an agent and say so with a link to it; without htmx the session's page opens."""
    try:
        agent = Agent.objects.named(slug)
        session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by=request.user.get_username())
    except SessionsError as error:
        return _answer(request, f"{slug} is not run: {error} {error.fix}".strip(), "error", reverse("jump"))
    address = reverse("session", args=[session.pk])
    link = format_html('<a href="{}">Session {}</a>', address, session.pk)
    if session.hold_reason:
        message = format_html("{} of {} is held. {}", link, slug, session.hold_reason)
        return _answer(request, message, "warning", address)
    return _answer(request, format_html("{} of {} is queued.", link, slug), "success", address)


@require_POST
def theme(request: HttpRequest, theme: str) -> HttpResponse:
    """Store the theme of the signed-in person; the palette's script takes it over without a reload."""
    if theme not in Theme.values:
        raise Http404
    choose(request.user, theme=theme)
    message = f"The theme is {THEMES[Theme(theme)]}."
    response = _answer(request, message, "success", reverse("preferences"))
    if by_htmx(request):
        response["HX-Trigger"] = json.dumps({"theme": "" if theme == Theme.SYSTEM else theme})
    return response


def _answer(request: HttpRequest, message: str, level: str, to: str) -> HttpResponse:
    if by_htmx(request):
        return HttpResponse(toast(request, message, level=level))
    messages.add_message(request, getattr(messages, level.upper()), message)
    return HttpResponseRedirect(to)
