"""sessions_app.tasks: what a worker does when it is woken."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from sessions_app import queue, tasks
from sessions_app.models import Agent, Session, Status, WorkerHeartbeat
from sessions_app.runner import handover
from tests.sessions_app.queue.support import wakeups, woken
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nobody_lets_go():
    yield
    handover.CLOSING.clear()
    handover.DETACH.clear()


@pytest.fixture
def stream(tmp_path) -> str:
    """A recorded session in which nothing happens."""
    path = tmp_path / "nothing.jsonl"
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "All is well.", "num_turns": 1}
    path.write_text(json.dumps({"type": "system", "subtype": "init"}) + "\n" + json.dumps(result) + "\n")
    return str(path)


def ask(stream: str, trigger: str = "scheduled", **more) -> Session:
    return queue.request_session(agent=None, trigger=trigger, by="x", runner="replay", stream=stream, **more)


def status(session: Session) -> str:
    return Session.objects.get(pk=session.pk).status


class TestRunSession:
    def test_a_woken_worker_carries_the_session_out(self, stream):
        session = ask(stream)
        assert tasks.run_session(session.pk) == session.pk
        assert status(session) == Status.COMPLETED

    def test_a_wakeup_that_comes_twice_runs_it_once(self, stream):
        session = ask(stream)
        tasks.run_session(session.pk)
        before = Session.objects.filter(pk=session.pk).values().get()
        assert tasks.run_session(session.pk) is None
        assert Session.objects.filter(pk=session.pk).values().get() == before

    def test_an_alert_that_came_later_goes_first_and_nobody_is_forgotten(self, stream):
        scheduled = ask(stream)
        alert = ask(stream, "alert")
        assert tasks.run_session(scheduled.pk) == alert.pk
        assert status(scheduled) == Status.QUEUED
        assert tasks.run_session(alert.pk) == scheduled.pk
        assert status(scheduled) == Status.COMPLETED

    @pytest.mark.parametrize("flag", [handover.CLOSING, handover.DETACH])
    def test_a_stopping_worker_takes_nothing_up_and_gives_the_wakeup_back(self, stream, flag):
        session = ask(stream)
        flag.set()
        assert tasks.run_session(session.pk) is None
        row = Session.objects.get(pk=session.pk)
        assert (row.status, row.dispatched_at, row.attempts) == (Status.QUEUED, None, 0)
        flag.clear()
        queue.dispatch()
        assert woken() == [session.pk, session.pk]

    def test_a_session_that_is_not_there_is_no_error(self):
        assert tasks.run_session(4711) is None


class TestFollowSession:
    def test_a_session_whose_process_ended_is_closed_by_its_log(self, settings):
        session = SessionFactory(agent=None, status=Status.RUNNING, host=settings.CLAUDEOPS_HOST, pid=None)
        assert tasks.follow_session(session.pk) == session.pk
        assert status(session) not in (Status.RUNNING, Status.QUEUED)

    def test_a_stopping_worker_follows_nobody(self):
        session = SessionFactory(agent=None, status=Status.RUNNING)
        handover.DETACH.set()
        assert tasks.follow_session(session.pk) is None
        assert status(session) == Status.RUNNING


def test_a_tick_fires_what_is_due_and_wakes_who_may_start():
    AgentFactory(schedule_kind="interval", interval_seconds=60, next_run_at=timezone.now() - timedelta(seconds=5))
    held = SessionFactory(agent=None, status=Status.QUEUED, hold_reason="It waited.")
    assert tasks.tick() is None
    fired = Session.objects.get(trigger="scheduled")
    assert set(woken()) == {fired.pk, held.pk}
    assert Agent.objects.get(pk=fired.agent_id).next_run_at > timezone.now()


class TestReap:
    @staticmethod
    def beat(host: str, cluster: str = "default", age: float = 0) -> None:
        at = timezone.now() - timedelta(seconds=age)
        WorkerHeartbeat.objects.create(host=host, cluster=cluster, pid=1, beat_at=at)

    @staticmethod
    def asked() -> list[str]:
        return [row.key for row in OrmQ.objects.order_by("id") if row.task["func"] == "sessions_app.tasks.reap_here"]

    def test_every_other_living_host_is_asked_once_to_look_after_its_own(self, settings):
        settings.CLAUDEOPS_HOST = "rack-1"
        self.beat("rack-1")
        self.beat("rack-2")
        self.beat("rack-2", "sessions")
        self.beat("rack-3", "sessions")
        self.beat("rack-4", age=600)
        assert tasks.reap() is None
        assert self.asked() == ["default@rack-2", "sessions@rack-3"]

    def test_a_session_nobody_follows_here_is_seen_to(self, settings):
        session = SessionFactory(
            agent=None, status=Status.RUNNING, host=settings.CLAUDEOPS_HOST, log_file="", heartbeat_at=None
        )
        tasks.reap()
        assert status(session) == Status.QUEUED  # it was never started
        assert wakeups() == [("sessions", session.pk)]
        assert not self.asked()
