"""All of claudeops on the real CLI: a schedule fires, a worker runs the session, the next one recalls its memory."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta

import psutil
import pytest
from django.utils import timezone

from memories.models import Memory
from sessions_app import queue, reaper
from sessions_app.models import Event, ScheduleKind, Session, Status, Trigger, WorkerHeartbeat
from sessions_app.runner.process import find_by_session_id
from tests.claudeops.processes import started, until
from tests.support.factories import AgentFactory
from tests.support.messages_api import Text, answers, bash, says

pytestmark = pytest.mark.real_cli

KEY = "Walk the rounds."


@pytest.fixture
def worker(room, tmp_path):
    """Starts a worker of the sessions' queue; called as often as the test needs one."""

    def start():
        return started("runworker", "--cluster", "sessions", log=tmp_path / "worker.log")

    return start


def serving() -> bool:
    return WorkerHeartbeat.objects.filter(cluster="sessions").exists()


def ended(session: Session) -> bool:
    session.refresh_from_db()
    return not session.is_open


def test_a_scheduled_session_learns_and_the_next_one_remembers(room, worker):
    room.api.script(
        KEY,
        answers(Text("[MEMORY:behavior:jellyfin] Sometimes crashes on first start"), bash("echo looked")),
        says("Done."),
        says("Nothing new."),
    )
    now = timezone.now()
    agent = AgentFactory(
        prompt_template=KEY,
        structured_response=False,
        allowed_tools=["Bash(echo *)"],
        schedule_kind=ScheduleKind.INTERVAL,
        interval_seconds=60,
        next_run_at=now,
    )
    with worker() as process:
        assert queue.tick(at=now) == 1
        first = Session.objects.get()
        until(lambda: ended(first), f"the first session did not end:\n{process.output()}")
        assert queue.tick(at=now + timedelta(seconds=60)) == 1
        second = Session.objects.exclude(pk=first.pk).get()
        until(lambda: ended(second), f"the second session did not end:\n{process.output()}")

    for session in (first, second):
        assert (session.status, session.trigger, session.agent) == (Status.COMPLETED, Trigger.SCHEDULED, agent)
    line = "- [behavior] Sometimes crashes on first start (confidence: 0.7)"
    *before, after = room.api.to(KEY)
    assert [line in request.system for request in before] == [False, False]
    assert line in after.system
    assert [memory["observation"] for memory in second.receipt.included] == ["Sometimes crashes on first start"]


@pytest.fixture
def held() -> threading.Event:
    """Set by the test to let the model's last answer go."""
    return threading.Event()


@pytest.fixture
def session(room, held):
    room.api.script(
        KEY,
        answers(Text("[EVENT:info:caddy] early\n[MEMORY:timing:caddy] Reload takes 3 seconds"), bash("echo walking")),
        says("[EVENT:info:caddy] late", held=held),
    )
    return room.queued(KEY)


def assert_followed_to_its_end(session: Session) -> None:
    assert session.status == Status.COMPLETED
    assert sorted(Event.objects.values_list("message", flat=True)) == ["early", "late"]
    assert Memory.objects.get().confidence == 0.7
    assert session.num_turns == 2


def test_a_worker_that_is_stopped_hands_its_session_to_the_next_one(room, worker, session, held):
    with worker() as process:
        room.api.wait_for_request(KEY, 2)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait() == 0, process.output()
    session.refresh_from_db()
    assert session.status == Status.RUNNING
    assert find_by_session_id(session.cli_session_id) is not None

    with worker() as process:
        until(serving, "the second worker does not serve")
        held.set()
        until(lambda: ended(session), f"the session did not end:\n{process.output()}")

    assert_followed_to_its_end(session)


def test_a_worker_that_is_killed_loses_its_session_to_the_next_one(room, worker, session, held):
    with worker() as process:
        room.api.wait_for_request(KEY, 2)
        family = process.family()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        psutil.wait_procs(family, timeout=30)
    session.refresh_from_db()
    assert session.status == Status.RUNNING
    assert find_by_session_id(session.cli_session_id) is not None
    # The time in which the dead worker's heartbeat grows stale.
    long_ago = timezone.now() - 2 * reaper.STALE
    Session.objects.filter(pk=session.pk).update(heartbeat_at=long_ago)

    with worker() as process:
        held.set()
        until(lambda: ended(session), f"the session did not end:\n{process.output()}")

    assert_followed_to_its_end(session)
