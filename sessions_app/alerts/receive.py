"""Queue the session of an alert, once while it is open."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from memories.models import Project
from sessions_app.alerts.forms import Alert
from sessions_app.models import Agent, Session, Trigger
from sessions_app.models.session import OPEN_STATUSES
from sessions_app.queue import request_session

ATTEMPTS = 5
"""A session that is found open may end, and one that is not may be made by another, between two statements."""


@dataclass(frozen=True, slots=True)
class Received:
    """What became of an alert: `queued` (a new session), `joined` (its open one) or `ignored`, and why."""

    outcome: str
    session: Session | None
    message: str


def receive(
    alert: Alert, *, agent: Agent, project: Project | None, by: str, highest: int, at: datetime | None = None
) -> Received:
    """Queue a session of `agent` for the alert, or join the one that is open for the same alert.

    It is never dropped: a session that has to wait says why. Its tier is the agent's, at most `highest` and the highest
    that is allowed. Two of the same alert at once make one session: an index of the database allows one open session
    for each key.
    """
    key = _key(alert, agent, project)
    if not alert.starts:
        open_one = _open(key).first()
        return Received("ignored", open_one, f"{alert.why} No session was started.")
    tier = min(agent.tier, highest, settings.CLAUDEOPS_MAX_TIER)
    for attempt in range(ATTEMPTS):
        if _open(key).update(coalesced=F("coalesced") + 1) and (found := _open(key).first()):
            return Received("joined", found, f"Session {found.pk} is open for this alert.")
        try:
            with transaction.atomic():
                made = request_session(
                    agent=agent,
                    trigger=Trigger.ALERT,
                    by=by,
                    tier=tier,
                    prompt_task=alert.task,
                    project=project,
                    alert_key=key,
                    at=at,
                )
        except IntegrityError:
            if attempt == ATTEMPTS - 1:
                raise
            continue
        return Received("queued", made, f"Session {made.pk} is queued.")
    raise AssertionError("each attempt returns, raises or is followed by another")


def _open(key: str) -> QuerySet[Session]:
    return Session.objects.filter(alert_key=key, status__in=OPEN_STATUSES)


def _key(alert: Alert, agent: Agent, project: Project | None) -> str:
    parts = [alert.source, alert.key, agent.pk, project.pk if project else None]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
