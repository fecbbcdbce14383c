"""The library: entries a second, the index of records, what governs a path, a summary and the one search."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from memories.access import Access
from memories.injection.tags import Subject
from memories.library import journal
from memories.library.decisions.index import governing, sync
from memories.models import Decision, JournalEntry, JournalFile, Project, Scope
from sessions_app.queries.search import search
from sessions_app.queries.summary import WEEK, read
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms
from tests.benchmarks.rows import put

pytestmark = pytest.mark.django_db(transaction=True)
RECORDS = 300
RECORD = "---\nstatus: accepted\ndate: 2026-11-01\npaths: [src/part{}/**]\n---\n\n# Part {} stands alone\n\n{}\n"


def test_library(report: Report, sizes: list[int], smoke: bool, tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = []
    project = Project.objects.create(slug="library", path=str(tmp_path))
    (tmp_path / "adr").mkdir()
    for number in range(1, RECORDS + 1):
        text = RECORD.format(number, number, "It was so before. " * 100)
        (tmp_path / "adr" / f"{number:04d}-part.md").write_text(text)
    rows += [("-", "records read anew", ms(_timed(sync, project).median / RECORDS))]
    rows += [("-", "records, unchanged", ms(_timed(sync, project, times=5).median))]
    assert Decision.objects.count() == RECORDS
    assert [one.number for one in governing(project, Subject(paths=("src/part7/a.py",)))] == [7]
    governs = _timed(governing, project, Subject(paths=("src/part7/a.py",)), times=20)
    rows += [("-", "what governs a path", ms(governs.median))]
    everybody = Access("bench", frozenset({Scope.READ.value}))
    for size in sizes:
        facts.forget()
        JournalFile.objects.all().delete()
        shutil.rmtree(Path(settings.CLAUDEOPS_DATA_DIR) / "vault", ignore_errors=True)
        now = timezone.now()
        facts.store(size, lambda number, at=now: {"created_at": at - timedelta(days=20), "updated_at": at})
        facts.settle()
        file = JournalFile.objects.create(host="elsewhere", month="2026-11")
        put(
            JournalEntry,
            size,
            lambda n, at=now, pk=file.pk: {
                "uid": f"{n}", "at": at - timedelta(minutes=n), "action": "restart", "tool": facts.word(n),
                "detail": f"It answered after {n} seconds", "reason": "", "file_id": pk, "line": n + 1,
            },
        )  # fmt: skip
        times = 3 if smoke else 20
        written = _timed(journal.write, "restart", "jellyfin", "It answered again.", by="bench", times=times)
        searched = _timed(search, everybody, facts.word(1), times=times)
        summed = _timed(read, WEEK, date.today(), times=times)
        assert JournalEntry.objects.count() == size + times
        rows += [
            (f"{size:,}", "an entry written, on the disk and indexed", ms(written.median)),
            (f"{size:,}", "the one search", ms(searched.median)),
            (f"{size:,}", "a week's summary", ms(summed.median)),
        ]
    report("THE LIBRARY, with as many journal entries as memories", ("memories", "what", "median"), rows)


def _timed(call: Callable[..., Any], *given: Any, times: int = 1, **named: Any) -> Series:
    series = Series()
    for _ in range(times):
        series.time(call, *given, **named)
    return series
