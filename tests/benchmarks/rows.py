"""The rows of an installation of some age: sessions, their logs and events, cooldowns, memories, history.

Inserted past the ORM. Row `n` of a table is the same in every run, except for the times, which are counted back from
now.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.color import no_style
from django.db import connection
from django.db.models import JSONField, Model

from memories.models import Change, Memory, MemoryChange, Project, Source, Trust
from sessions_app.models import (
    Agent,
    CooldownAction,
    CooldownClearance,
    Event,
    InjectionReceipt,
    LogEntry,
    ServiceCheck,
    Session,
    WorkerHeartbeat,
)
from tests.benchmarks import facts

AGENTS, PROJECTS, RUNNING = 20, 5, 4
DAYS = 90
"""The age of the installation."""

LONG_LOG = 50_000
"""Lines of the newest session's log, at full size."""

Values = dict[str, Any]

ENDED = ("completed",) * 15 + ("failed", "timed_out", "stopped", "escalated", "lost")
TRIGGERS = ("scheduled",) * 6 + ("manual", "alert", "api", "import")
LEVELS = ("info",) * 7 + ("warning",) * 2 + ("critical",)


class House:
    """The numbers of rows and their values. `memories` sets the scale: 10 events to each."""

    def __init__(self, memories: int, now: datetime) -> None:
        self.now = now
        self.memories = memories
        self.events, self.sessions = 10 * memories, memories // 2
        self.checks, self.actions, self.receipts = 2 * memories, memories // 5, min(2000, memories // 10)
        self.log = min(LONG_LOG, 2 * memories)

    def ago(self, number: int, count: int, minutes: float = 0) -> datetime:
        """The time of row `number` of `count`: the last one is the newest."""
        back = timedelta(days=DAYS) * ((count - number) / count)
        return self.now - back + timedelta(minutes=minutes)

    def session_of(self, number: int, count: int) -> int:
        """The session that row `number` of `count` belongs to: as old as the row."""
        return 1 + number * self.sessions // count

    def build(self) -> None:
        """Fill empty tables."""
        put(Project, PROJECTS, lambda n: {"slug": f"project-{n}"})
        due = {"next_run_at": self.now, "schedule_kind": "interval", "updated_at": self.now}
        put(Agent, AGENTS, lambda n: {**due, "slug": f"agent-{n}"})
        put(Session, self.sessions, self._session)
        put(Event, self.events, self._event)
        put(Memory, self.memories, self._memory)
        put(MemoryChange, 2 * self.memories, self._change)
        put(CooldownAction, self.actions, self._action)
        put(ServiceCheck, self.checks, self._check)
        put(CooldownClearance, facts.SERVICES, self._clearance)
        put(InjectionReceipt, self.receipts, self._receipt)
        put(LogEntry, self.log + 4 * self.sessions, self._line)
        beat = {"host": "here", "cluster": "default", "beat_at": self.now}
        put(WorkerHeartbeat, 2, lambda n: {**beat, "pid": n + 1})

    def _session(self, n: int) -> Values:
        at = self.ago(n, self.sessions)
        running = n >= self.sessions - RUNNING
        return {
            "uuid": uuid.UUID(int=n + 1),
            "agent_id": n % AGENTS + 1,
            "project_id": n % 3 + 1 if n % 4 == 0 else None,
            "tier": (1, 1, 1, 2, 3)[n % 5],
            "trigger": "scheduled" if running else TRIGGERS[n % len(TRIGGERS)],
            "status": "running" if running else ENDED[n // 7 % len(ENDED)],
            "status_reason": "The process ended with code 1." if ENDED[n // 7 % len(ENDED)] == "failed" else "",
            "prompt": "Look after the house. " * 60,
            "summary": f"Checked {n % 9 + 3} services; {facts.word(n)} needed a closer look.",
            "response": "## What I found\n\nAll services answer. " * 6,
            "cost_usd": "0.031400",
            "num_turns": n % 12 + 3,
            "duration_ms": 40_000 + n % 90_000,
            "usage": {"input_tokens": 1200, "output_tokens": 800},
            "stats": {"tool_calls": n % 30, "events": 20},
            "queued_at": at,
            "started_at": at,
            "ended_at": None if running else at + timedelta(minutes=2),
            "heartbeat_at": self.now,
        }

    def _event(self, n: int) -> Values:
        service = facts.service(n)
        return {
            "session_id": self.session_of(n, self.events),
            "level": LEVELS[n * 7 % len(LEVELS)],
            "service": service,
            "message": f"Check {n}: {facts.word(n)} answers after {n % 900} ms",
            "created_at": self.ago(n, self.events),
            "fingerprint": f"{n:064x}",
        }

    def _memory(self, n: int) -> Values:
        at = self.ago(n, self.memories)
        return {
            "uuid": uuid.UUID(int=n + 1),
            "service": facts.service(n),
            "category": facts.category(n),
            "observation": facts.observation(n),
            "confidence": facts.CONFIDENCES[n % len(facts.CONFIDENCES)],
            "source": Source.RUN if n % 50 else Source.HUMAN,
            "trust": Trust.SESSION if n % 50 else Trust.OPERATOR,
            "session_id": self.session_of(n, self.memories) if n % 50 else None,
            "tier": 1 if n % 50 else 0,
            "project_id": n % PROJECTS + 1 if n % 20 == 3 else None,
            "created_at": at,
            "updated_at": at,
            **facts.mixed(n),
        }

    def _change(self, n: int) -> Values:
        number, second = n % self.memories, n >= self.memories
        moved = {"confidence": [0.7, 0.8]} if second else {}
        return {
            "memory_id": number + 1,
            "memory_uuid": uuid.UUID(int=number + 1),
            "kind": Change.REINFORCED if second else Change.CREATED,
            "at": self.ago(number, self.memories),
            "before": {"confidence": 0.7} if second else {},
            "after": moved or {"observation": facts.observation(number), "confidence": 0.7},
            "actor": f"agent:agent-{number % AGENTS}",
            "session_id": self.session_of(number, self.memories),
            "candidate_key": f"{n:064x}",
        }

    def _action(self, n: int) -> Values:
        return {
            "session_id": self.session_of(n, self.actions),
            "action": "restart" if n % 3 else "redeployment",
            "service": f"service-{n * 7 % facts.SERVICES:02}",
            "outcome": "success" if n % 4 else "failure",
            "message": "It did not answer for two minutes.",
            "dry_run": n % 10 == 0,
            "created_at": self.ago(n, self.actions),
            "fingerprint": f"{n:064x}",
        }

    def _check(self, n: int) -> Values:
        session = self.session_of(n, self.checks)
        return {
            "session_id": session,
            "service": f"service-{(n * 11 + session) % facts.SERVICES:02}",
            "status": "ok" if n % 3 else "slow",
            "healthy": n % 3 != 0,
            "checked_at": self.ago(n, self.checks),
        }

    def _clearance(self, n: int) -> Values:
        at = self.ago(n, facts.SERVICES)
        return {"service": f"service-{n:02}", "cleared_at": at, "by": "operator", "reason": "The disk is replaced."}

    def _receipt(self, n: int) -> Values:
        included = [
            {
                "id": i + 1,
                "uuid": str(uuid.UUID(int=i + 1)),
                "service": facts.service(i),
                "category": facts.category(i),
                "confidence": 1.0,
                "observation": facts.observation(i),
                "reason": "within the budget",
            }
            for i in range(40)
        ]
        return {
            "session_id": self.sessions - n,
            "text": "## Operational Memory (40 of 18,000 memories, ~1,990 tokens)\n" * 20,
            "sha256": f"{n:064x}",
            "budget": 2000,
            "tokens": 1990,
            "included": included,
            "left_out": included[:10],
            "counts": {"eligible": 18_000, "included": 40},
        }

    def _line(self, n: int) -> Values:
        """Return the values of a log line: the newest session has a long log, the others four lines each."""
        long = n < self.log
        number = self.sessions if long else (n - self.log) // 4 + 1
        seq = n + 1 if long else (n - self.log) % 4 + 1 + (self.log if number == self.sessions else 0)
        kinds = ("text", "tool_use", "tool_result")
        text = f"[12:00:{n % 60:02}] {facts.word(n)} answers after {n % 900} ms\n"
        return {
            "session_id": number,
            "seq": seq,
            "at": self.now - timedelta(seconds=self.log + 5 - seq),
            "kind": kinds[n % 3],
            "text": text * (12 if n % 3 == 2 else 1),
            "offset": 600 * n,
        }


def put(model: type[Model], count: int, values: Callable[[int], Values]) -> None:
    """Insert `count` rows, numbered from 1; what `values` does not give has the column's default."""
    fields = [field for field in model._meta.concrete_fields if not field.generated]
    columns = [field.column for field in fields]
    usual = {field.attname: field.get_default() for field in fields}
    as_json = {field.attname for field in fields if isinstance(field, JSONField)}

    def rows() -> Iterator[list[Any]]:
        for number in range(count):
            row = {**usual, "id": number + 1, **values(number)}
            for name in as_json:
                row[name] = None if row[name] is None else json.dumps(row[name])
            yield list(row.values())

    quoted = ", ".join(connection.ops.quote_name(column) for column in columns)
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({quoted}) FROM STDIN") as copy:
                for row in rows():
                    copy.write_row(row)
            for statement in connection.ops.sequence_reset_sql(no_style(), [model]):
                cursor.execute(statement)
        else:
            marks = ", ".join("?" for _ in columns)
            plain = connection.connection.cursor()
            plain.executemany(f"INSERT INTO {table} ({quoted}) VALUES ({marks})", map(_for_sqlite, rows()))


def _for_sqlite(row: list[Any]) -> list[Any]:
    """As Django stores it."""
    for place, value in enumerate(row):
        if isinstance(value, datetime):
            row[place] = value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
        elif isinstance(value, uuid.UUID):
            row[place] = value.hex
    return row
