"""The last runs of several agents: each agent's own, the newest last, read in two queries from an index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Session, Status
from sessions_app.queries.usual import last_runs
from sessions_app.web.strips import strip_of
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


def ran(agent, count: int, **fields) -> list[Session]:
    return [SessionFactory(agent=agent, queued_at=AT + timedelta(minutes=n), **fields) for n in range(count)]


def test_each_agent_has_its_last_runs_the_newest_last_and_what_waits_is_none():
    often, seldom, never = AgentFactory.create_batch(3)
    many, few = ran(often, 7), ran(seldom, 2)
    SessionFactory(agent=often, status=Status.QUEUED, queued_at=AT + timedelta(hours=1))
    SessionFactory(agent=None, queued_at=AT + timedelta(hours=1))
    found = last_runs([often.pk, seldom.pk, never.pk], 5)
    assert found == {often.pk: many[-5:], seldom.pk: few}
    assert last_runs([]) == {}


def test_runs_of_the_same_moment_are_cut_to_the_last_by_number():
    agent = AgentFactory()
    sessions = [SessionFactory(agent=agent, queued_at=AT) for _ in range(6)]
    assert last_runs([agent.pk], 4) == {agent.pk: sessions[-4:]}


def test_it_asks_twice_however_many_agents_there_are():
    def queries(agents: int) -> int:
        made = AgentFactory.create_batch(agents)
        for agent in made:
            ran(agent, 3)
        with CaptureQueriesContext(connection) as captured:
            last_runs([agent.pk for agent in made])
        return len(captured)

    assert queries(2) == queries(12) == 2


def test_a_strip_names_each_run_with_its_outcome_and_its_reason():
    agent = AgentFactory()
    SessionFactory(agent=agent, queued_at=AT, summary="All is well")
    SessionFactory(agent=agent, queued_at=AT + timedelta(1), status=Status.LOST, status_reason="Its host went away.")
    SessionFactory(agent=agent, queued_at=AT + timedelta(2), status=Status.RUNNING)
    sessions = last_runs([agent.pk])[agent.pk]
    strip = strip_of(sessions)
    assert strip.said == "3 runs: 1 completed, 1 failed, 1 running"
    assert [tick.run.name for tick in strip.ticks] == [
        f"#{sessions[0].pk} completed: All is well",
        f"#{sessions[1].pk} lost: Its host went away.",
        f"#{sessions[2].pk} running",
    ]
    assert [tick.run.url for tick in strip.ticks] == [f"/sessions/{session.pk}" for session in sessions]


def test_it_reads_the_index_of_an_agents_sessions():
    agents = AgentFactory.create_batch(3)
    for agent in agents[:2]:
        Session.objects.bulk_create(
            Session(agent=agent, queued_at=AT + n * timedelta(minutes=1), status=Status.COMPLETED) for n in range(400)
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
    with CaptureQueriesContext(connection) as captured:
        assert [len(found) for found in last_runs([agent.pk for agent in agents]).values()] == [20, 20]
    for query in captured.captured_queries:
        with connection.cursor() as cursor:
            explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
            cursor.execute(f"{explain} {query['sql']}")
            plan = " ".join(str(row[-1]) for row in cursor.fetchall())
        assert "sessions_agent" in plan, plan
        assert "SCAN sessions" not in plan, plan
