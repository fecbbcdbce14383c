"""Running sessions that nobody follows, with workers that are really killed."""

from __future__ import annotations

import os
import random
import signal
from datetime import timedelta

import pytest
from django.utils import timezone

from memories.models import Change, Memory, MemoryChange
from sessions_app import queue, reaper
from sessions_app.models import CooldownAction, Event, LogEntry, Runner, Session, Status, Trigger, WorkerHeartbeat
from sessions_app.runner.ingest import log_path
from tests.support.factories import AgentFactory, SessionFactory
from tests.support.processes import manage, wait_for
from tests.support.streams import init, result, text, tool_use, write

pytestmark = pytest.mark.django_db(transaction=True)

LINES = 40


@pytest.fixture
def stream(tmp_path):
    """Four seconds of events, memories and cooldowns, a few of each a second."""
    lines = []
    for n in range(LINES):
        words = f"[EVENT:info] number {n}\n[MEMORY:behavior:service-{n}] Has the odd port {9000 + n}"
        lines.append(text(words, seconds=n * 0.1))
        if n % 10 == 0:
            lines += [tool_use("docker restart x"), text("[COOLDOWN:restart:x] success - ok", seconds=n * 0.1)]
    return write(tmp_path / "stream.jsonl", init(), *lines, result())


def expect_everything_once(session: Session) -> None:
    session.refresh_from_db()
    assert session.status == Status.COMPLETED, session.status_reason
    assert sorted(Event.objects.values_list("message", flat=True)) == sorted(f"number {n}" for n in range(LINES))
    assert Memory.objects.count() == LINES
    assert set(Memory.objects.values_list("confidence", flat=True)) == {0.7}
    assert MemoryChange.objects.filter(kind=Change.CREATED).count() == MemoryChange.objects.count() == LINES
    assert CooldownAction.objects.count() == LINES / 10
    entries = LogEntry.objects.filter(session=session)
    assert list(entries.order_by("seq").values_list("seq", flat=True)) == list(range(1, entries.count() + 1))
    assert session.ingest_offset == log_path(session).stat().st_size
    assert session.num_turns == 2


def start_worker(stream, events: int) -> tuple[object, Session]:
    """A worker process that runs a session, once it has stored some events."""
    worker = manage("session", "run", "--stream", str(stream), more={"CLAUDEOPS_REPLAY_SPEED": "1"})
    wait_for(lambda: Event.objects.count() >= events, 60)
    return worker, Session.objects.get()


def kill(worker) -> None:
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()


def later(session: Session):
    """A moment at which nobody has followed the session for long enough."""
    session.refresh_from_db()
    return max(timezone.now(), session.heartbeat_at or timezone.now()) + reaper.STALE * 2


@pytest.mark.parametrize("events", [1, random.Random(7).randint(5, 30)])
@pytest.mark.processes
def test_a_killed_workers_session_is_followed_again_and_nothing_is_lost_or_doubled(stream, events):
    worker, session = start_worker(stream, events)
    kill(worker)
    assert reaper.process_of(session) is not None, "the session's process survives its worker"
    followed = []
    at = later(session)
    done = reaper.reap(at=at, follow=lambda pk: followed.append(reaper.take_over(pk, at=at)))
    assert (done.followed, followed) == ([session.pk], [Status.COMPLETED])
    expect_everything_once(session)


@pytest.mark.processes
def test_a_session_whose_worker_and_process_are_dead_is_closed_by_its_log(stream):
    worker, session = start_worker(stream, 3)
    kill(worker)
    process = reaper.process_of(session)
    wait_for(lambda: reaper.process_of(session) is None)  # it plays to its end with nobody looking
    done = reaper.reap(at=later(session))
    assert done.closed == [session.pk]
    assert process is not None
    expect_everything_once(session)


@pytest.mark.processes
def test_a_session_that_died_in_the_middle_is_lost_and_keeps_what_it_said(stream):
    worker, session = start_worker(stream, 3)
    kill(worker)
    os.kill(reaper.process_of(session).pid, signal.SIGKILL)
    wait_for(lambda: reaper.process_of(session) is None)
    reaper.reap(at=later(session))
    session.refresh_from_db()
    assert session.status == Status.LOST
    assert session.status_reason == "The log ends without a result: the process ended while no worker followed it."
    assert 3 <= Event.objects.count() < LINES
    assert session.ingest_offset == log_path(session).stat().st_size


