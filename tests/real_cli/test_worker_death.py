"""A worker killed with SIGKILL in the middle of a real session: nothing is lost, nothing is stored twice."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta

import psutil
import pytest
from django.utils import timezone

from memories.models import Memory, MemoryChange
from sessions_app import reaper
from sessions_app.models import CooldownAction, Event, LogEntry, Session, Status
from sessions_app.runner.process import find_by_session_id
from tests.support import processes
from tests.support.messages_api import Text, answers, bash, says

pytestmark = pytest.mark.real_cli

KEY = "watch over the night"


@pytest.fixture
def held() -> threading.Event:
    """Set by the test to let the model's last answer go."""
    return threading.Event()


@pytest.fixture
def session(room, held):
    """A session that has something to say before and after the worker dies."""
    room.api.script(
        KEY,
        answers(
            Text("[EVENT:warning:caddy] before\n[MEMORY:timing:caddy] Reload takes 3 seconds"),
            bash("echo working"),
        ),
        answers(Text("[EVENT:warning:caddy] between\n[COOLDOWN:restart:caddy] success - back"), bash("echo more")),
        says("[EVENT:info:caddy] after\n[MEMORY:dependency:caddy] Needs DNS first", held=held),
    )
    return room.queued(KEY)


def start_worker(session: Session):
    """The very task that the queue's workers call, in a process of its own."""
    return processes.call(f"from sessions_app.tasks import run_session; run_session({session.pk})")


def kill(worker) -> None:
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=30)
    assert worker.returncode == -signal.SIGKILL


def later():
    """A moment at which the dead worker's last heartbeat is stale."""
    return timezone.now() + reaper.STALE + timedelta(seconds=5)


def assert_each_thing_once(session: Session) -> None:
    assert sorted(Event.objects.values_list("message", flat=True)) == ["after", "before", "between"]
    assert CooldownAction.objects.filter(session=session).count() == 1
    assert sorted(Memory.objects.values_list("observation", "confidence")) == [
        ("Needs DNS first", 0.7),
        ("Reload takes 3 seconds", 0.7),
    ]
    assert MemoryChange.objects.count() == 2
    seqs = list(LogEntry.objects.filter(session=session).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    texts = "\n".join(LogEntry.objects.filter(session=session).values_list("text", flat=True))
    assert [texts.count(word) for word in ("before", "between", "after")] == [1, 1, 1]


def test_the_session_outlives_its_worker_and_is_followed_again(room, session, held):
    worker = start_worker(session)
    room.api.wait_for_request(KEY, 3)
    kill(worker)
    session.refresh_from_db()
    assert session.status == Status.RUNNING
    assert find_by_session_id(session.cli_session_id) is not None

    asked: list[int] = []
    reaped = reaper.reap(at=later(), follow=asked.append)
    assert (asked, reaped.followed, reaped.closed) == ([session.pk], [session.pk], [])
    held.set()
    assert reaper.take_over(session.pk, at=later()) == Status.COMPLETED

    session.refresh_from_db()
    assert (session.status, session.response) == (
        Status.COMPLETED,
        "[EVENT:info:caddy] after\n[MEMORY:dependency:caddy] Needs DNS first",
    )
    assert_each_thing_once(session)


def test_a_session_that_ended_while_nobody_followed_is_read_to_its_end(room, session, held):
    worker = start_worker(session)
    room.api.wait_for_request(KEY, 3)
    kill(worker)
    session.refresh_from_db()
    cli = psutil.Process(session.pid)
    held.set()
    psutil.wait_procs([cli], timeout=60)

    reaped = reaper.reap(at=later())

    session.refresh_from_db()
    assert reaped.closed == [session.pk]
    assert session.status == Status.COMPLETED
    assert session.num_turns == 3
    assert_each_thing_once(session)
    assert reaper.reap(at=later()).closed == []  # and a second look changes nothing
    assert_each_thing_once(session)


def test_a_session_killed_together_with_its_worker_keeps_what_was_said(room, session):
    worker = start_worker(session)
    room.api.wait_for_request(KEY, 3)
    kill(worker)
    session.refresh_from_db()
    cli = psutil.Process(session.pid)
    os.killpg(session.pid, signal.SIGKILL)
    psutil.wait_procs([cli], timeout=60)

    reaped = reaper.reap(at=later())

    session.refresh_from_db()
    assert reaped.closed == [session.pk]
    assert (session.status, session.status_reason) == (
        Status.LOST,
        "The log ends without a result: the process ended while no worker followed it.",
    )
    assert sorted(Event.objects.values_list("message", flat=True)) == ["before", "between"]
    assert CooldownAction.objects.count() == 1
    assert Memory.objects.get().observation == "Reload takes 3 seconds"


def test_the_worker_may_die_at_any_moment(room, session, held):
    """Three workers die, one at each request of the session; the fourth look finishes it."""
    worker = start_worker(session)
    room.api.wait_for_request(KEY, 1)
    kill(worker)
    for request in (2, 3):
        worker = processes.call(
            "from datetime import timedelta; from django.utils import timezone; from sessions_app import reaper\n"
            f"reaper.take_over({session.pk}, at=timezone.now() + timedelta(minutes=2))"
        )
        room.api.wait_for_request(KEY, request)
        kill(worker)
    held.set()

    psutil.wait_procs([psutil.Process(Session.objects.get(pk=session.pk).pid)], timeout=60)
    reaper.reap(at=timezone.now() + timedelta(minutes=5))

    session.refresh_from_db()
    assert session.status == Status.COMPLETED
    assert_each_thing_once(session)
