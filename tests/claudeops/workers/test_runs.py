"""The record of workers: each start and end once, a killed one is lost, and what follows it is a restart."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from claudeops.workers import runs
from sessions_app.log.pruning import prune
from sessions_app.models import WorkerHeartbeat, WorkerRun

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def start(pid: int = os.getpid(), at: datetime = AT, host: str = "nas") -> WorkerRun:
    return WorkerRun.objects.get(pk=runs.started(host=host, pid=pid, queues=["default", "sessions"], at=at))


@pytest.fixture
def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def seen() -> list[tuple[str, str]]:
    return list(WorkerRun.objects.order_by("pk").values_list("after", "ending"))


def test_a_start_after_a_stop_is_no_restart():
    first = start()
    assert (first.queues, first.after, first.ending, first.ended_at) == ("default, sessions", "", "", None)
    runs.stopped(first.pk, AT + MINUTE)
    runs.stopped(first.pk, AT + 5 * MINUTE)
    first.refresh_from_db()
    assert (first.ending, first.ended_at) == ("stopped", AT + MINUTE)
    start(at=AT + 2 * MINUTE)
    assert seen() == [("", "stopped"), ("stopped", "")]


def test_a_killed_worker_is_lost_when_the_next_one_of_its_host_starts(dead_pid):
    killed = start(dead_pid)
    start(at=AT + MINUTE)
    assert seen() == [("", "lost"), ("lost", "")]
    killed.refresh_from_db()
    assert killed.ended_at == AT + MINUTE


def test_a_worker_beside_a_living_one_and_one_of_another_host_are_no_restarts():
    start(os.getppid())
    start()
    start(host="nuc")
    assert seen() == [("", ""), ("", ""), ("", "")]


def test_a_worker_that_has_the_number_of_the_one_before_has_followed_it():
    start()
    start(at=AT + MINUTE)
    assert seen() == [("", "lost"), ("lost", "")]


def test_without_a_heartbeat_a_worker_of_any_host_is_lost_once():
    beating, silent = start(), start(host="nuc")
    for run, age in ((beating, 10), (silent, 100)):
        beat = AT + 3 * MINUTE - timedelta(seconds=age)
        WorkerHeartbeat.objects.create(host=run.host, cluster="default", pid=run.pid, beat_at=beat)
    fresh = start(host="new", at=AT + 3 * MINUTE)
    assert runs.mark_lost(AT + 3 * MINUTE) == 1
    assert runs.mark_lost(AT + 3 * MINUTE) == 0
    assert list(WorkerRun.objects.filter(ending="lost")) == [silent]
    assert fresh.ended_at is None


def test_one_that_was_only_cut_off_from_the_database_is_not_lost():
    run = start()
    assert runs.mark_lost(AT + 5 * MINUTE) == 1
    runs.is_alive(run.pk)
    assert seen() == [("", "")]
    runs.stopped(run.pk, AT + 6 * MINUTE)
    runs.is_alive(run.pk)
    assert seen() == [("", "stopped")]


def test_old_records_are_pruned_and_that_of_a_running_worker_stays():
    old = start()
    runs.stopped(old.pk, AT + MINUTE)
    start()
    assert prune(at=AT + timedelta(days=91)).worker_runs == 1
    assert seen() == [("stopped", "")]
