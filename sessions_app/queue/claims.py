"""Taking a session up: queued → running, once, whoever else tries at the same time.

Knows nothing of what happens to a session after it was claimed.
"""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from sessions_app.models import Session, Status
from sessions_app.queue.admission import hold_reason_for

LOST_THE_RACE = "Another session of the same agent was started at this moment; an agent runs one session at a time."


def claim(session_id: int, *, host: str, at: datetime | None = None) -> Session | None:
    """Take up a queued session for `host` (`at` in UTC; now when None) and return its row, fresh.

    None when it is not queued any more, or may not start: then its `hold_reason` says why, and the next
    dispatch looks at it again. A session without an agent is bound by no other session.
    """
    at = at or timezone.now()
    with transaction.atomic():
        session = Session.objects.select_related("agent").filter(pk=session_id, status=Status.QUEUED).first()
        if session is None:
            return None
        reason = hold_reason_for(session, at)
        if not reason and _take(session, host, at):
            return Session.objects.select_related("agent", "project", "parent").get(pk=session_id)
        Session.objects.filter(pk=session_id, status=Status.QUEUED).update(
            hold_reason=reason or LOST_THE_RACE, dispatched_at=None
        )
        return None


def _take(session: Session, host: str, at: datetime) -> bool:
    """The conditional UPDATE. The unique constraint has the last word where two transactions cannot see each other."""
    free = Session.objects.filter(pk=session.pk, status=Status.QUEUED)
    if session.agent_id is not None:
        free = free.filter(~Exists(Session.objects.running().filter(agent=OuterRef("agent"))))
    try:
        with transaction.atomic():
            taken = free.update(
                status=Status.RUNNING,
                hold_reason="",
                started_at=at,
                heartbeat_at=at,
                host=host,
                attempts=F("attempts") + 1,
            )
    except IntegrityError:
        return False
    return taken == 1
