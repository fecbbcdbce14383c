"""`/agents/{slug}`: one agent with its tabs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from claudeops.features.overview.agents import row_of
from claudeops.lib import hour_counts, local_time, periods
from claudeops.lib.answers import page
from claudeops.lib.change_token import hash_of
from claudeops.lib.charts.calendar import Calendar, Day, calendar
from claudeops.lib.detail_page import Tab, tabs_of
from claudeops.lib.humanize import span
from claudeops.lib.periods import Range
from memories.capture.fields import agent_id
from memories.models import AgentFile, Memory
from sessions_app.models import Agent, AgentCount, Session, Status
from sessions_app.queries.filters import TIERS
from sessions_app.queries.outcomes import OUTCOMES, by_outcome
from sessions_app.queries.usual import MOST, last_runs
from sessions_app.queue.dispatch import budget_of
from sessions_app.web.sessions import list_state

WEEKS, MONTH = 13, 30
"""Weeks of the calendar, the last one that of today; days of the cost, as the list's `ended=30d`."""
MICROS = 1_000_000
FILES = 20
LAST, MEMORIES = 100, 20
"""The newest MEMORIES that the LAST sessions made are listed: a search of all sessions could read most memories."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What an agent ran: the calendar of WEEKS, and the sessions and US dollars (without imported logs) of MONTH."""

    days: Calendar
    runs: int
    cost: Decimal


@dataclass(frozen=True, slots=True)
class Limit:
    """A value in force; `is_default` when the settings give it and not the agent."""

    label: str
    value: str
    is_default: bool


def ran(agent: Agent, at: datetime) -> Ran:
    """Read the counts of an agent up to `at` (aware), in days of the active zone. One query."""
    zone = timezone.get_current_timezone()
    days = 7 * (WEEKS - 1) + timezone.localtime(at).weekday() + 1
    edges = periods.edges_of(Range("", "", "", days, 24), at, zone)
    numbers, micros = hour_counts.in_parts(AgentCount, edges, "number", "paid_micros", names=_names(agent))
    spent = sum((part.total() for part in micros[-MONTH:]), 0)
    address = f"{reverse('sessions')}?agent={agent.slug}&ended="
    drawn = [
        _day(since, until, address, by_outcome(_statuses(part)))
        for (since, until), part in zip(pairwise(edges), numbers, strict=True)
    ]
    return Ran(
        days=calendar(f"Sessions by day, {WEEKS} weeks", drawn, OUTCOMES),
        runs=sum(part.total() for part in numbers[-MONTH:]),
        cost=Decimal(spent) / MICROS,
    )


def memories_of(agent: Agent) -> list[Memory]:
    """Return the newest memories that the last sessions of an agent made. Two queries."""
    last = Session.objects.filter(agent=agent).order_by("-queued_at", "-id").values_list("pk", flat=True)
    rows = Memory.objects.filter(session__in=list(last[:LAST])).order_by("-id")
    return list(rows.only("observation", "service", "category", "confidence", "active", "created_at")[:MEMORIES])


def limits_of(agent: Agent) -> list[Limit]:
    """Return the values in force: the agent's own, or else those of the settings."""
    model = getattr(settings, f"CLAUDEOPS_TIER{agent.tier}_MODEL")
    return [
        Limit("Tier", dict(TIERS)[agent.tier], is_default=False),
        Limit("Model", agent.model or model, not agent.model),
        Limit("Turns at most", str(agent.max_turns or settings.CLAUDEOPS_MAX_TURNS), not agent.max_turns),
        Limit("Cost at most", f"${budget_of(agent):.2f}", not agent.max_budget_usd),
        Limit(
            "Time at most", span(agent.timeout_seconds or settings.CLAUDEOPS_SESSION_TIMEOUT), not agent.timeout_seconds
        ),
    ]


def _names(agent: Agent) -> list[str]:
    return [f"{agent.pk}:{status}" for status in Status.values]


def _statuses(part: Counter[str]) -> Counter[str]:
    return Counter({name.partition(":")[2]: number for name, number in part.items()})


def _day(since: datetime, until: datetime, address: str, numbers: Counter[str]) -> Day:
    noon = since + timedelta(hours=12)  # in zones with half hours a day begins before its midnight
    words = f"{timezone.localtime(noon):%a} {local_time.day(noon, until)}"
    return Day(timezone.localtime(noon).date(), words, address + periods.write(since, until), numbers)


def files_of(agent: Agent) -> list[AgentFile]:
    """Return the memory files of an agent, by project. One query."""
    rows = AgentFile.objects.filter(agent=agent_id(agent.slug)).select_related("project")
    return list(rows.only("agent", "project__slug").order_by("project__slug")[:FILES])


SEES = ("sessions_app.view_agent", "sessions_app.view_session")


@page(SEES)
def agent(request: HttpRequest, slug: str) -> HttpResponse:
    """Show an agent. Its numbers come from counts and from its last runs, never from all of its sessions.

    The page polls itself: 204 while everything is as `seen`.
    """
    instance = get_object_or_404(Agent.objects.select_related("project", "escalates_to"), slug=slug)
    at = timezone.now()
    newest = Session.objects.filter(agent=instance).order_by("-queued_at", "-id")
    state = hash_of([list_state(newest, MOST), instance.enabled, instance.next_run_at])
    if request.GET.get("seen") == state:
        return HttpResponse(status=204)
    runs = last_runs([instance.pk]).get(instance.pk, [])
    tabs = [Tab("runs", "Last runs", str(len(runs)))]
    if request.user.has_perm("memories.view_memory"):
        tabs.append(Tab("memories", "Memories"))
    tabs.append(Tab("prompt", "Prompt"))
    shown = tabs_of(tabs, request.GET.get("tab", ""), "runs")
    context: dict[str, Any] = {"agent": instance, "tabs": shown, "seen": state}
    if shown.shown == "runs":
        context["runs"] = [*newest.filter(status=Status.QUEUED)[:MOST], *runs[::-1]]
    if shown.shown == "memories":
        context["memories"] = memories_of(instance)
    if request.headers.get("HX-Target") == "tabs":
        return render(request, "agents/_tabs.html", context)
    context |= {
        "row": row_of(instance, runs, at),
        "ran": ran(instance, at),
        "limits": limits_of(instance),
        "allowed": instance.allowed_tools or settings.CLAUDEOPS_ALLOWED_TOOLS,
        "denied": [*settings.CLAUDEOPS_DISALLOWED_TOOLS, *instance.disallowed_tools],
        "files": files_of(instance),
        "weeks": WEEKS,
        "days": MONTH,
    }
    return render(request, "agents/agent.html", context)
