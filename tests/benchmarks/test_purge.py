"""How long a purge of one memory takes, by the number of memories, with ten log entries to each."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from django.conf import settings

from claudeops.features.purge import run
from claudeops.features.purge.choice import Choice
from memories.models import Memory
from memories.recall import keyword_index
from sessions_app.models import LogEntry, Session
from sessions_app.runner.launch import folder_of
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import ms
from tests.benchmarks.rows import Values, put
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ENTRIES = 10
SAID = " and then it looked at the output of the next command, which was long" * 3


def test_purging_one_memory(report: Report, sizes: list[int]) -> None:
    rows = []
    for size in sizes:
        facts.forget()
        Session.objects.all().delete()
        session = SessionFactory(status="completed")
        facts.store(size, lambda number: {})
        keyword_index.catch_up()
        one = Memory.objects.order_by("pk")[size // 2]
        put(LogEntry, ENTRIES * size, lambda number, pk=session.pk, text=one.observation: _entry(number, pk, text))
        log = folder_of(session) / "stdout-1.jsonl"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as file:
            for number in range(ENTRIES * size):
                file.write(json.dumps({"type": "text", "text": _entry(number, 0, one.observation)["text"]}) + "\n")
        facts.settle()
        begin = time.perf_counter()
        run.plan(Choice(ids=(one.pk,)))
        planned = time.perf_counter() - begin
        purge, begin = run.begin(Choice(ids=(one.pk,)), by="bench"), time.perf_counter()
        run.carry_out(purge.pk)
        took = time.perf_counter() - begin
        purge.refresh_from_db()
        ends = [datetime.fromisoformat(at) for at in purge.receipt["steps"].values()]
        times = [purge.created_at, *ends]
        steps = dict(zip(run.STEPS, (after - before for before, after in pairwise(times)), strict=True))
        shown = [ms(steps[name].total_seconds()) for name in ("rows", "columns", "files", "check", "free")]
        rows.append([f"{size:,}", f"{ENTRIES * size:,}", ms(planned), ms(took), *shown])
        assert run.unfinished() == [] and settings.CLAUDEOPS_DATA_DIR
    report(
        "purge of one memory that 1 of 10,000 log entries and lines quotes, ms",
        ["memories", "log entries", "plan", "purge", "rows", "columns", "files", "check", "free pages"],
        rows,
    )


def _entry(number: int, session: int, text: str) -> Values:
    said = f"line {number} of the log{SAID}"
    return {
        "session_id": session,
        "seq": number,
        "at": NOW,
        "kind": "text",
        "text": text if number % 10_000 == 7 else said,
        "offset": number,
    }
