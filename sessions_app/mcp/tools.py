"""What the five tools do, as plain functions of an Access: recall, remember, memory_show, log_event, check_cooldown.

Knows no protocol. What is stored goes through the gate and the matching as a session's markers do, and counts
once within a session.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.utils import timezone

from memories import store
from memories.access.permissions import Access, memory_of
from memories.api import serializers
from memories.capture import fields
from memories.capture.text import fold
from memories.models import MemoryChange, Source
from memories.recall.service import Question, ask
from memories.taxonomy import GENERAL
from sessions_app.cooldowns import limits
from sessions_app.errors import InvalidSession
from sessions_app.models import Event
from sessions_app.runner.markers import EventMarker

CHANNEL = "mcp"
LONGEST_MESSAGE = 4000
HISTORY = 20


def recall(access: Access, query: str, service: str | None, category: str | None, limit: int) -> dict[str, Any]:
    """The memories that answer, best first; few fields each, since they are read by a model."""
    found = ask(access, Question(query, service=service, category=category, limit=limit), CHANNEL)
    hits = [
        {
            "id": hit.memory_id,
            "observation": hit.observation,
            "service": hit.service or GENERAL,
            "category": hit.category,
            "confidence": hit.confidence,
            "confirmed_at": hit.updated_at.isoformat() if hit.updated_at else None,
            "score": round(hit.score, 3),
        }
        for hit in found.hits
    ]
    return {"memories": hits, "semantic_search": found.trace.semantic}


def memory_show(access: Access, memory_id: int) -> dict[str, Any]:
    row = memory_of(access, memory_id)
    changes = MemoryChange.objects.filter(memory=row).order_by("-at", "-pk")[:HISTORY]
    lines = [
        {"at": change.at.isoformat(), "what": change.kind, "by": change.actor, "why": change.reason}
        for change in reversed(changes)
    ]
    data = serializers.as_data(row)
    names = ("id", "observation", "category", "taxonomy", "confidence", "active", "inactive_reason", "verdict", "tags")
    times = {name: data[name].isoformat() for name in ("created_at", "updated_at")}
    return {name: data[name] for name in names} | times | {"service": row.service or GENERAL, "history": lines}


def remember(access: Access, observation: str, category: str, service: str | None) -> dict[str, Any]:
    """Stored as what a session found out, in its project: allowed, held for a person, or discarded by the gate."""
    said = store.Provenance(
        source=Source.RUN,
        actor=access.actor,
        session_id=access.session_id,
        tier=access.tier,
        project_id=access.project_id,
        channel=CHANNEL,
    )
    made = store.remember(store.Statement(category, observation, service), said)
    return {"outcome": made.outcome, "memory_id": made.memory_id, "reason": made.reason}


def log_event(access: Access, level: str, message: str, service: str | None) -> dict[str, Any]:
    """Within a session the same message counts once, whether it came here or by a marker."""
    text = fold(message)[:LONGEST_MESSAGE]
    if not text:
        raise InvalidSession("message is empty.", "Say what happened, in one sentence.")
    event = EventMarker(level, fields.checked_service(service), text)
    values = {"level": event.level, "service": event.service, "message": event.message, "created_at": timezone.now()}
    if access.session_id is None:  # nothing says that it is the same occasion
        return {"event_id": Event.objects.create(fingerprint=event.fingerprint, **values).pk, "logged": True}
    row, logged = Event.objects.get_or_create(
        session_id=access.session_id, fingerprint=event.fingerprint, defaults=values
    )
    return {"event_id": row.pk, "logged": logged}


def check_cooldown(access: Access, action: str, service: str) -> dict[str, Any]:
    decision = asdict(limits.check(action, service))
    until = decision.pop("until")
    decision.pop("since")
    return decision | {"allowed_again_at": until.isoformat() if until else None}
