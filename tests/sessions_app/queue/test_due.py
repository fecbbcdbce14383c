"""queue.tick and queue.reschedule: one firing is one run, and nothing of it is silent."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from sessions_app import queue
from sessions_app.models import Agent, Session, Status
from sessions_app.queue import due
from tests.sessions_app.queue.support import AT, snapshot, woken
from tests.support.factories import AgentFactory, SessionFactory

HOUR = timedelta(hours=1)


def hourly(**fields):
    return AgentFactory(**{"schedule_kind": "interval", "interval_seconds": 3600, "next_run_at": AT, **fields})


@pytest.mark.django_db
class TestTick:
    def test_a_due_agent_gets_one_scheduled_session_and_its_next_time(self):
        agent, later = hourly(tier=2), hourly(next_run_at=AT + timedelta(seconds=1))
        assert queue.tick(at=AT) == 1
        session = Session.objects.get()
        assert (session.agent, session.trigger, session.tier, session.requested_by, session.queued_at) == (
            agent,
            "scheduled",
            2,
            "schedule",
            AT,
        )
        assert woken() == [session.pk]
        agent.refresh_from_db()
        assert (agent.next_run_at, agent.last_run_at) == (AT + HOUR, AT)
        later.refresh_from_db()
        assert (later.next_run_at, later.last_run_at) == (AT + timedelta(seconds=1), None)

    def test_ticking_again_fires_nothing(self):
        hourly()
        queue.tick(at=AT)
        assert queue.tick(at=AT + timedelta(minutes=1)) == 0
        assert Session.objects.count() == 1

    def test_firings_that_were_missed_are_made_up_for_once_and_the_grid_stays(self):
        agent = hourly(next_run_at=AT - 5 * HOUR)
        assert queue.tick(at=AT + timedelta(minutes=10)) == 1
        agent.refresh_from_db()
        assert agent.next_run_at == AT + HOUR
        assert Session.objects.count() == 1

    def test_a_cron_agent_fires_at_its_next_time(self):
        agent = AgentFactory(schedule_kind="cron", cron="30 6 * * *", next_run_at=AT)
        assert queue.tick(at=AT) == 1
        agent.refresh_from_db()
        assert agent.next_run_at == datetime(2026, 3, 11, 6, 30, tzinfo=UTC)

    def test_a_firing_joins_the_scheduled_session_that_still_waits(self):
        agent = hourly()
        queue.tick(at=AT)
        other = SessionFactory(status=Status.QUEUED, trigger="scheduled")
        before = snapshot([other])
        assert queue.tick(at=AT + HOUR) == 1
        assert queue.tick(at=AT + 2 * HOUR) == 1
        session = Session.objects.get(agent=agent)
        assert session.coalesced == 2
        assert snapshot([other]) == before

    def test_a_firing_does_not_join_an_alert_or_a_session_that_runs(self):
        agent = hourly()
        SessionFactory(agent=agent, status=Status.QUEUED, trigger="alert")
        SessionFactory(agent=agent, status=Status.RUNNING, trigger="scheduled")
        queue.tick(at=AT)
        assert Session.objects.filter(agent=agent, trigger="scheduled", status=Status.QUEUED).count() == 1
        assert not Session.objects.exclude(coalesced=0).exists()

    def test_alerts_never_join_each_other(self):
        agent = AgentFactory()
        for _ in range(3):
            queue.request_session(agent=agent, trigger="alert", by="x")
        assert Session.objects.filter(agent=agent, trigger="alert").count() == 3

    def test_a_disabled_agent_does_not_fire(self):
        agent = hourly(enabled=False)
        assert queue.tick(at=AT) == 0
        agent.refresh_from_db()
        assert agent.next_run_at is None
        assert not Session.objects.exists()

    def test_an_agent_that_is_disabled_or_fired_meanwhile_does_not_fire(self, monkeypatch):
        real = due._next
        for fields in ({"enabled": False}, {"next_run_at": AT + HOUR}):
            agent = hourly()
            monkeypatch.setattr(due, "_next", lambda one, **given: (change(), real(one, **given))[1])

            def change(pk=agent.pk, fields=fields):
                Agent.objects.filter(pk=pk).update(**fields)

            assert queue.tick(at=AT) == 0, fields
            monkeypatch.undo()
        assert not Session.objects.exists()

    def test_an_agent_made_without_a_next_time_is_given_one(self):
        agent = hourly(next_run_at=None)
        assert queue.tick(at=AT) == 0
        agent.refresh_from_db()
        assert agent.next_run_at == AT + HOUR

    def test_a_cron_that_never_comes_is_said_and_holds_up_nobody(self, caplog, monkeypatch):
        monkeypatch.setattr(logging.getLogger("sessions_app"), "propagate", True)
        broken = AgentFactory(slug="broken", schedule_kind="cron", cron="0 0 31 2 *")
        hourly()
        assert queue.tick(at=AT) == 1
        broken.refresh_from_db()
        assert broken.next_run_at is None
        assert "The schedule of agent broken never fires: '0 0 31 2 *'" in caplog.text

    def test_a_session_that_is_refused_is_kept_as_failed_with_the_reason(self, settings):
        settings.CLAUDEOPS_MAX_TIER = 1
        agent, other = hourly(tier=3), hourly()
        assert queue.tick(at=AT) == 2
        session = Session.objects.get(agent=agent)
        assert (session.status, session.ended_at, session.trigger) == (Status.FAILED, AT, "scheduled")
        assert "Tier 3 is above the highest allowed tier, 1." in session.status_reason
        agent.refresh_from_db()
        assert agent.next_run_at == AT + HOUR
        assert woken() == [Session.objects.get(agent=other).pk]


@pytest.mark.django_db(transaction=True)
def test_two_hosts_that_tick_at_once_make_one_run():
    agent = hourly()
    gate, fired, errors = threading.Barrier(4), [], []

    def tick():
        try:
            gate.wait()
            fired.append(queue.tick(at=AT))
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=tick) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sum(fired) == 1
    session = Session.objects.get(agent=agent)
    assert session.coalesced == 0


@pytest.mark.django_db
class TestReschedule:
    def test_an_interval_counts_from_the_last_run(self):
        agent = hourly(last_run_at=AT - timedelta(minutes=20), next_run_at=None)
        assert queue.reschedule(agent, at=AT) == AT + timedelta(minutes=40)
        assert Agent.objects.get(pk=agent.pk).next_run_at == AT + timedelta(minutes=40)

    def test_an_interval_that_has_passed_meanwhile_is_due_at_once(self):
        assert queue.reschedule(hourly(last_run_at=AT - 7 * HOUR), at=AT) == AT

    def test_a_first_interval_begins_now(self):
        assert queue.reschedule(hourly(), at=AT) == AT + HOUR

    def test_an_interval_of_its_own_is_not_needed(self, settings):
        settings.CLAUDEOPS_INTERVAL = 600
        assert queue.reschedule(hourly(interval_seconds=None), at=AT) == AT + timedelta(minutes=10)

    def test_a_cron_takes_its_first_time_after_now(self):
        agent = AgentFactory(schedule_kind="cron", cron="0 13 * * *")
        assert queue.reschedule(agent, at=AT) == datetime(2026, 3, 10, 13, tzinfo=UTC)

    @pytest.mark.parametrize("fields", [{"schedule_kind": "none"}, {"enabled": False}])
    def test_who_does_not_run_by_himself_has_no_next_time(self, fields):
        agent = hourly(**fields)
        assert queue.reschedule(agent, at=AT) is None
        assert Agent.objects.get(pk=agent.pk).next_run_at is None

    def test_other_agents_and_other_fields_stay(self):
        agent, other = hourly(), hourly()
        before = Agent.objects.filter(pk=other.pk).values().get()
        agent.name = "not saved"
        queue.reschedule(agent, at=AT)
        assert Agent.objects.get(pk=agent.pk).name == ""
        assert Agent.objects.filter(pk=other.pk).values().get() == before
