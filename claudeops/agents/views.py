"""`/agents/{slug}`: one agent with its tabs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from claudeops.agents import figures
from claudeops.lib.answers import page
from claudeops.lib.change_token import hash_of
from claudeops.lib.detail_page import Tab, tabs_of
from claudeops.overview.agents import row_of
from sessions_app.models import Agent, Session, Status
from sessions_app.queries.last_runs import MOST, last_runs
from sessions_app.web.sessions import list_state

SEES = ("sessions_app.view_agent", "sessions_app.view_session")


@page(SEES)
def agent(request: HttpRequest, slug: str) -> HttpResponse:
    """Show an agent. Its numbers come from counts and from its last runs, never from all of its sessions.

    The page polls itself: 204 while everything is as `seen`.
    """
    found = get_object_or_404(Agent.objects.select_related("project", "escalates_to"), slug=slug)
    at = timezone.now()
    newest = Session.objects.filter(agent=found).order_by("-queued_at", "-id")
    seen = hash_of([list_state(newest, MOST), found.enabled, found.next_run_at])
    if request.GET.get("seen") == seen:
        return HttpResponse(status=204)
    runs = last_runs([found.pk]).get(found.pk, [])
    tabs = [Tab("runs", "Last runs", str(len(runs)))]
    if request.user.has_perm("memories.view_memory"):
        tabs.append(Tab("memories", "Memories"))
    tabs.append(Tab("prompt", "Prompt"))
    shown = tabs_of(tabs, request.GET.get("tab", ""), "runs")
    context: dict[str, Any] = {"agent": found, "tabs": shown, "seen": seen}
    if shown.shown == "runs":
        context["runs"] = [*newest.filter(status=Status.QUEUED)[:MOST], *runs[::-1]]
    if shown.shown == "memories":
        context["memories"] = figures.memories_of(found)
    if request.headers.get("HX-Target") == "tabs":
        return render(request, "agents/_tabs.html", context)
    context |= {
        "row": row_of(found, runs, at),
        "ran": figures.ran(found, at),
        "limits": figures.limits_of(found),
        "allowed": found.allowed_tools or settings.CLAUDEOPS_ALLOWED_TOOLS,
        "denied": [*settings.CLAUDEOPS_DISALLOWED_TOOLS, *found.disallowed_tools],
        "files": figures.files_of(found),
        "weeks": figures.WEEKS,
        "days": figures.MONTH,
    }
    return render(request, "agents/agent.html", context)
