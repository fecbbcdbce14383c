"""queue.dispatch: who is woken, who is held and why."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from importlib import import_module

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django_q.models import OrmQ

from sessions_app import queue
from sessions_app.models import Session, Status, WorkerHeartbeat
from sessions_app.queue import waiting
from sessions_app.queue.dispatch import LOST_AFTER, MOST_SENT, RESEND_AFTER
from tests.sessions_app.queue.support import AT, snapshot, wakeups, woken
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db
dispatching = import_module("sessions_app.queue.dispatch")  # the package has a function of this name


def queued(**fields):
    return SessionFactory(**{"status": Status.QUEUED, "queued_at": AT, **fields})


def test_an_empty_queue_sends_nothing():
    SessionFactory(status=Status.COMPLETED)
    done = queue.dispatch(at=AT)
    assert (done.sent, done.held, done.later) == (0, {}, 0)


def test_alerts_and_people_go_before_schedules_and_the_oldest_first():
    scheduled = queued(trigger="scheduled", queued_at=AT - timedelta(hours=3))
    manual = queued(trigger="manual", queued_at=AT - timedelta(minutes=1))
    alert = queued(trigger="alert", queued_at=AT - timedelta(minutes=2))
    assert queue.dispatch(at=AT).sent == 3
    assert woken() == [alert.pk, manual.pk, scheduled.pk]


def test_dispatching_again_sends_no_second_wakeup():
    queued()
    assert queue.dispatch(at=AT).sent == 1
    assert queue.dispatch(at=AT + timedelta(minutes=1)).sent == 0
    assert len(woken()) == 1


def test_a_wakeup_that_was_lost_is_sent_again_after_a_quarter_of_an_hour():
    session = queued()
    queue.dispatch(at=AT)
    OrmQ.objects.all().delete()  # taken by a worker that died
    assert queue.dispatch(at=AT + RESEND_AFTER - timedelta(seconds=1)).sent == 0
    later = AT + RESEND_AFTER + timedelta(seconds=1)
    assert queue.dispatch(at=later).sent == 1
    session.refresh_from_db()
    assert session.dispatched_at == later


def test_an_idle_worker_sends_a_lost_wakeup_again_after_half_a_minute():
    queued()
    queue.dispatch(at=AT)
    OrmQ.objects.update(lock=AT + timedelta(hours=9))  # taken by a worker that died
    assert timedelta(seconds=30) >= LOST_AFTER
    assert queue.dispatch(at=AT + LOST_AFTER - timedelta(seconds=1), resend_after=LOST_AFTER).sent == 0
    assert queue.dispatch(at=AT + LOST_AFTER + timedelta(seconds=1), resend_after=LOST_AFTER).sent == 1


def test_a_wakeup_that_still_waits_to_be_taken_is_not_doubled():
    queued()
    queue.dispatch(at=AT)
    OrmQ.objects.update(lock=AT)
    assert queue.dispatch(at=AT + timedelta(hours=2)).sent == 0
    OrmQ.objects.update(lock=AT + timedelta(hours=9))  # taken, and nothing came of it
    assert queue.dispatch(at=AT + timedelta(hours=2)).sent == 1


def test_a_call_sends_no_more_than_its_limit_and_says_what_is_left():
    for _ in range(MOST_SENT + 5):
        queued()
    done = queue.dispatch(at=AT)
    assert (done.sent, done.later) == (MOST_SENT, 5)
    assert queue.dispatch(at=AT + timedelta(seconds=5)).sent == 5


def test_only_the_first_session_of_an_agent_is_woken():
    agent = AgentFactory(slug="watch")
    first, second = queued(agent=agent, trigger="alert"), queued(agent=agent, trigger="alert")
    other = queued()
    assert queue.dispatch(at=AT).sent == 2
    assert woken() == [first.pk, other.pk]
    second.refresh_from_db()
    assert second.hold_reason == f"Session {first.pk} of agent watch goes first."


def test_sessions_without_an_agent_hold_nobody_up():
    for _ in range(2):
        queued(agent=None)
    SessionFactory(agent=None, status=Status.RUNNING)
    assert queue.dispatch(at=AT).sent == 2


def test_a_disabled_agents_schedule_waits_but_people_may_ask():
    agent = AgentFactory(slug="watch", enabled=False)
    scheduled = queued(agent=agent, trigger="scheduled")
    done = queue.dispatch(at=AT)
    reason = "Agent watch is disabled; its scheduled sessions wait until it is enabled."
    assert (done.sent, done.held) == (0, {reason: 1})
    manual = queued(agent=agent, trigger="manual")
    queue.dispatch(at=AT)
    assert woken() == [manual.pk]
    scheduled.refresh_from_db()
    assert scheduled.hold_reason == reason


def test_a_hold_is_cleared_when_its_reason_is_gone():
    agent = AgentFactory()
    running = SessionFactory(agent=agent, status=Status.RUNNING)
    waiting = queued(agent=agent)
    queue.dispatch(at=AT)
    waiting.refresh_from_db()
    assert waiting.hold_reason
    Session.objects.filter(pk=running.pk).update(status=Status.COMPLETED, ended_at=AT)
    assert queue.dispatch(at=AT).sent == 1
    waiting.refresh_from_db()
    assert (waiting.hold_reason, waiting.dispatched_at) == ("", AT)


def test_a_session_that_is_held_after_its_wakeup_was_sent_gets_another_one_later():
    agent = AgentFactory()
    waiting = queued(agent=agent)
    queue.dispatch(at=AT)
    running = SessionFactory(agent=agent, status=Status.RUNNING)
    queue.dispatch(at=AT + timedelta(minutes=1))
    waiting.refresh_from_db()
    assert waiting.dispatched_at is None
    Session.objects.filter(pk=running.pk).update(status=Status.COMPLETED)
    assert queue.dispatch(at=AT + timedelta(minutes=2)).sent == 1


def test_a_session_that_another_dispatch_woke_since_it_was_read_is_not_woken_again():
    read = queued()
    assert queue.dispatch(at=AT).sent == 1
    assert not dispatching._send(read, AT + timedelta(seconds=1))
    assert woken() == [read.pk]
    read.refresh_from_db()
    assert read.dispatched_at == AT


def test_a_session_that_was_claimed_since_it_was_read_gets_no_hold(monkeypatch):
    agent = AgentFactory()
    SessionFactory(agent=agent, status=Status.RUNNING)
    waiting = queued(agent=agent)
    hold = dispatching._hold

    def claimed_meanwhile(ids, reason):
        Session.objects.filter(pk=waiting.pk).update(status=Status.STOPPED, dispatched_at=AT)
        hold(ids, reason)

    monkeypatch.setattr(dispatching, "_hold", claimed_meanwhile)
    queue.dispatch(at=AT)
    waiting.refresh_from_db()
    assert (waiting.hold_reason, waiting.dispatched_at) == ("", AT)


class TestTheDaysBudget:
    @pytest.fixture(autouse=True)
    def ten_dollars(self, settings):
        settings.CLAUDEOPS_DAILY_BUDGET_USD = 10.0

    @staticmethod
    def spent(usd, **fields):
        return SessionFactory(**{"cost_usd": Decimal(usd), "ended_at": AT, "status": Status.COMPLETED, **fields})

    def test_scheduled_sessions_wait_when_it_is_spent_and_are_told_until_when(self):
        self.spent("7.5")
        self.spent("2.5", status=Status.FAILED)
        scheduled, alert = queued(trigger="scheduled"), queued(trigger="alert")
        before = snapshot(Session.objects.ended())
        done = queue.dispatch(at=AT)
        reason = (
            "The daily budget is spent: $10.00 of $10.00 since 00:00 UTC (CLAUDEOPS_DAILY_BUDGET_USD). "
            "Scheduled sessions wait until 2026-03-11 00:00 UTC."
        )
        assert (done.sent, done.held) == (1, {reason: 1})
        assert woken() == [alert.pk]
        scheduled.refresh_from_db()
        assert scheduled.hold_reason == reason
        assert snapshot(Session.objects.ended()) == before

    def test_running_sessions_count_with_what_they_have_cost_so_far(self):
        self.spent("4", status=Status.RUNNING, ended_at=None)
        self.spent("5.99")
        queued(trigger="scheduled")
        assert queue.dispatch(at=AT).sent == 1
        self.spent("0.01")
        queued(trigger="scheduled")
        assert queue.dispatch(at=AT).sent == 0

    def test_yesterday_and_imported_logs_do_not_count(self):
        midnight = AT.replace(hour=0)
        self.spent("100", ended_at=midnight - timedelta(microseconds=1))
        self.spent("100", trigger="import")
        queued(trigger="scheduled")
        assert queue.dispatch(at=AT).sent == 1

    def test_the_first_second_of_the_day_counts(self):
        self.spent("100", ended_at=AT.replace(hour=0))
        queued(trigger="scheduled")
        assert queue.dispatch(at=AT).sent == 0

    def test_the_next_day_releases_what_waited(self):
        self.spent("100")
        waiting = queued(trigger="scheduled")
        queue.dispatch(at=AT)
        assert queue.dispatch(at=AT + timedelta(hours=12)).sent == 1
        waiting.refresh_from_db()
        assert waiting.hold_reason == ""

    def test_no_budget_is_no_limit(self, settings):
        settings.CLAUDEOPS_DAILY_BUDGET_USD = 0
        self.spent("900000")
        queued(trigger="scheduled")
        assert queue.dispatch(at=AT).sent == 1


def test_rows_that_are_not_queued_do_not_move():
    others = [SessionFactory(status=status) for status in Status if status != Status.QUEUED]
    before = snapshot(others)
    queued()
    queue.dispatch(at=AT)
    assert snapshot(others) == before


def test_a_longer_queue_of_held_sessions_takes_no_more_queries():
    agent = AgentFactory()
    SessionFactory(agent=agent, status=Status.RUNNING)

    def queries(rows: int) -> int:
        for _ in range(rows):
            queued(agent=agent)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            queue.dispatch(at=AT)
        return len(captured)

    assert queries(10) == queries(20)


class TestTheLine:
    def test_an_alert_that_came_later_takes_the_wakeup_of_a_schedule(self):
        scheduled = queued(trigger="scheduled")
        queue.dispatch(at=AT)
        alert = queued(trigger="alert", queued_at=AT + timedelta(minutes=5))
        assert queue.in_line(scheduled.pk, at=AT) == [alert.pk, scheduled.pk]

    def test_a_wakeup_whose_session_is_taken_serves_the_next_in_line(self):
        gone = SessionFactory(status=Status.RUNNING)
        waiting = queued(trigger="scheduled")
        assert queue.in_line(gone.pk, at=AT) == [waiting.pk]

    def test_a_held_session_is_passed_over_and_only_tried_for_its_own_wakeup(self):
        agent = AgentFactory()
        SessionFactory(agent=agent, status=Status.RUNNING)
        held, free = queued(agent=agent, trigger="alert"), queued(trigger="scheduled")
        assert queue.in_line(free.pk, at=AT) == [free.pk]
        assert queue.in_line(held.pk, at=AT) == [free.pk, held.pk]

    def test_nothing_is_left_to_do(self):
        assert queue.in_line(SessionFactory().pk, at=AT) == []

    def test_what_a_stopping_worker_gives_back_is_sent_again_at_once(self):
        session = queued()
        queue.dispatch(at=AT)
        queue.give_back(session.pk)
        assert queue.dispatch(at=AT + timedelta(seconds=1)).sent == 1

    def test_a_session_that_began_meanwhile_keeps_its_wakeup(self):
        session = queued(dispatched_at=AT)
        Session.objects.filter(pk=session.pk).update(status=Status.RUNNING)
        queue.give_back(session.pk)
        session.refresh_from_db()
        assert session.dispatched_at == AT


class TestFollowing:
    def test_the_wakeup_goes_to_the_host_that_has_the_process(self):
        session = SessionFactory(status=Status.RUNNING, host="rack-2")
        assert queue.enqueue_follow(session.pk)
        assert wakeups("follow_session") == [("sessions@rack-2", session.pk)]

    def test_it_is_not_sent_while_one_waits_to_be_taken(self):
        session = SessionFactory(status=Status.RUNNING, host="rack-2")
        queue.enqueue_follow(session.pk)
        assert not queue.enqueue_follow(session.pk)
        assert len(wakeups("follow_session")) == 1

    def test_a_session_that_ended_is_not_followed(self):
        assert not queue.enqueue_follow(SessionFactory(host="rack-2").pk)
        assert not wakeups("follow_session")


class TestWhyItWaits:
    def test_without_a_worker_it_says_so(self):
        assert waiting.reason_of(queued(), AT) == "No worker serves the queue sessions."
        assert waiting.reason_of(queued(hold_reason="It is Sunday."), AT) == "It is Sunday."

    def test_a_worker_with_room_takes_it_soon_and_a_busy_one_later(self):
        WorkerHeartbeat.objects.create(host="rack", cluster="sessions", pid=7, beat_at=AT)
        assert waiting.reason_of(queued(), AT) == "A worker takes it within a minute."
        SessionFactory(status=Status.RUNNING)
        assert waiting.reason_of(queued(), AT) == "Its turn comes when a worker has room; running now: 1."

    def test_what_waits_for_longer_than_a_minute_by_reason(self):
        old = AT - timedelta(minutes=2)
        queued(queued_at=AT - timedelta(seconds=59))
        queued(queued_at=old)
        for _ in range(2):
            queued(queued_at=old, hold_reason="It is Sunday.")
        assert waiting.long_waiting(AT) == [
            ("It is Sunday.", 2, old),
            ("No worker serves the queue sessions.", 1, old),
        ]
