"""Set up the demo's project, its agents and their first sessions. Changes by an operator are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from memories.capture.statement import Provenance
from memories.lifecycle import verbs
from memories.lifecycle.projects import add_project
from memories.models import Memory, Project, Source, UsedMeans
from memories.store import Statement, remember
from sessions_app.models import Agent, Runner, ScheduleKind, Session, Trigger
from sessions_app.queue import request_session

BY = "demo"
FIRST = "homelab-watch"

AGENTS: Mapping[str, Mapping[str, Any]] = {
    # An agent is created after the one it escalates to.
    "homelab-mend": {
        "name": "Homelab mend",
        "description": "Carries out the repair that tier 2 asks for, within the limits, and checks that it worked.",
        "tier": 3,
    },
    "homelab-investigate": {
        "name": "Homelab investigate",
        "description": "Finds the cause of what tier 1 hands over. Changes nothing.",
        "tier": 2,
        "escalates_to": "homelab-mend",
    },
    "homelab-watch": {
        "name": "Homelab watch",
        "description": "Looks at jellyfin, postgres, caddy, wireguard and adguard every minute.",
        "tier": 1,
        "schedule_kind": ScheduleKind.INTERVAL,
        "interval_seconds": 60,
        "escalates_to": "homelab-investigate",
    },
    "nightly-review": {
        "name": "Nightly review",
        "description": "Reviews the night: backups, load, updates.",
        "tier": 1,
        "schedule_kind": ScheduleKind.CRON,
        "cron": "15 4 * * *",
    },
    "shares-move": {
        "name": "Shares move",
        "description": "Looks each two minutes at how the move of the shares goes.",
        "tier": 1,
        "schedule_kind": ScheduleKind.INTERVAL,
        "interval_seconds": 120,
        "project": "nas-move",
    },
}

PROJECT: Mapping[str, Any] = {
    "slug": "nas-move",
    "name": "Move to the new NAS",
    "description": "Moves all shares to the new server.",
    "path": "/srv/homelab",
    # A recording cannot name the memories of this database by their ids.
    "used_means": UsedMeans.INJECTED,
}
KNOWN = (
    ("pattern", "The old file server stays readable until the move ends; write only to nas", ("shares", "nas")),
    ("warning", "Restic needs a new repository id after the move", ("restic",)),
    ("context", "The shares move until the end of the week", ("shares",)),
)
"""What the demo's operator wrote down of the project: type, text, tags. The first is approved, the last ends soon."""
SOON = timedelta(days=3)

FIRST_RUNS = 2
"""Requested at once; the second waits for the first, so that its prompt shows what the first one learned."""

FIRST_REVIEW = timedelta(minutes=3)
"""Time until the first run of the nightly review, so that nobody has to wait for the night."""


@dataclass(frozen=True, slots=True)
class SetUp:
    agents: tuple[str, ...]
    sessions: tuple[int, ...]


def set_up(*, at: datetime | None = None) -> SetUp:
    """Create missing agents, and request the first sessions when there are none. Idempotent, in one transaction.

    `at` is UTC. Paths of streams are relative to the package: the data folder works after the checkout is moved.
    """
    at = at or timezone.now()
    made = []
    with transaction.atomic():
        if not Project.objects.filter(slug=PROJECT["slug"]).exists():
            _project(at)
        for slug, profile in AGENTS.items():
            if _make(slug, profile, at):
                made.append(slug)
        first = _first_runs(at)
    return SetUp(tuple(made), tuple(first))


def _project(at: datetime) -> None:
    project = add_project(**PROJECT)
    said = Provenance(Source.HUMAN, BY, project_id=project.pk, channel="human")
    for category, text, tags in KNOWN:
        remember(Statement(category, text, None, "project", tags=tags), said, at=at)
    made = list(Memory.objects.filter(project=project).order_by("pk"))
    verbs.approve(made[0], by=BY, at=at)
    verbs.edit(made[-1], by=BY, at=at, expires_at=at + SOON)


def _make(slug: str, profile: Mapping[str, Any], at: datetime) -> bool:
    if Agent.objects.filter(slug=slug).exists():
        return False
    fields = {**profile, "runner": Runner.REPLAY, "replay_stream": f"demo/streams/{slug}"}
    if "project" in fields:
        fields["project"] = Project.objects.get(slug=fields["project"])
    if "escalates_to" in fields:
        fields["escalates_to"] = Agent.objects.get(slug=fields["escalates_to"])
    if fields.get("schedule_kind") == ScheduleKind.INTERVAL:
        fields["next_run_at"] = at + timedelta(seconds=fields["interval_seconds"])
    elif fields.get("schedule_kind") == ScheduleKind.CRON:
        fields["next_run_at"] = at + FIRST_REVIEW
    agent = Agent(slug=slug, **fields)
    agent.full_clean()
    agent.save()
    return True


def _first_runs(at: datetime) -> list[int]:
    agent = Agent.objects.get(slug=FIRST)
    if Session.objects.filter(agent=agent).exists():
        return []
    return [request_session(agent=agent, trigger=Trigger.MANUAL, by=BY, at=at).pk for _ in range(FIRST_RUNS)]
