"""Whether anything on the front page has changed: a few looks into indexes, for every open browser every few seconds.

A mark that stays the same says that everything the page shows stays the same, but for what time alone moves: that is
said anew once a minute. In SQL as it stands, since putting these queries together took ten times as long as answering
them. Reads only; knows no request.
"""
# ruff: noqa: S608 - names of our own tables and values of our own, put together once; times are parameters.

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ, Task

from claudeops.overview import feed, health
from claudeops.overview.figures import CAP, SHOWN
from memories.models import MemoryChange
from sessions_app.models import (
    Agent,
    CooldownAction,
    CooldownClearance,
    Event,
    ScheduleKind,
    ServiceCheck,
    Session,
    Status,
    WorkerHeartbeat,
)

OPEN = 200
"""Running sessions whose progress is looked at."""

SESSIONS, AGENTS = Session._meta.db_table, Agent._meta.db_table
NUMBERED = (Event, MemoryChange, Session, CooldownAction, CooldownClearance, ServiceCheck)

# The newest row of whatever counts are made of: nothing of it ever changes but sessions, which are looked at below
# while they wait and run, and whose begin and end are in the feed.
NUMBERS = "SELECT {newest}, (SELECT MAX(updated_at) FROM {agents}), (SELECT COUNT(*) FROM ({waiting}) waiting)".format(
    newest=", ".join(f"(SELECT MAX(id) FROM {model._meta.db_table})" for model in NUMBERED),
    agents=AGENTS,
    waiting=f"SELECT 1 FROM {SESSIONS} WHERE status = '{Status.QUEUED.value}' LIMIT {CAP + 1}",
)
RUNNING = (
    f"SELECT id, ingest_offset, cost_usd, stop_requested_at, started_at FROM {SESSIONS} "
    f"WHERE status = '{Status.RUNNING.value}' ORDER BY queued_at DESC, id DESC LIMIT {OPEN}"
)
QUEUED = (
    f"SELECT id, hold_reason, coalesced FROM {SESSIONS} "
    f"WHERE status = '{Status.QUEUED.value}' ORDER BY queued_at, id LIMIT {SHOWN}"
)
FOLLOWING = (
    f"SELECT id, next_run_at FROM {AGENTS} WHERE enabled AND schedule_kind <> '{ScheduleKind.NONE.value}' "
    f"AND next_run_at IS NOT NULL ORDER BY next_run_at, id LIMIT {SHOWN}"
)
WORKERS = "SELECT id, CASE {steps} ELSE 0 END FROM {workers} ORDER BY id".format(
    steps=" ".join(f"WHEN beat_at >= %s THEN {step}" for step in health.STEPS),
    workers=WorkerHeartbeat._meta.db_table,
)
WAITING = f"SELECT key, COUNT(*), MIN(lock) FROM {OrmQ._meta.db_table} WHERE lock <= %s GROUP BY key ORDER BY key"
FAILURES = f"SELECT COUNT(*) FROM {Task._meta.db_table} WHERE NOT success AND stopped >= %s"


def mark(at: datetime | None = None) -> str:
    """Eight characters for what there is to see at `at` (UTC; now when None).

    Taken before what it stands for is read, news is told twice at worst, and never missed.
    """
    at = at or timezone.now()
    looked_at = [
        at.replace(second=0, microsecond=0).isoformat(),
        *(_rows(sql) for sql in (NUMBERS, RUNNING, QUEUED, FOLLOWING, feed.NEWEST)),
        _rows(WORKERS, *(at - timedelta(seconds=step) for step in health.STEPS)),
        _rows(WAITING, at),
        _rows(FAILURES, at - health.LATELY),
    ]
    return f"{zlib.crc32(repr(looked_at).encode()):08x}"


def _rows(sql: str, *times: datetime) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [connection.ops.adapt_datetimefield_value(time) for time in times] or None)
        return list(cursor.fetchall())
