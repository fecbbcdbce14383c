"""Set up the demo's project, its agents and their first sessions. Changes by an operator are kept."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from claudeops.lib.tracked_file import git
from memories.capture.fields import agent_id
from memories.capture.statement import Provenance
from memories.curate.maintenance.run import maintain_now
from memories.curate.reflection.runs import reflect
from memories.curate.triage import triage
from memories.files.storage import relative_path
from memories.library import journal
from memories.library.decisions import index as decisions
from memories.lifecycle import verbs
from memories.lifecycle.projects import add_project
from memories.models import ArrivedBy, MaintenanceRun, Memory, Project, Reflection, Source, UsedMeans
from memories.store import Statement, remember
from sessions_app.models import Agent, PromptReceipt, Runner, ScheduleKind, Session, Trigger
from sessions_app.queue import request_session
from sessions_app.runner.turns import prompt_hash
from sessions_app.transcripts import arrivals

logger = logging.getLogger(__name__)

BY = "demo"
ANSWERS = Path(__file__).with_name("answers")
"""What the observer says of the demo's sessions, by what stands in them."""
DECISIONS = Path(__file__).with_name("decisions")
"""What was decided about the shop, as records in its repository; one superseded another."""
TRANSCRIPTS = Path(__file__).with_name("transcripts")
"""Sessions of the shop's developer in the Claude Code CLI. In one of them a page of the web asked for something."""
SAID_AT = "2026-11-23T10:"
"""The hour of their lines. They become of the day before: a session of another day may confirm what they taught."""
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
    "shop-research": {
        "name": "Shop research",
        "description": "Reads how parts of the shop work.",
        "tier": 1,
        "schedule_kind": ScheduleKind.INTERVAL,
        "interval_seconds": 80,
        "project": "tea-shop",
    },
    "shop-engineer": {
        "name": "Shop engineer",
        "description": "Changes prices, amounts and the checkout of the shop, with tests.",
        "tier": 1,
        "schedule_kind": ScheduleKind.INTERVAL,
        "interval_seconds": 100,
        "project": "tea-shop",
    },
    "shop-qa": {
        "name": "Shop QA",
        "description": "Tests the shop as its customers use it.",
        "tier": 1,
        "schedule_kind": ScheduleKind.INTERVAL,
        "interval_seconds": 130,
        "project": "tea-shop",
    },
}

PROJECT: Mapping[str, Any] = {
    "slug": "nas-move",
    "name": "Move to the new NAS",
    "description": "Moves all shares to the new server.",
    # A recording cannot name the memories of this database by their ids.
    "used_means": UsedMeans.INJECTED,
}
SHOP: Mapping[str, Any] = {
    "slug": "tea-shop",
    "name": "Tea shop",
    "description": "Its agents keep memory files in its repository, which people edit too.",
    "trusts_repository": True,
    "trusted_authors": "ada@example.org",
}
SHOP_FOLDER = "tea-shop"
"""The repository of the shop, in the data folder."""
OWN_WORDS = "Ada"
"""Who committed the first lines of a file."""
FIRST_FILE = """# Shop Engineer Memory - Tea shop

<!-- Last Updated: 2026-11-02 09:00 UTC | Auto-updated by: claudeops -->

## Project Architecture (Max: 15 items)

- The shop is one Django project with four apps

## Implementation Guidelines (Max: 15 items)

- Amounts of money are whole cents, never floats

## Performance Considerations (Max: 15 items)

- The test suite takes 4 minutes with two workers

## Common Mistakes to Avoid (Max: 15 items)

## Current Technical Context (Max: 15 items)
"""
"""What a person wrote before the first run. A later run says that the suite takes 9 minutes: a conflict to answer."""
KNOWN = (
    ("pattern", "The old file server stays readable until the move ends; write only to nas", ("shares", "nas")),
    ("warning", "Restic needs a new repository id after the move", ("restic",)),
    ("context", "The shares move until the end of the week", ("shares",)),
)
"""What the demo's operator wrote down of the project: type, text, tags. The first is approved, the last ends soon."""
SOON = timedelta(days=3)
DONE = (
    ("deploy", "tea-shop", "Version 2.4 is on the server; all prices are whole cents.", "See decision 2.", 2),
    ("change", "caddy", "The shop has a site of its own.", "It moved from the old server.", 1),
)
"""What people did: action, tool, detail, reason, days ago."""
LEARNED = (
    ("operations", "The nightly dump of postgres is written to `/srv/backup/postgres`", 0.9, 1),
    ("operations", "The handshake of wireguard takes up to 40 seconds after the modem restarts", 0.86, 2),
    ("rules-conventions", "Nothing may ever be written to the old file server while the shares move", 0.92, 3),
)
"""What sessions of the last days found out: category, text, confidence, days ago. The reflector's recorded answer is
about these, so that MEMORY.md has entries and the inbox a proposal from the start."""
FORGOTTEN = (
    ("ops", "timing", "immich", "Rebuilds its thumbnails within 20 minutes after an upgrade", 0.7, 75),
    ("knowledge", "operations", None, "The rack's fans are loud above 48 degrees, which is normal", 0.8, 120),
    (
        "knowledge",
        "projects",
        None,
        "The old router stays in the drawer until the warranty of the new one ends",
        0.8,
        200,
    ),
)
"""What was known once and nobody confirmed or asked for since: taxonomy, category, service, text, confidence, days
ago. The maintenance of the first night lowers, marks or closes it."""

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
    _repository(shop_folder())
    slugs = []
    with transaction.atomic():
        if not Project.objects.filter(slug=PROJECT["slug"]).exists():
            _project(at)
            _earlier(at)
        if not Project.objects.filter(slug=SHOP["slug"]).exists():
            add_project(**SHOP, path=str(shop_folder()))
        for slug, profile in AGENTS.items():
            if _make(slug, profile, at):
                slugs.append(slug)
        first = _first_runs(at)
    _library(at)
    _developers_sessions(at)
    _curate(at)
    return SetUp(tuple(slugs), tuple(first))


