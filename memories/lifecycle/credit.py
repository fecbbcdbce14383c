"""Credit the outcome of a session to the memories that it used: the verb for all of one session's."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from memories.lifecycle import rules
from memories.lifecycle.bulk_write import batches, write_all
from memories.lifecycle.lock import writing
from memories.lifecycle.verbs import BY_CONFIDENCE, policy
from memories.lifecycle.write import Why
from memories.models import Change, Inactive, Memory, to_utc

ACTOR = "system"


def credit(memories: Collection[int], *, helped: bool, session_id: int, reason: str, at: datetime | None = None) -> int:
    """Raise or lower the memories whose taxonomy says so, with a change row each; return how many changed.

    One transaction. The session is the evidence. It confirms nothing: a memory ages as before.
    """
    why = Why(ACTOR, to_utc(at), reason, {"helped": helped}, session_id)
    changed = 0
    with writing():
        for rows in batches(Memory.objects.filter(pk__in=memories)):
            changed += write_all((row, Change.CREDITED, credited(row, helped=helped), why) for row in rows)
    return changed


def credited(row: Memory, *, helped: bool) -> dict[str, Any]:
    """Return the columns of a credit; {} where the taxonomy knows none. Below its threshold a memory is inactive."""
    confidence = rules.credited(row.confidence, policy(row), helped=helped)
    if confidence == row.confidence:
        return {}
    new: dict[str, Any] = {"confidence": confidence}
    stands = rules.is_active(confidence, policy(row))
    if row.active and not stands:
        new |= {"active": False, "inactive_reason": Inactive.LOWERED}
    elif helped and stands and not row.active and row.inactive_reason in BY_CONFIDENCE:
        new |= {"active": True, "inactive_reason": ""}
    return new
