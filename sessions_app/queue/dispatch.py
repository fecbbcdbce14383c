"""Going over the queue: holds are written on the rows, wake-ups are sent for those that may start.

Knows nothing of django-q2 beyond `wakeups`, nothing of how a session runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from sessions_app.models import Session, Status, WorkerHeartbeat
from sessions_app.queue import tasks
from sessions_app.queue.admission import Rules, in_order

RESEND_AFTER = timedelta(minutes=15)
"""A wake-up can be lost with the worker that took it; after this long another one is sent."""

AT_MOST = 20
"""Wake-ups a call sends: the workers come back for more, and a crowded queue stays a short transaction."""

BATCH = 500
LOCK_KEY = 0x636C_6469_7370  # any fixed number; this one spells "cldisp"

HOST_HEARD = timedelta(minutes=1)
"""A host one of whose workers beat within this time answers what is addressed to it."""


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What one dispatch did: wake-ups sent, sessions held by reason, and those left for the next call."""

    sent: int = 0
    held: dict[str, int] = field(default_factory=dict)
    later: int = 0


def dispatch(*, at: datetime | None = None) -> Dispatched:
    """Go over the queued sessions in order at `at` (UTC; now when None): hold them or send their wake-ups.

    Called every minute, after each request and after each session that ended. Two at once send one wake-up:
    `dispatched_at` is claimed by conditional UPDATE, in one transaction with the wake-up.
    """
    with _one_after_another():
        return _dispatch(at or timezone.now())


@contextmanager
def _one_after_another() -> Iterator[None]:
    """On PostgreSQL two dispatchers would lock rows in different orders, and end in a deadlock. On SQLite there is
    one writer anyway, and reading the queue need not keep the others waiting."""
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
        yield


def _dispatch(at: datetime) -> Dispatched:
    rules = Rules(at)
    first_of: dict[int, int] = {}
    held: Counter[str] = Counter()
    holds: dict[str, list[int]] = {}
    ready: list[Session] = []
    for session in _queue():
        reason = rules.reason(session) or _behind(session, first_of)
        if reason:
            held[reason] += 1
            if session.hold_reason != reason or session.dispatched_at is not None:
                holds.setdefault(reason, []).append(session.pk)
            continue
        if session.agent_id is not None:
            first_of[session.agent_id] = session.pk
        ready.append(session)
    for reason, ids in holds.items():
        _hold(ids, reason)
    due = _due(ready, at)
    sent = sum(_send(session, at) for session in due[:AT_MOST])
    return Dispatched(sent=sent, held=dict(held), later=len(due[AT_MOST:]))


def _queue() -> Iterator[Session]:
    rows = in_order(Session.objects.select_related("agent"))
    return rows.only(
        "id", "trigger", "status", "hold_reason", "dispatched_at", "queued_at", "agent__slug", "agent__enabled"
    ).iterator(chunk_size=BATCH)


def _behind(session: Session, first_of: dict[int, int]) -> str:
    """One session of an agent at a time is woken: the others would only find it busy."""
    if session.agent is None or session.agent_id not in first_of:
        return ""
    return f"Session {first_of[session.agent.pk]} of agent {session.agent.slug} goes first."


def _hold(ids: list[int], reason: str) -> None:
    for start in range(0, len(ids), BATCH):
        Session.objects.filter(pk__in=ids[start : start + BATCH], status=Status.QUEUED).update(
            hold_reason=reason, dispatched_at=None
        )


def _due(ready: list[Session], at: datetime) -> list[Session]:
    """Those never sent, and those sent so long ago that their wake-up must be lost."""
    stale = at - RESEND_AFTER
    still_waiting: set[int] | None = None
    due = []
    for session in ready:
        if session.dispatched_at is not None:
            if session.dispatched_at > stale:
                continue
            if still_waiting is None:
                still_waiting = tasks.waiting(tasks.RUN, at)
            if session.pk in still_waiting:
                continue
        due.append(session)
    return due


def _send(session: Session, at: datetime) -> bool:
    with transaction.atomic():
        claimed = Session.objects.filter(
            pk=session.pk, status=Status.QUEUED, dispatched_at=session.dispatched_at
        ).update(dispatched_at=at, hold_reason="")
        if claimed:
            tasks.send_run(session.pk)
    return bool(claimed)


def in_line(session_id: int, *, at: datetime | None = None) -> list[int]:
    """What a worker woken for `session_id` should try to claim, in order.

    The first in line goes first: an alert that came after twenty scheduled wake-ups were sent takes the
    first of them, and its own wake-up serves one of those. Empty when nothing is left to do.
    """
    rules = Rules(at or timezone.now())
    best = next((session.pk for session in _queue() if not rules.reason(session)), None)
    wanted = [best] if best is not None else []
    own = Session.objects.filter(Q(pk=session_id) & ~Q(pk=best), status=Status.QUEUED).values_list("pk", flat=True)
    return wanted + list(own)


def give_back(session_id: int) -> None:
    """Undo a dispatch whose wake-up a stopping worker will not follow: the next dispatch sends another."""
    Session.objects.filter(pk=session_id, status=Status.QUEUED).update(dispatched_at=None)


def enqueue_follow(session_id: int, *, at: datetime | None = None) -> bool:
    """Ask the host of a running session to follow it again; False when that is on its way already, or it ended."""
    at = at or timezone.now()
    with transaction.atomic():
        host = Session.objects.running().filter(pk=session_id).values_list("host", flat=True).first()
        if not host or session_id in tasks.waiting(tasks.FOLLOW, at):
            return False
        tasks.send_follow(session_id, host)
    return True


def reap_elsewhere(host: str, *, at: datetime | None = None) -> int:
    """Ask every other living host to look after its own sessions; returns how many were asked."""
    at = at or timezone.now()
    living = WorkerHeartbeat.objects.filter(beat_at__gte=at - HOST_HEARD).exclude(host=host)
    # By name, so that the cluster of the short tasks comes first where a host has both.
    clusters: dict[str, str] = {}
    for other, cluster in living.order_by("host", "cluster").values_list("host", "cluster").distinct():
        clusters.setdefault(other, cluster)
    for other, cluster in clusters.items():
        tasks.send_reap(other, cluster)
    return len(clusters)