def shop_folder() -> Path:
    return Path(settings.CLAUDEOPS_DATA_DIR) / SHOP_FOLDER


def _repository(folder: Path) -> None:
    """Make the repository of the shop with a first file, as a person commits it; one that is there stays as it is.

    Without git the file is there, and nobody has committed it.
    """
    file = folder / relative_path(Project(**SHOP), agent_id("shop-engineer"))
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(FIRST_FILE, encoding="utf-8")
    shutil.copytree(DECISIONS, folder / "docs" / "decisions", dirs_exist_ok=True)
    person = {"GIT_AUTHOR_NAME": OWN_WORDS, "GIT_COMMITTER_NAME": OWN_WORDS}
    mail = {"GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_EMAIL": "ada@example.org"}
    try:
        repository = git.init(folder)
        git.git(repository, "add", "-A")
        message = "Write down what the engineer has to know"
        git.git(repository, "commit", "--quiet", f"--message={message}", more={**person, **mail})
    except git.GitError as error:
        logger.warning("the demo's repository has no history: %s", error)


def _library(at: datetime) -> None:
    """Read the shop's decisions, and write what people did in the days before into the journal, once."""
    decisions.sync(Project.objects.get(slug=SHOP["slug"]))
    for action, tool, detail, reason, days in DONE:
        journal.note(
            *(action, tool, detail),
            reason=reason,
            by="Ada",
            project=SHOP["slug"],
            key=f"demo {action} {tool}",
            at=at - timedelta(days=days),
        )


def _developers_sessions(at: datetime) -> None:
    """Take in the transcripts of the developer's sessions, each once; what is in the data folder stays as it is."""
    shop = Project.objects.filter(slug=SHOP["slug"]).first()
    folder = Path(settings.CLAUDEOPS_DATA_DIR) / TRANSCRIPTS.name
    folder.mkdir(parents=True, exist_ok=True)
    for recorded in sorted(TRANSCRIPTS.glob("*.jsonl")):
        path = folder / recorded.name
        if not path.exists():
            text = recorded.read_text(encoding="utf-8")
            path.write_text(text.replace(SAID_AT, f"{at - timedelta(days=1):%Y-%m-%dT%H:}"), encoding="utf-8")
        _receipts(path, shop, at - timedelta(days=1))
        arrivals.see(path, arrived_by=ArrivedBy.COMMAND, project=shop, ended=True, at=at)


def _receipts(path: Path, project: Project | None, at: datetime) -> None:
    """Store what our hooks would have kept of a developer's session: its start, its prompts, its end."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    typed = {line["message"]["content"] for line in lines if line.get("promptSource") == "typed"}
    times = {"at": at, "heard_at": at, "ended_at": at + timedelta(hours=1)}
    PromptReceipt.objects.bulk_create(
        (
            PromptReceipt(
                cli_session_id=lines[0]["sessionId"], prompt=prompt, transcript_path=str(path), project=project, **times
            )
            for prompt in ("", *map(prompt_hash, typed))
        ),
        ignore_conflicts=True,
    )


def _earlier(at: datetime) -> None:
    """Store what is known from before the demo began."""
    provenance = Provenance(Source.RUN, f"agent:{FIRST}", agent=None, channel="text")
    for category, text, confidence, days in LEARNED:
        statement = Statement(category, text, None, "knowledge", confidence=confidence)
        remember(statement, provenance, at=at - timedelta(days=days))
    for taxonomy, category, service, text, confidence, days in FORGOTTEN:
        statement = Statement(category, text, service, taxonomy, confidence=confidence)
        remember(statement, provenance, at=at - timedelta(days=days))


def _curate(at: datetime) -> None:
    """Do at once what the schedules do once an hour and in the night."""
    if not Reflection.objects.exists():
        reflect(None, at=at, source="demo")
        triage(at, source="demo")
    if not MaintenanceRun.objects.exists():
        maintain_now(by=BY, at=at)


def _project(at: datetime) -> None:
    project = add_project(**PROJECT)
    provenance = Provenance(Source.HUMAN, BY, project_id=project.pk, channel="human")
    for category, text, tags in KNOWN:
        remember(Statement(category, text, None, "project", tags=tags), provenance, at=at)
    memories = list(Memory.objects.filter(project=project).order_by("pk"))
    verbs.approve(memories[0], by=BY, at=at)
    verbs.edit(memories[-1], by=BY, at=at, expires_at=at + SOON)


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
