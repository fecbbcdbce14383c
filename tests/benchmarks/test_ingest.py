"""How fast a raw log becomes rows, and that memory does not grow with the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memories.models import Memory
from sessions_app.models import Event, LogEntry, Session, Status
from sessions_app.runner.ingest import ingest
from tests.benchmarks import facts, logs
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import MEGABYTE, Series, mb, peak_of_process, peak_of_python
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True, slots=True)
class Mix:
    name: str
    lines: Callable[[], Iterator[str]]
    megabytes: float
    entries: bool = True


MIXES = (
    Mix("a session: tool results of some KB, text, markers", lambda: logs.realistic(0), 10),
    Mix("tiny texts, each stored", logs.chatter, 3),
    Mix("pieces of text as they come in, passed over", logs.noise, 3, entries=False),
    Mix("blank lines", logs.blank, 0.2, entries=False),
)


def take(log: Path, written: logs.Written, series: Series) -> Session:
    """Ingest the whole log for a new session, and check that all of it was ingested."""
    session = SessionFactory(agent=None, status=Status.RUNNING, log_file=f"sessions/{log.name}")
    done = series.time(ingest, session.pk, final=True)
    assert (done.bytes, done.lines) == (written.size, written.lines)
    assert Memory.objects.filter(session=session).count() == written.marked
    assert Event.objects.filter(session=session).count() == written.marked
    return session


def test_ingest_of_a_stream(report: Report, log: Path, smoke: bool) -> None:
    rows = []
    for mix in MIXES:
        written = logs.write(log, int(mix.megabytes * MEGABYTE * (0.1 if smoke else 1)), mix.lines())
        series, entries = Series(), 0
        for _ in range(2 if smoke else 7):
            facts.forget()
            session = take(log, written, series)
            entries = LogEntry.objects.filter(session=session).count()
            session.delete()
        assert bool(entries) == mix.entries
        rows.append(
            (
                mix.name,
                mb(written.size),
                f"{written.lines:,}",
                f"{entries:,}",
                f"{written.marked:,}",
                f"{written.size / series.median / MEGABYTE:.1f}",
                f"{written.size / series.p95 / MEGABYTE:.1f}",
                f"{written.lines / series.median:,.0f}",
            )
        )
    columns = ("stream ingest", "MB", "lines", "entries", "memories", "MB/s", "slowest", "lines/s")
    report("STREAM INGEST, raw log to committed rows (aim: above 20 MB/s of a session's stream)", columns, rows)


def test_memory_while_a_long_log_is_ingested(report: Report, log: Path, smoke: bool) -> None:
    rows = []
    logs.write(log, MEGABYTE, logs.realistic(0))
    warm = SessionFactory(agent=None, log_file=f"sessions/{log.name}")
    ingest(warm.pk, final=True)  # what is loaded once is not the log's
    for megabytes in (1, 3) if smoke else (10, 110):
        written = logs.write(log, megabytes * MEGABYTE, logs.realistic(0))
        series = Series()
        facts.forget()
        with peak_of_process() as resident:
            take(log, written, series)
        facts.forget()
        with peak_of_python() as traced:
            take(log, written, Series())
        rows.append(
            (
                mb(written.size),
                f"{written.lines:,}",
                f"{written.marked:,}",
                f"{written.size / series.median / MEGABYTE:.1f}",
                mb(resident.bytes),
                mb(traced.bytes),
            )
        )
    columns = ("log, MB", "lines", "memories", "MB/s", "process +MB", "Python +MB")
    report(
        "MEMORY AT MOST WHILE INGESTING, above what there was before (aim: the same however long the log)",
        columns,
        rows,
    )
