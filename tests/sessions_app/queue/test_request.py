"""queue.request_session: what is asked for is a row and a wake-up, or neither."""

from __future__ import annotations

import pytest
from django.db import transaction
from django_q.models import OrmQ

from sessions_app import queue
from sessions_app.errors import InvalidSession, TierDenied
from sessions_app.models import Runner, Session, Status, Trigger
from sessions_app.queue.requests import REQUESTABLE
from tests.sessions_app.queue.support import AT, snapshot, wakeups, woken
from tests.support.factories import AgentFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db


def test_a_request_becomes_a_queued_row_and_one_wakeup():
    agent = AgentFactory()
    session = queue.request_session(agent=agent, trigger="manual", by="operator", prompt_task="look at caddy", at=AT)
    row = Session.objects.get()
    assert row.pk == session.pk
    assert (row.status, row.trigger, row.requested_by, row.task) == (
        Status.QUEUED,
        Trigger.MANUAL,
        "operator",
        "look at caddy",
    )
    assert (row.queued_at, row.dispatched_at, row.hold_reason) == (AT, AT, "")
    assert wakeups() == [("sessions", session.pk)]


def test_the_row_and_its_wakeup_roll_back_together():
    with pytest.raises(RuntimeError), transaction.atomic():
        queue.request_session(agent=AgentFactory(), trigger="manual", by="operator")
        assert OrmQ.objects.count() == 1
        raise RuntimeError
    assert not Session.objects.exists()
    assert not OrmQ.objects.exists()


def test_what_is_not_given_comes_from_the_agent():
    project = ProjectFactory()
    agent = AgentFactory(tier=2, model="own-model", project=project, runner=Runner.REPLAY, replay_stream="a.jsonl")
    session = queue.request_session(agent=agent, trigger="alert", by="api:alertmanager")
    assert (session.tier, session.model, session.project, session.runner, session.replay_stream) == (
        2,
        "own-model",
        project,
        "replay",
        "a.jsonl",
    )


def test_what_neither_the_request_nor_the_agent_gives_comes_from_the_settings(settings):
    settings.CLAUDEOPS_TIER1_MODEL = "the-small-one"
    settings.CLAUDEOPS_DRY_RUN = True
    session = queue.request_session(agent=None, trigger="manual", by="operator")
    assert (session.tier, session.model, session.runner, session.dry_run) == (1, "the-small-one", "claude", True)


def test_what_is_given_beats_the_agent():
    agent = AgentFactory(tier=3, model="own-model", project=ProjectFactory())
    other = ProjectFactory()
    session = queue.request_session(
        agent=agent,
        trigger="manual",
        by="operator",
        tier=3,
        model="asked-for",
        project=other,
        runner="replay",
        stream="b.jsonl",
        dry_run=True,
    )
    assert (session.tier, session.model, session.project, session.runner, session.replay_stream, session.dry_run) == (
        3,
        "asked-for",
        other,
        "replay",
        "b.jsonl",
        True,
    )


def test_an_agents_own_model_belongs_to_its_own_tier(settings):
    settings.CLAUDEOPS_TIER2_MODEL = "the-middle-one"
    agent = AgentFactory(tier=3, model="big")
    assert queue.request_session(agent=agent, trigger="manual", by="x", tier=2).model == "the-middle-one"


@pytest.mark.parametrize("trigger", sorted(REQUESTABLE - {"escalation"}))
def test_no_request_exceeds_the_agents_tier(trigger):
    agent = AgentFactory(slug="watch", tier=1)
    with pytest.raises(InvalidSession, match="Tier 2 is above the tier of the agent watch, 1"):
        queue.request_session(agent=agent, trigger=trigger, by="x", tier=2)
    assert not Session.objects.exists()


def test_only_an_escalation_exceeds_the_agents_tier():
    agent = AgentFactory(slug="watch", tier=1)
    parent = SessionFactory(agent=agent, status=Status.ESCALATED)
    child = queue.request_session(agent=agent, trigger="escalation", by="x", tier=2, parent=parent)
    assert child.tier == 2
    child.trigger = "manual"
    with pytest.raises(InvalidSession, match="above the tier of the agent"):
        queue.request_again(child, by="x")


def test_whoever_has_a_highest_tier_requests_none_above_it():
    agent = AgentFactory(slug="watch", tier=3)
    for tier in (None, 2):
        with pytest.raises(TierDenied, match="above the highest tier of this token, 1"):
            queue.request_session(agent=agent, trigger="api", by="x", tier=tier, highest=1)
    assert queue.request_session(agent=agent, trigger="api", by="x", tier=1, highest=1).tier == 1


def test_a_house_in_dry_run_makes_no_other_session(settings):
    settings.CLAUDEOPS_DRY_RUN = True
    assert queue.request_session(agent=None, trigger="manual", by="x", dry_run=False).dry_run is True


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tier": 0}, "There is no tier 0"),
        ({"tier": 4}, "There is no tier 4"),
        ({"tier": 3}, "Tier 3 is above the highest allowed tier, 2"),
        ({"trigger": "import"}, "'import' is not a trigger"),
        ({"trigger": "whim"}, "'whim' is not a trigger"),
        ({"runner": "gemini"}, "no runner 'gemini'"),
        ({"runner": "replay"}, "A replay needs a recorded stream"),
        ({"stream": "a.jsonl"}, "does not play recorded streams"),
        ({"trigger": "escalation"}, "needs a parent session"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_and_leaves_nothing(given, says, settings):
    settings.CLAUDEOPS_MAX_TIER = 2
    with pytest.raises(InvalidSession, match=says) as refusal:
        queue.request_session(**{"agent": None, "trigger": "manual", "by": "x", **given})
    assert refusal.value.fix
    assert not Session.objects.exists()
    assert not OrmQ.objects.exists()


def test_a_request_that_has_to_wait_says_why_and_wakes_nobody():
    agent = AgentFactory(slug="watch")
    running = SessionFactory(agent=agent, status=Status.RUNNING)
    before = snapshot([running])
    session = queue.request_session(agent=agent, trigger="alert", by="x", at=AT)
    assert session.hold_reason == (
        f"Agent watch is busy with session {running.pk}; an agent runs one session at a time."
    )
    assert session.dispatched_at is None
    assert not woken()
    assert snapshot([running]) == before


def test_who_runs_a_session_in_the_foreground_wakes_no_worker_for_it():
    session = queue.request_session(agent=None, trigger="manual", by="x", wake=False, at=AT)
    queue.dispatch(at=AT)
    assert not woken()
    assert queue.claim(session.pk, host="here", at=AT) is not None


def test_an_escalation_is_asked_for_once_a_parent():
    parent = SessionFactory(agent=None, status=Status.COMPLETED)
    asked = {"agent": None, "trigger": "escalation", "by": "x", "tier": 2, "parent": parent}
    first = queue.request_session(**asked)
    assert queue.request_session(**asked).pk == first.pk
    assert Session.objects.filter(parent=parent).count() == 1
    assert woken() == [first.pk]


def test_an_actor_with_a_very_long_name_is_cut_to_what_fits():
    assert len(queue.request_session(agent=None, trigger="api", by="x" * 500).requested_by) == 150
