"""sessions_app.log.pruning and the daily task: what is forgotten, and what stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ, Task

from sessions_app import tasks
from sessions_app.log.pruning import BATCH, Pruned, prune
from sessions_app.models import LogEntry, Session, Status, WorkerHeartbeat
from sessions_app.queue import tasks as queue_tasks
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
LONG_AGO = AT - timedelta(days=31)


def with_lines(lines: int = 2, **fields) -> Session:
    session = SessionFactory(**{"ended_at": LONG_AGO, "log_file": "logs/1.jsonl", **fields})
    LogEntry.objects.bulk_create(
        LogEntry(session=session, seq=n, at=LONG_AGO, kind="text", text="a line", offset=n) for n in range(lines)
    )
    return session


def test_the_lines_of_old_sessions_go_and_the_sessions_stay():
    old, young = with_lines(3), with_lines(ended_at=AT - timedelta(days=29))
    before = list(Session.objects.order_by("pk").values())
    assert prune(at=AT) == Pruned(log_entries=3)
    assert not old.log_entries.exists()
    assert young.log_entries.count() == 2
    assert list(Session.objects.order_by("pk").values()) == before


def test_a_session_that_still_runs_keeps_its_lines_however_old():
    running = with_lines(status=Status.RUNNING, ended_at=None, started_at=LONG_AGO)
    assert prune(at=AT) == Pruned()
    assert running.log_entries.count() == 2


def test_how_long_lines_are_kept_is_a_setting(settings):
    settings.CLAUDEOPS_LOG_ENTRY_DAYS = 60
    with_lines()
    assert prune(at=AT) == Pruned()


def test_more_sessions_than_one_transaction_takes_are_pruned_too():
    for _ in range(BATCH + 3):
        with_lines(1)
    assert prune(at=AT).log_entries == BATCH + 3
    assert prune(at=AT) == Pruned()


def test_workers_that_were_silent_for_a_day_are_forgotten():
    WorkerHeartbeat.objects.create(host="gone", cluster="default", pid=1, beat_at=AT - timedelta(hours=25))
    WorkerHeartbeat.objects.create(host="here", cluster="default", pid=1, beat_at=AT - timedelta(hours=23))
    assert prune(at=AT) == Pruned(heartbeats=1)
    assert WorkerHeartbeat.objects.get().host == "here"


def test_the_daily_task_also_forgets_failed_tasks_and_what_was_sent_to_hosts_that_are_gone():
    queue_tasks.send(queue_tasks.REAP, host="gone")
    queue_tasks.send(queue_tasks.RUN, 1, cluster=queue_tasks.SESSIONS)
    old = timezone.now() - timedelta(days=31)
    OrmQ.objects.update(lock=old)
    for name, success in (("bad", False), ("good", True)):
        Task.objects.create(id=name, name=name, func="x", started=old, stopped=old, success=success)
    assert tasks.prune() is None
    assert list(OrmQ.objects.values_list("key", flat=True)) == ["sessions"]
    assert list(Task.objects.values_list("name", flat=True)) == ["good"]
