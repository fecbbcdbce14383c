"""How long it takes to say why something was not remembered, among so many memories and ten log lines to each."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.features.trace import trace
from claudeops.features.trace.find import LINES
from memories.injection.ops import build
from memories.injection.relevant import Task
from memories.models import GateDecision, Memory
from sessions_app import receipts
from sessions_app.models import LogEntry, LogKind, Session
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms
from tests.benchmarks.rows import put

pytestmark = pytest.mark.django_db(transaction=True)
TASK = "The backup of the volume does not finish in time"


def test_tracing(report: Report, sizes: list[int], smoke: bool) -> None:
    rows = []
    for size in sizes:
        facts.forget()
        LogEntry.objects.all().delete()
        Session.objects.all().delete()
        now = timezone.now()
        facts.store(size, lambda number, at=now: {"created_at": at - timedelta(days=20), "updated_at": at})
        facts.settle()
        sessions = max(1, 10 * size // LINES)
        put(
            Session,
            sessions,
            lambda n, at=now: {"uuid": uuid.uuid4(), "queued_at": at - timedelta(minutes=n + 60), "started_at": at},
        )
        put(
            LogEntry,
            10 * size,
            lambda n, at=now: {
                "session_id": 1 + n // LINES,
                "seq": 1 + n % LINES,
                "at": at,
                "kind": LogKind.TEXT if n % 3 else LogKind.TOOL_RESULT,
                "text": f"Looked at the {facts.word(n)} container and its memory, nothing is wrong with it. " * 3,
                "offset": n,
            },
        )
        discard = {"channel": "text", "taxonomy": "ops", "verdict": "discard", "at": now}
        put(GateDecision, min(2_000, size), lambda n, row=discard: {**row, "text": facts.observation(n, "against")})
        session = Session.objects.create(task=TASK, started_at=now, queued_at=now)
        receipts.keep(session, build(budget=2000, project_id=None, at=now, task=Task(TASK, is_preview=True)), at=now)
        told = session.receipt.included[0]["id"]
        last = Memory.objects.filter(active=True, verdict="allow", confidence=0.7).values_list("pk", flat=True).last()
        questions = {
            "told, by its number": str(told),
            "below the budget, by its number": str(last),
            "a memory, by its text": facts.observation(size // 2),
            "discarded": f"{facts.observation(7, 'against')} in every case that was ever seen",
            "nobody wrote it": "The elephants of the zoo drink from blue buckets at noon",
        }
        for name, asked in questions.items():
            series, queries = Series(), 0
            for _ in range(2 if smoke else 10):
                with CaptureQueriesContext(connection) as seen:
                    found = series.time(trace, asked, session_id=None if "nobody" in name else session.pk)
                queries = len(seen)
            rows.append((name, f"{size:,}", found.end.code, str(queries), ms(series.median), ms(series.p95)))
    columns = ("question", "memories", "it ended", "queries", "median ms", "p95 ms")
    report("WHY IT DID NOT REMEMBER, with ten times as many log lines as memories", columns, rows)