@pytest.mark.processes
def test_a_stop_asked_for_while_nobody_followed_is_carried_out_by_the_reaper(stream):
    worker, session = start_worker(stream, 1)
    kill(worker)
    queue.request_stop(session.pk, by="anna")
    assert reaper.reap(at=later(session)).closed == [session.pk]
    session.refresh_from_db()
    assert (session.status, session.status_reason) == (Status.STOPPED, "Stopped by anna.")
    assert reaper.process_of(session) is None


@pytest.mark.processes
def test_a_deadline_that_passed_while_nobody_followed_is_kept_by_the_reaper(stream, settings):
    worker, session = start_worker(stream, 1)
    kill(worker)
    settings.CLAUDEOPS_SESSION_TIMEOUT = 0
    assert reaper.reap(at=later(session)).closed == [session.pk]
    session.refresh_from_db()
    assert session.status == Status.TIMED_OUT


def unfollowed(**fields) -> Session:
    options = {"status": Status.RUNNING, "host": "", "heartbeat_at": None, "started_at": timezone.now(), "attempts": 1}
    return SessionFactory(**{**options, **fields})


def test_a_heartbeat_from_before_the_clock_was_set_back_is_no_follower():
    session = unfollowed(heartbeat_at=timezone.now() + timedelta(hours=5))
    assert reaper.reap().requeued == [session.pk]


def test_a_session_with_a_fresh_heartbeat_is_left_alone():
    session = unfollowed(heartbeat_at=timezone.now())
    assert reaper.reap() == reaper.Reaped()
    session.refresh_from_db()
    assert session.status == Status.RUNNING


def test_a_session_that_was_never_started_goes_back_into_the_queue(stream):
    agent = AgentFactory(runner=Runner.REPLAY, replay_stream=str(stream))
    session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by="anna", wake=False)
    queue.claim(session.pk, host="testhost")
    Session.objects.filter(pk=session.pk).update(host="", heartbeat_at=None)
    assert reaper.reap().requeued == [session.pk]
    session.refresh_from_db()
    assert (session.status, session.attempts, session.started_at) == (Status.QUEUED, 2, None)


def test_a_session_that_another_worker_took_over_meanwhile_is_not_queued_again():
    session, at = unfollowed(), timezone.now()
    assert reaper.claim(session, at)
    Session.objects.filter(pk=session.pk).update(heartbeat_at=at + timedelta(seconds=1))  # between claim and requeue
    assert not reaper._requeue(session, at)
    session.refresh_from_db()
    assert session.status == Status.RUNNING


def test_a_session_of_a_living_host_is_that_hosts_business():
    session = unfollowed(host="elsewhere", started_at=timezone.now() - timedelta(hours=1))
    WorkerHeartbeat.objects.create(host="elsewhere", cluster="sessions", pid=1)
    assert reaper.reap() == reaper.Reaped()
    session.refresh_from_db()
    assert session.status == Status.RUNNING


def test_a_session_of_a_host_that_is_gone_is_lost():
    session = unfollowed(host="elsewhere", started_at=timezone.now() - timedelta(hours=1))
    assert reaper.reap().lost == [session.pk]
    session.refresh_from_db()
    assert session.status == Status.LOST
    assert "Its host elsewhere has sent no heartbeat since" in session.status_reason


@pytest.mark.processes
def test_a_process_that_outlived_its_lost_session_is_ended(stream):
    worker, session = start_worker(stream, 1)
    kill(worker)
    Session.objects.filter(pk=session.pk).update(status=Status.LOST, ended_at=timezone.now())
    assert reaper.process_of(session) is not None
    assert reaper.reap().ended == [session.pk]
    assert reaper.process_of(session) is None
    session.refresh_from_db()
    assert session.status == Status.LOST
    assert reaper.reap().ended == []


def test_a_session_nobody_can_follow_is_given_up_with_its_log_kept(tmp_path):
    session = unfollowed(attempts=reaper.MOST_ATTEMPTS, log_file="sessions/x.jsonl")
    assert reaper.reap().failed == [session.pk]
    session.refresh_from_db()
    assert session.status == Status.FAILED
    assert "Given up after 12 attempts" in session.status_reason
    assert "sessions/x.jsonl" in session.status_reason


def test_of_two_reapers_one_takes_the_session_over():
    session = unfollowed(pid=2**22 - 1, pid_started_at=1.0)
    at = timezone.now()
    assert reaper.claim(session, at)
    assert not reaper.claim(session, at)
