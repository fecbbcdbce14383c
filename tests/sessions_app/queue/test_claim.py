"""queue.claim: queued → running, once."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection

from sessions_app import queue
from sessions_app.models import Session, Status
from tests.factories import AgentFactory, SessionFactory
from tests.sessions_app.queue.support import AT, snapshot


def queued(**fields):
    return SessionFactory(**{"status": Status.QUEUED, "queued_at": AT - timedelta(minutes=1), **fields})


@pytest.mark.django_db
class TestOneWorker:
    def test_a_claimed_session_runs_on_its_host_from_now(self):
        session, other = queued(hold_reason="It waited."), queued()
        before = snapshot([other])
        claimed = queue.claim(session.pk, host="rack-1", at=AT)
        row = Session.objects.get(pk=session.pk)
        assert claimed == row
        assert (row.status, row.host, row.started_at, row.heartbeat_at, row.attempts, row.hold_reason) == (
            Status.RUNNING,
            "rack-1",
            AT,
            AT,
            1,
            "",
        )
        assert (claimed.status, claimed.attempts) == (Status.RUNNING, 1)
        assert snapshot([other]) == before

    def test_the_second_claim_gets_nothing_and_changes_nothing(self):
        session = queued()
        queue.claim(session.pk, host="rack-1", at=AT)
        before = snapshot([session])
        assert queue.claim(session.pk, host="rack-2", at=AT + timedelta(seconds=1)) is None
        assert snapshot([session]) == before

    @pytest.mark.parametrize("status", [status for status in Status if status != Status.QUEUED])
    def test_only_a_queued_session_is_claimed(self, status):
        session = SessionFactory(status=status)
        before = snapshot([session])
        assert queue.claim(session.pk, host="rack-1", at=AT) is None
        assert snapshot([session]) == before

    def test_a_session_that_is_not_there_is_nobodys(self):
        assert queue.claim(12345, host="rack-1", at=AT) is None

    def test_an_agent_that_is_busy_leaves_the_session_waiting_with_the_reason(self):
        agent = AgentFactory(slug="watch")
        running = SessionFactory(agent=agent, status=Status.RUNNING)
        before = snapshot([running])
        session = queued(agent=agent, dispatched_at=AT)
        assert queue.claim(session.pk, host="rack-1", at=AT) is None
        session.refresh_from_db()
        assert (session.status, session.dispatched_at, session.attempts) == (Status.QUEUED, None, 0)
        assert f"busy with session {running.pk}" in session.hold_reason
        assert snapshot([running]) == before

    def test_the_rules_of_the_queue_hold_for_a_claim_too(self):
        session = queued(agent=AgentFactory(enabled=False), trigger="scheduled")
        reason = queue.hold_reason_for(session, AT)
        assert "is disabled" in reason
        assert queue.claim(session.pk, host="rack-1", at=AT) is None
        session.refresh_from_db()
        assert session.hold_reason == reason

    def test_sessions_without_an_agent_run_side_by_side(self):
        first, second = queued(agent=None), queued(agent=None)
        assert queue.claim(first.pk, host="rack-1", at=AT)
        assert queue.claim(second.pk, host="rack-1", at=AT)


@pytest.mark.django_db(transaction=True)
class TestManyWorkers:
    @staticmethod
    def at_once(*calls):
        """Run the calls in threads with connections of their own, started together; their results."""
        gate, results, errors = threading.Barrier(len(calls)), [None] * len(calls), []

        def run(place, call):
            try:
                gate.wait()
                results[place] = call()
            except Exception as error:
                errors.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=run, args=entry) for entry in enumerate(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        return results

    def test_of_six_workers_one_gets_the_session(self):
        session = queued()
        results = self.at_once(*[lambda n=n: queue.claim(session.pk, host=f"rack-{n}", at=AT) for n in range(6)])
        winners = [claimed for claimed in results if claimed is not None]
        assert len(winners) == 1
        row = Session.objects.get(pk=session.pk)
        assert (row.attempts, row.host) == (1, winners[0].host)

    def test_of_six_sessions_of_one_agent_one_runs_and_the_others_say_why_not(self):
        agent = AgentFactory()
        sessions = [queued(agent=agent) for _ in range(6)]
        results = self.at_once(*[lambda s=s: queue.claim(s.pk, host="rack", at=AT) for s in sessions])
        assert sum(claimed is not None for claimed in results) == 1
        assert Session.objects.running().count() == 1
        waiting = Session.objects.queued()
        assert waiting.count() == 5
        assert all("one session at a time" in session.hold_reason for session in waiting)
