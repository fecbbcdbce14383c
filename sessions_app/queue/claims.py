"""Claim a session: take it from queued to running exactly once, however many workers try."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from claudeops.lib.locks import one_at_a_time
from sessions_app.models import Session, Status, Trigger
from sessions_app.queue.dispatch import rules_for

LOCK_KEY = 0x636C_6275_6467  # any fixed number; this one spells "clbudg"

AGENT_BUSY = "Another session of the same agent started at the same time; an agent runs one session at a time."


def claim(session_id: int, *, host: str, at: datetime | None = None) -> Session | None:
    """Claim a queued session for `host` at `at` (UTC; now when None) and return its new row.

    None when it is not queued any more, or has to wait: then `hold_reason` says why. Sessions without an agent do not
    wait for each other. The claim reserves the session's budget.
    """
    at = at or timezone.now()
    with transaction.atomic():
        if (
            connection.vendor == "postgresql"
            and Session.objects.filter(pk=session_id, trigger=Trigger.SCHEDULED).exists()
        ):
            one_at_a_time(LOCK_KEY)  # two scheduled sessions must not reserve the same dollars
        session = Session.objects.select_related("agent").filter(pk=session_id, status=Status.QUEUED).first()
        if session is None:
            return None
        rules = rules_for(session, at)
        reason = rules.reason(session)
        if not reason and _take(session, host, at, rules.may_cost(session)):
            return Session.objects.select_related("agent", "project", "parent").get(pk=session_id)
        Session.objects.filter(pk=session_id, status=Status.QUEUED).update(
            hold_reason=reason or AGENT_BUSY, dispatched_at=None
        )
        return None


def _take(session: Session, host: str, at: datetime, budget: Decimal) -> bool:
    """Do the conditional UPDATE. Where two transactions cannot see each other, the unique constraint decides."""
    free = Session.objects.filter(pk=session.pk, status=Status.QUEUED)
    if session.agent_id is not None:
        free = free.filter(~Exists(Session.objects.running().filter(agent=OuterRef("agent"))))
    try:
        with transaction.atomic():
            count = free.update(
                status=Status.RUNNING,
                hold_reason="",
                started_at=at,
                heartbeat_at=at,
                host=host,
                reserved_usd=budget,
                attempts=F("attempts") + 1,
            )
    except IntegrityError:
        return False
    return count == 1
