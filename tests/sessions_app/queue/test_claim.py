"""queue.claim: queued → running, once."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection

from sessions_app import queue
from sessions_app.models import Session, Status
from sessions_app.queue.dispatch import Rules
from sessions_app.runner.launch import command_of
from sessions_app.runner.run import close
from tests.sessions_app.queue.support import AT, snapshot
from tests.support.factories import AgentFactory, SessionFactory
from tests.support.processes import call


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
        reason = queue.rules_for(session, AT).reason(session)
        assert "is disabled" in reason
        assert queue.claim(session.pk, host="rack-1", at=AT) is None
        session.refresh_from_db()
        assert session.hold_reason == reason

    def test_sessions_without_an_agent_run_side_by_side(self):
        first, second = queued(agent=None), queued(agent=None)
        assert queue.claim(first.pk, host="rack-1", at=AT)
        assert queue.claim(second.pk, host="rack-1", at=AT)


@pytest.mark.django_db
class TestTheBudget:
    """What runs may still cost counts; what it did not use is given back when it ends."""

    @pytest.fixture(autouse=True)
    def two_dollars(self, settings):
        settings.CLAUDEOPS_DAILY_BUDGET_USD = settings.CLAUDEOPS_MAX_BUDGET_USD = 2.0

    @staticmethod
    def scheduled(**fields):
        return queued(agent=AgentFactory(**fields), trigger="scheduled")

    def test_a_claim_reserves_the_budget_of_the_session_and_of_its_agent(self):
        assert queue.claim(self.scheduled().pk, host="rack-1", at=AT).reserved_usd == Decimal(2)
        alert = queued(agent=AgentFactory(max_budget_usd=Decimal("0.75")), trigger="alert")
        assert queue.claim(alert.pk, host="rack-1", at=AT).reserved_usd == Decimal("0.75")

    def test_of_five_sessions_that_need_all_of_it_one_runs_and_the_others_say_why_not(self):
        found = [queue.claim(self.scheduled().pk, host="rack-1", at=AT) for _ in range(5)]
        assert [one is not None for one in found] == [True, False, False, False, False]
        waiting = Session.objects.queued()
        assert {one.hold_reason for one in waiting} == {
            "The daily budget is reserved: of $2.00 (CLAUDEOPS_DAILY_BUDGET_USD) $0.00 is spent since 00:00 UTC, and "
            "running sessions may cost $2.00 more; this one may cost $2.00. It starts when one of them ends and leaves "
            "enough."
        }

    def test_what_fits_beside_it_runs(self, settings):
        settings.CLAUDEOPS_DAILY_BUDGET_USD = 5.0
        found = [queue.claim(self.scheduled().pk, host="rack-1", at=AT) for _ in range(3)]
        assert [one is not None for one in found] == [True, True, False]
        small = self.scheduled(max_budget_usd=Decimal("0.50"))
        assert queue.claim(small.pk, host="rack-1", at=AT)

    def test_the_last_session_of_a_day_may_cost_what_is_left(self, settings, tmp_path):
        settings.CLAUDEOPS_DATA_DIR = tmp_path
        earlier = queue.claim(self.scheduled().pk, host="rack-1", at=AT)
        Session.objects.filter(pk=earlier.pk).update(status=Status.COMPLETED, cost_usd=Decimal("1.40"), ended_at=AT)
        asked = queued(agent=AgentFactory(), trigger="manual")
        last = queue.claim(self.scheduled().pk, host="rack-1", at=AT)
        assert last.reserved_usd == Decimal("0.60")
        argv = command_of(last, last.agent, tmp_path)
        assert argv[argv.index("--max-budget-usd") + 1] == "0.6"
        assert queue.claim(asked.pk, host="rack-1", at=AT).reserved_usd == Decimal(2)

    def test_what_people_ask_for_is_not_held_but_reserves(self):
        alert = queued(agent=AgentFactory(), trigger="alert")
        assert queue.claim(alert.pk, host="rack-1", at=AT)
        assert queue.claim(queued(agent=AgentFactory(), trigger="manual").pk, host="rack-1", at=AT)
        assert queue.claim(self.scheduled().pk, host="rack-1", at=AT) is None

    def test_a_session_that_cost_more_than_it_reserved_counts_with_its_cost(self):
        running = queue.claim(self.scheduled(max_budget_usd=Decimal("0.50")).pk, host="rack-1", at=AT)
        Session.objects.filter(pk=running.pk).update(cost_usd=Decimal("1.90"))
        assert Rules(AT).spent + Rules(AT).reserved == Decimal("1.90")

    @pytest.mark.parametrize("status", [Status.COMPLETED, Status.LOST, Status.FAILED, Status.STOPPED])
    def test_what_was_not_used_is_given_back_however_it_ends(self, status):
        running, waiting = queue.claim(self.scheduled().pk, host="rack-1", at=AT), self.scheduled()
        assert queue.claim(waiting.pk, host="rack-1", at=AT) is None
        Session.objects.filter(pk=running.pk).update(cost_usd=Decimal("0.25"))
        assert close(running.pk, status, "it ended", at=AT) == status
        assert queue.claim(waiting.pk, host="rack-1", at=AT)


CLAIMS = """
import os, pathlib, sys, time
from datetime import UTC, datetime
from django.db import connection
from sessions_app.queue import claim
folder, ids = pathlib.Path({folder!r}), {ids!r}
assert connection.connection is None
children = []
for place, session_id in enumerate(ids):
    child = os.fork()
    if not child:
        connection.ensure_connection()
        (folder / f"ready-{{place}}").touch()
        while len(list(folder.glob("ready-*"))) < len(ids):
            time.sleep(0.001)
        os._exit(0 if claim(session_id, host="rack", at=datetime.fromisoformat({at!r})) else 3)
    children.append(child)
print(sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


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

    def test_five_processes_cannot_spend_the_days_budget_five_times(self, settings, tmp_path):
        settings.CLAUDEOPS_DAILY_BUDGET_USD = settings.CLAUDEOPS_MAX_BUDGET_USD = 2.0
        sessions = [queued(agent=AgentFactory(), trigger="scheduled") for _ in range(5)]
        code = CLAIMS.format(folder=str(tmp_path), ids=[one.pk for one in sessions], at=AT.isoformat())
        budgets = {"CLAUDEOPS_DAILY_BUDGET_USD": "2", "CLAUDEOPS_MAX_BUDGET_USD": "2"}
        process = call(code, budgets)
        output, errors = process.communicate(timeout=60)
        assert output.strip() == "[0, 3, 3, 3, 3]", errors
        assert Session.objects.running().count() == 1
