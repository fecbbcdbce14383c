"""The effect of an agent's file: the groups of sessions, how much is chance, mistakes that came back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from claudeops.features.agent_files.effect import Effect, Group, came_back, chance, effect_of
from memories import store
from memories.capture.statement import Provenance, Statement
from memories.files.sync import sync_file
from memories.models import AgentFile, Memory, Project
from sessions_app.models import Agent, InjectionReceipt
from tests.support.factories import AgentFactory, SessionFactory

Learn = Callable[..., Memory]


def group(sessions: int, completed: int) -> Group:
    return Group(sessions, completed, None, None)


def test_the_difference_stands_beside_what_chance_explains() -> None:
    small, large = Effect(group(46, 43), group(44, 36)), Effect(group(460, 430), group(440, 360))
    assert (small.points, small.chance, small.is_chance) == (11, 14, True)
    assert (large.points, large.chance, large.is_chance) == (11, 4, False)
    assert not Effect(group(46, 43), group(4, 0)).is_enough


def test_shares_of_none_and_all_are_not_taken_for_certain() -> None:
    assert chance(5, 5, 0, 5) > 30


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_chance_is_between_nothing_and_all_and_the_same_for_both_orders(a: int, b: int, c: int, d: int) -> None:
    found = chance(min(a, b), max(a, b), min(c, d), max(c, d))
    assert 0 < found <= 100
    assert found == pytest.approx(chance(min(c, d), max(c, d), min(a, b), max(a, b)))


@pytest.fixture
def file(project: Project, learn: Learn) -> AgentFile:
    learn("Do not wait for a lock")
    sync_file(project, "research", create=True)
    return AgentFile.objects.get()


@pytest.fixture
def agent(project: Project) -> Agent:
    return AgentFactory(slug="research-agent", project=project)


def test_sessions_are_told_when_their_receipt_has_a_text_of_the_file(
    project: Project, file: AgentFile, agent: Agent
) -> None:
    now = timezone.now()
    for n in range(12):
        session = SessionFactory(
            agent=agent,
            project=project,
            status="failed" if n in (0, 7) else "completed",
            queued_at=now - timedelta(days=n),
            duration_ms=1_000 * n,
            cost_usd=Decimal(n),
        )
        if n < 6:
            part = {"file": file.pk, "tokens": 40} if n < 5 else {"file": file.pk, "tokens": 0}
            InjectionReceipt.objects.create(session=session, sha256="x", budget=1, tokens=1, agent_file=part)
    SessionFactory(agent=agent, project=project, queued_at=now - timedelta(days=91))
    SessionFactory(agent=AgentFactory(slug="qa"), project=project, queued_at=now)
    found = effect_of(file, [agent], now)
    assert (found.told.sessions, found.told.completed, found.told.percent) == (5, 4, 80)
    assert (found.others.sessions, found.others.completed) == (7, 6)
    assert (found.told.seconds, found.told.cost) == (2.5, Decimal(2))


def test_a_mistake_that_a_later_session_states_again_came_back(project: Project, file: AgentFile, agent: Agent) -> None:
    sessions = [SessionFactory(agent=agent, project=project) for _ in range(2)]
    assert came_back(file.entries.select_related("memory")) == []
    for session in (*sessions, sessions[1]):
        store.remember(
            Statement("mistake", "Do not wait for a lock", taxonomy="agent"),
            Provenance("run", "agent:research", project_id=project.pk, agent="research", session_id=session.pk),
        )
    (found,) = came_back(file.entries.select_related("memory"))
    assert (found.memory.observation, found.times, found.session) == ("Do not wait for a lock", 2, sessions[1].pk)
