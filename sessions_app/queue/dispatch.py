"""Dispatch the queue: write the hold reasons of sessions that have to wait, send wake-ups for the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.utils import timezone

from claudeops.lib import outage
from claudeops.lib.locks import one_at_a_time
from sessions_app.models import Agent, FollowsAs, Session, Status, Trigger, WorkerHeartbeat
from sessions_app.queue import tasks

CENT = Decimal("0.01")
"""The least budget of a session (dollars)."""


def in_order(queryset: QuerySet[Session]) -> QuerySet[Session]:
    """Order queued sessions oldest first; those that a schedule requested come after all others."""
    rank = Case(
        When(trigger=Trigger.SCHEDULED, then=Value(1)),
        default=Value(0),
        output_field=IntegerField(),
    )
    return queryset.filter(status=Status.QUEUED).alias(rank=rank).order_by("rank", "queued_at", "id")


def day_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def spent_on(at: datetime) -> Decimal:
    """Sum the dollars of the UTC day of `at`: sessions that ended in it or run now, without imported logs."""
    return Session.objects.paid_on(day_of(at)).cost_and_turns()[0]


def budget_of(agent: Agent | None) -> Decimal:
    """Return the dollars that one session of `agent` may cost."""
    own = agent.max_budget_usd if agent else None
    return own or Decimal(str(settings.CLAUDEOPS_MAX_BUDGET_USD))


def reserved() -> Decimal:
    """Sum the dollars that running sessions may still cost; what one does not use is given back when it ends."""
    running = Session.objects.running().values_list("reserved_usd", "cost_usd")
    return sum((max(Decimal(0), limit - cost) for limit, cost in running), Decimal(0))


class Rules:
    """The admission rules at one time (`at`, UTC).

    Running sessions (of `agents` only, when given) and the dollars of the day (unless `spent` is given) are read once.
    """

    def __init__(self, at: datetime, *, agents: Iterable[int] | None = None, spent: Decimal | None = None) -> None:
        self.at = at
        self._agents = agents
        self._spent = spent

    @cached_property
    def busy(self) -> dict[int, int]:
        running = Session.objects.running().exclude(agent=None)
        if self._agents is not None:
            running = running.filter(agent__in=self._agents)
        return {agent: session for agent, session in running.values_list("agent_id", "id") if agent is not None}

    @cached_property
    def spent(self) -> Decimal:
        return spent_on(self.at) if self._spent is None else self._spent

    @cached_property
    def reserved(self) -> Decimal:
        return reserved()

    @cached_property
    def full_disk(self) -> str:
        return outage.full_disk()

    def budget_reason(self, own: Decimal) -> str:
        """Why a scheduled session that may cost `own` dollars has to wait for the daily budget; empty if it need not.

        With nothing reserved, the last session of a day starts with what is left (`may_cost`).
        """
        if not settings.CLAUDEOPS_DAILY_BUDGET_USD:
            return ""
        budget = Decimal(str(settings.CLAUDEOPS_DAILY_BUDGET_USD))
        if self.spent >= budget:
            opens = day_of(self.at) + timedelta(days=1)
            return (
                f"The daily budget is spent: ${self.spent:.2f} of ${budget:.2f} since 00:00 UTC "
                f"(CLAUDEOPS_DAILY_BUDGET_USD). Scheduled sessions wait until {opens:%Y-%m-%d %H:%M} UTC."
            )
        if self.reserved and self.spent + self.reserved + own > budget:
            return (
                f"The daily budget is reserved: of ${budget:.2f} (CLAUDEOPS_DAILY_BUDGET_USD) ${self.spent:.2f} is "
                f"spent since 00:00 UTC, and running sessions may cost ${self.reserved:.2f} more; this one may cost "
                f"${own:.2f}. It starts when one of them ends and leaves enough."
            )
        return ""

    def may_cost(self, session: Session) -> Decimal:
        """Return the dollars that `session` may cost: a scheduled one no more than the day has left."""
        own = budget_of(session.agent)
        if session.trigger != Trigger.SCHEDULED or not settings.CLAUDEOPS_DAILY_BUDGET_USD:
            return own
        remaining = Decimal(str(settings.CLAUDEOPS_DAILY_BUDGET_USD)) - self.spent - self.reserved
        return max(min(own, remaining), CENT)

    def reason(self, session: Session) -> str:
        """Say why `session` has to wait; empty when it may start. Reads `session.agent`."""
        if self.full_disk:
            return f"{self.full_disk} No session starts until there is room."
        agent = session.agent
        if agent is not None and agent.pk in self.busy:
            return (
                f"Agent {agent.slug} is busy with session {self.busy[agent.pk]}; an agent runs one session at a time."
            )
        if session.trigger != Trigger.SCHEDULED:
            return ""
        if agent is not None and not agent.enabled:
            return f"Agent {agent.slug} is disabled; its scheduled sessions wait until it is enabled."
        return self.budget_reason(budget_of(agent))


def rules_for(session: Session, at: datetime | None = None) -> Rules:
    """Return the rules at `at` (UTC; now when None) for this session alone."""
    return Rules(at or timezone.now(), agents=() if session.agent_id is None else (session.agent_id,))


RESEND_AFTER = timedelta(minutes=15)
"""A wake-up is lost when the worker that took it dies; after this time it is sent again."""

LOST_AFTER = timedelta(seconds=30)
"""The same for an idle worker, which would have taken a wake-up that waits. One too many does no harm."""

MOST_SENT = 20
"""Most wake-ups of one call, so that the transaction stays short. The next call sends more."""

BATCH = 500
LOCK_KEY = 0x636C_6469_7370  # any fixed number; this one spells "cldisp"

HOST_ALIVE = timedelta(minutes=1)
"""A host is alive when one of its workers wrote a heartbeat within this time."""


@dataclass(frozen=True, slots=True)
class Dispatched:
    sent: int = 0
    held: dict[str, int] = field(default_factory=dict)
    later: int = 0


def dispatch(*, at: datetime | None = None, resend_after: timedelta = RESEND_AFTER) -> Dispatched:
    """Hold the queued sessions or send their wake-ups, in order, at `at` (UTC; now when None).

    Called every minute, after each request, after each end of a session, and by idle workers (LOST_AFTER). Two calls
    at once send one wake-up: a conditional UPDATE of `dispatched_at` claims it, in one transaction with the wake-up.
    """
    # On PostgreSQL two calls would lock rows in different orders; on SQLite others write between the short ones.
    with transaction.atomic() if connection.vendor == "postgresql" else nullcontext():
        one_at_a_time(LOCK_KEY)
        return _dispatch(at or timezone.now(), resend_after)


def _dispatch(at: datetime, resend_after: timedelta) -> Dispatched:
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
    due = _due(ready, at, resend_after)
    sent = sum(_send(session, at) for session in due[:MOST_SENT])
    return Dispatched(sent=sent, held=dict(held), later=len(due[MOST_SENT:]))


def _queue() -> Iterator[Session]:
    rows = in_order(Session.objects.select_related("agent"))
    columns = ("id", "trigger", "status", "hold_reason", "dispatched_at", "queued_at")
    return rows.only(*columns, "agent__slug", "agent__enabled", "agent__max_budget_usd").iterator(chunk_size=BATCH)


def _behind(session: Session, first_of: dict[int, int]) -> str:
    """Say which session of the agent goes first: the others would find the agent busy, so they are not woken."""
    if session.agent is None or session.agent_id not in first_of:
        return ""
    return f"Session {first_of[session.agent.pk]} of agent {session.agent.slug} goes first."


def _hold(ids: list[int], reason: str) -> None:
    for start in range(0, len(ids), BATCH):
        Session.objects.filter(pk__in=ids[start : start + BATCH], status=Status.QUEUED).update(
            hold_reason=reason, dispatched_at=None
        )


def _due(ready: list[Session], at: datetime, resend_after: timedelta) -> list[Session]:
    """Select sessions without a wake-up, and those whose wake-up is lost."""
    stale = at - resend_after
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
            tasks.send(tasks.RUN, session.pk, cluster=tasks.SESSIONS)
    return bool(claimed)


def in_line(session_id: int, *, at: datetime | None = None) -> list[int]:
    """Return the sessions that a worker woken for `session_id` should try to claim: the first in the queue, then it.

    So an alert uses the wake-up of an earlier scheduled session, and that session uses the alert's.
    """
    rules = Rules(at or timezone.now())
    best = next((session.pk for session in _queue() if not rules.reason(session)), None)
    wanted = [best] if best is not None else []
    own = Session.objects.filter(Q(pk=session_id) & ~Q(pk=best), status=Status.QUEUED).values_list("pk", flat=True)
    return wanted + list(own)


def give_back(session_id: int) -> None:
    """Give back a wake-up that a stopping worker will not use; the next dispatch sends another one."""
    Session.objects.filter(pk=session_id, status=Status.QUEUED).update(dispatched_at=None)


def enqueue_follow(session_id: int, *, at: datetime | None = None) -> bool:
    """Ask the host of a running session to follow it again; False when it was asked before, or the session ended."""
    at = at or timezone.now()
    with transaction.atomic():
        host = Session.objects.running().filter(pk=session_id).values_list("host", flat=True).first()
        if not host or session_id in tasks.waiting(tasks.FOLLOW, at):
            return False
        tasks.send(tasks.FOLLOW, session_id, host=host, cluster=tasks.SESSIONS)
    return True


def enqueue_learn(session: Session, status: Status) -> bool:
    """Have the project of a session that ended so looked through for lessons, when the end may bring one."""
    retried = status == Status.COMPLETED and session.follows_as == FollowsAs.RETRY
    if session.project_id is None or session.trigger == Trigger.IMPORT or not (retried or status == Status.FAILED):
        return False
    tasks.send(tasks.LEARN, session.project_id)
    return True


def enqueue_sync(session: Session, *, at: datetime | None = None) -> bool:
    """Have the agent files of a session's project synced: on the session's host, which has the repository."""
    project = session.project
    if project is None or not project.path or session.trigger == Trigger.IMPORT:
        return False
    cluster = living_hosts(at).get(session.host)
    tasks.send(tasks.SYNC, project.pk, host=session.host if cluster else "", cluster=cluster or tasks.DEFAULT)
    return True


def enqueue_observe(host: str, *, at: datetime | None = None) -> None:
    """Have the parts of transcripts on `host` observed that are due; in the transaction that stores new ones."""
    tasks.send(tasks.OBSERVE, host=host, cluster=living_hosts(at).get(host, tasks.DEFAULT))


def enqueue_promote(host: str, *, at: datetime | None = None) -> bool:
    """Have approved proposals committed on `host`, which has their files; False when it has no worker."""
    cluster = living_hosts(at).get(host)
    if cluster:
        tasks.send(tasks.PROMOTE, host=host, cluster=cluster)
    return bool(cluster)


def enqueue_observe_session(session: Session, *, at: datetime | None = None) -> bool:
    """Have the log of a session that ended observed, on its host; False for one that is not observed."""
    if not settings.CLAUDEOPS_OBSERVE or session.dry_run or session.trigger == Trigger.IMPORT or not session.log_file:
        return False
    if session.project is not None and not session.project.observed:
        return False
    cluster = living_hosts(at).get(session.host, tasks.DEFAULT)
    tasks.send(tasks.OBSERVE_SESSION, session.pk, host=session.host, cluster=cluster)
    return True


def ask_elsewhere(function: str, *, at: datetime | None = None) -> int:
    """Have every other living host call a task that is about its own processes or files; return how many were asked."""
    others = {name: cluster for name, cluster in living_hosts(at).items() if name != settings.CLAUDEOPS_HOST}
    for host, cluster in others.items():
        tasks.send(function, host=host, cluster=cluster)
    return len(others)


def living_hosts(at: datetime | None = None) -> dict[str, str]:
    """Return the hosts with a worker at `at` (UTC; now when None), and which of its queues takes short tasks."""
    living = WorkerHeartbeat.objects.filter(beat_at__gte=(at or timezone.now()) - HOST_ALIVE)
    # In order of name, so that a host with both clusters is asked on the one for short tasks.
    clusters: dict[str, str] = {}
    for host, cluster in living.order_by("host", "cluster").values_list("host", "cluster").distinct():
        clusters.setdefault(host, cluster)
    return clusters
