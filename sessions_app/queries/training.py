"""Export a project's sessions as training data: JSON Lines, one ended session a line (docs/training-export.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Q

from claudeops.lib.secrets import mask_value
from memories.models import Project
from sessions_app.credit.outcome import judged
from sessions_app.models import InjectionReceipt, Session, UsedMemory
from sessions_app.models.session import OPEN_STATUSES

SCHEMA = 1
BATCH = 200
"""Sessions in memory at once."""

REWARDS = {True: 1.0, False: 0.0, None: None}
"""What a run is worth, by whether its work succeeded; None where nobody judged the work."""

FIELDS = (
    *("id", "uuid", "agent__slug", "tier", "model", "runner", "trigger", "status", "status_reason", "exit_code"),
    *("task", "prompt", "injected_text", "summary", "num_turns", "cost_usd", "duration_ms"),
    *("queued_at", "started_at", "ended_at"),
)
OF_A_MEMORY = ("id", "uuid", "category", "observation", "confidence")


def training_lines(project: Project, *, since: datetime | None = None) -> Iterator[str]:
    """Yield one JSON object a session of `project` that ended (at `since`, aware UTC, or later), in order of request.

    At most BATCH sessions are in memory. Credentials are masked once more: a rule may be younger than the text.
    """
    rows = Session.objects.filter(project=project).exclude(status__in=OPEN_STATUSES)
    if since is not None:
        rows = rows.filter(ended_at__gte=since)
    rows = rows.order_by("queued_at", "pk")
    after: tuple[datetime, int] | None = None
    while True:
        further = rows
        if after is not None:  # the first condition lets the index skip to the place
            further = rows.filter(queued_at__gte=after[0]).filter(Q(queued_at__gt=after[0]) | Q(pk__gt=after[1]))
        batch = list(further.values(*FIELDS)[:BATCH])
        yield from _lines(batch, project.slug)
        if len(batch) < BATCH:
            return
        after = batch[-1]["queued_at"], batch[-1]["id"]


def _lines(batch: list[dict[str, Any]], slug: str) -> Iterator[str]:
    ids = [row["id"] for row in batch]
    injected = dict(InjectionReceipt.objects.filter(session__in=ids).values_list("session", "included"))
    used: dict[int, list[dict[str, Any]]] = {}
    for one in UsedMemory.objects.filter(session__in=ids).order_by("session", "memory_id"):
        used.setdefault(one.session_id, []).append({"id": one.memory_id, "how": one.how, "helped": one.helped})
    for row in batch:
        line = {
            "schema": SCHEMA,
            "session": row["id"],
            "uuid": str(row["uuid"]),
            "project": slug,
            "agent": row["agent__slug"],
            **{name: row[name] for name in ("tier", "model", "runner", "trigger", "task", "prompt")},
            "system_prompt": row["injected_text"],
            "injected": [
                {"taxonomy": entry.get("taxonomy", "ops")} | {name: entry.get(name) for name in OF_A_MEMORY}
                for entry in injected.get(row["id"], ())
            ],
            "used": used.get(row["id"], []),
            "outcome": row["status"],
            "reason": row["status_reason"],
            **{name: row[name] for name in ("exit_code", "summary")},
            "turns": row["num_turns"],
            "cost_usd": float(row["cost_usd"]),
            "duration_ms": row["duration_ms"],
            **{name: row[name] and row[name].isoformat() for name in ("queued_at", "started_at", "ended_at")},
            "reward": REWARDS[judged(row["status"], row["status_reason"])],
        }
        yield json.dumps(mask_value(line), ensure_ascii=False)
