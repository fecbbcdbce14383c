"""What is usual for an agent: medians, of which sessions, through which index."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.models import Status
from sessions_app.queries.usual import RUNS, Ran, Usual, completed_before, medians, usual_for
from tests.claudeops.test_plans import assert_served, no_way_around  # noqa: F401
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db


def ran(pk: int, duration_ms: int = 1000, num_turns: int = 1, cost: str = "0.01") -> Ran:
    return Ran(pk, None, duration_ms, num_turns, Decimal(cost))


def test_of_nothing_nothing_is_usual():
    assert medians([]) == Usual()


def test_the_median_of_an_odd_number_is_the_middle_one_and_of_an_even_one_between_two():
    odd = medians([ran(3, 30_000, 3, "0.03"), ran(2, 10_000, 9, "0.01"), ran(1, 20_000, 5, "0.09")])
    assert (odd.duration_ms, odd.num_turns, odd.cost_usd, odd.runs) == (20_000, 5, Decimal("0.03"), 3)
    even = medians([ran(2, 10_000, 4, "0.02"), ran(1, 20_000, 7, "0.04")])
    assert (even.duration_ms, even.num_turns, even.cost_usd) == (15_000, 6, Decimal("0.03"))


def test_a_run_that_states_no_duration_or_turns_does_not_count_for_them():
    usual = medians([ran(2, 0, 0, "0"), ran(1, 10_000, 4, "0.02")])
    assert (usual.duration_ms, usual.num_turns, usual.cost_usd) == (10_000, 4, Decimal("0.01"))
    assert medians([ran(1, 0, 0)]).duration_ms is None


@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 500), st.decimals(0, 99, places=4)), min_size=1))
def test_a_median_lies_among_its_values(rows):
    usual = medians([ran(n, *row) for n, row in enumerate(rows)])
    for found, values in zip(
        (usual.duration_ms, usual.num_turns, usual.cost_usd), zip(*rows, strict=True), strict=True
    ):
        assert min(values) <= found <= max(values)


@pytest.mark.django_db
def test_only_completed_sessions_of_the_agent_before_it_count_and_of_these_the_last_ones():
    agent, now = AgentFactory(), timezone.now()
    for number in range(RUNS + 5):  # the oldest ones took far longer
        took = 500_000 if number >= RUNS else 10_000
        SessionFactory(agent=agent, duration_ms=took, queued_at=now - timedelta(hours=number + 1))
    SessionFactory(agent=agent, duration_ms=1, status=Status.FAILED, queued_at=now - timedelta(minutes=9))
    SessionFactory(duration_ms=1, queued_at=now - timedelta(minutes=9))
    session = SessionFactory(agent=agent, duration_ms=1, queued_at=now)
    SessionFactory(agent=agent, duration_ms=1, queued_at=now + timedelta(minutes=1))
    with CaptureQueriesContext(connection) as asked:
        usual = usual_for(session)
    assert len(asked) == 1
    assert (usual.runs, usual.duration_ms) == (RUNS, 10_000)
    assert usual.last is not None
    assert usual.last.pk == completed_before(session).first().pk


@pytest.mark.django_db
def test_a_session_without_an_agent_has_nothing_usual():
    SessionFactory(agent=None)
    assert usual_for(SessionFactory(agent=None)) == Usual()


@pytest.mark.django_db
def test_the_last_good_runs_are_read_through_their_own_index():
    session = SessionFactory()
    plan = completed_before(session)[:RUNS].explain()
    assert_served(plan, "sessions")
    if connection.vendor == "sqlite":
        assert "sessions_completed" in plan
