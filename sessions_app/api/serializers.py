"""A session as data, for the API and for `--json`. Reads only."""

from __future__ import annotations

from typing import Any

from sessions_app.models import Session


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
        "num_turns": session.num_turns,
        "duration_ms": session.duration_ms,
        "queued_at": session.queued_at,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "parent": session.parent_id,
        "dry_run": session.dry_run,
        "summary": session.summary,
    }


def as_data(session: Session) -> dict[str, Any]:
    receipt = getattr(session, "receipt", None)
    return as_row(session) | {
        "exit_code": session.exit_code,
        "error": session.error,
        "escalation": session.escalation,
        "response": session.response,
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
        "events": list(session.events.order_by("created_at", "id").values("level", "service", "message", "created_at")),
        "memories": list(
            session.memories.order_by("id").values("id", "service", "category", "observation", "confidence")
        ),
        "cooldowns": list(session.cooldown_actions.order_by("id").values("action", "service", "outcome", "message")),
    }
