"""Serialise sessions for the API and for `--json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sessions_app.credit.facts import facts_of
from sessions_app.models import Event, Session


def as_row(session: Session) -> dict[str, Any]:
    return {
        "id": session.pk,
        "uuid": str(session.uuid),
        "agent": session.agent.slug if session.agent else None,
        "tier": session.tier,
        "trigger": session.trigger,
        "status": session.status,
        "status_reason": session.status_reason,
        "hold_reason": session.hold_reason,
        "model": session.model,
        "cost_usd": float(session.cost_usd),
        "cost_is_estimated": session.cost_is_estimated,
        "num_turns": session.num_turns,
        "duration_ms": session.lasted_ms or 0,
        "queued_at": session.queued_at,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "parent": session.parent_id,
        "dry_run": session.dry_run,
        "summary": session.summary,
    }


EVENT = ("level", "service", "message", "created_at", "acknowledged_at", "acknowledged_by")


def event_as_row(event: Event) -> dict[str, Any]:
    return {"id": event.pk, "session": event.session_id} | {name: getattr(event, name) for name in EVENT}


HOOK_RECEIPT = ("event", "agent", "part", "tokens", "sha256", "at")

HELD = "Left out: it holds texts that wait for review. The scope review shows them."


def as_data(session: Session, *, review: bool = True) -> dict[str, Any]:
    """Serialise a whole session; without `review` leave out what waits for a person, and what holds a held text."""
    receipt = getattr(session, "receipt", None)
    memories = session.memories.order_by("id")
    shown = memories if review else memories.allowed().trusted()
    holds = not review and memories.held().exists()
    return as_row(session) | {
        "exposure": session.exposure,
        "exposed_to": session.exposed_to,
        "exit_code": session.exit_code,
        "error": session.error,
        "escalation": session.escalation,
        "response": HELD if holds else session.response,
        "usage": session.usage,
        "stats": session.stats,
        "log_file": session.log_file,
        "children": list(session.children.values_list("pk", flat=True)),
        "receipt": receipt
        and {
            "sha256": receipt.sha256,
            "tokens": receipt.tokens,
            "budget": receipt.budget,
            "counts": receipt.counts,
            "included": receipt.included,
        },
        "hook_receipts": list(session.hook_receipts.order_by("at", "id").values(*HOOK_RECEIPT)),
        "shown": [asdict(fact) for fact in facts_of(session).by_memory.values()],
        "events": list(session.events.order_by("created_at", "id").values("id", *EVENT)),
        "memories": list(shown.values("id", "service", "category", "observation", "confidence")),
        "cooldowns": list(session.cooldown_actions.order_by("id").values("action", "service", "outcome", "message")),
    }
