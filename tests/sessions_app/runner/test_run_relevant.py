"""What a session is about reaches its prompt: what its task speaks of comes first, and the receipt says which."""

from __future__ import annotations

import pytest

from memories.models import Recalled
from sessions_app import queue
from sessions_app.models import Runner, Session, Status, Trigger
from sessions_app.runner.run import run_session
from tests.memories.people import signed_in
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory
from tests.support.streams import init, result, text, write

pytestmark = pytest.mark.django_db(transaction=True)

ALERT = "ALERT: WireGuard tunnel wg0 on the gateway has dropped all peers"
ESCALATION = {"summary": "It is down.", "escalation": {"needed": True, "reason": "it is down", "context": "since 2"}}


@pytest.fixture
def agent(tmp_path):
    stream = write(tmp_path / "stream.jsonl", init(), text("All well."), result())
    return AgentFactory(slug="watcher", runner=Runner.REPLAY, replay_stream=str(stream), project=ProjectFactory())


@pytest.fixture
def known(agent):
    """Much that is surer, and two memories that the alert speaks of; and one of another project that does, too."""
    MemoryFactory.create_batch(12, confidence=0.95)
    about = [
        MemoryFactory(observation="The tunnel wg0 drops peers when the clock is off", service="vpn", confidence=0.6),
        MemoryFactory(
            observation="Restart of wg0 takes a minute", service="vpn", confidence=0.6, project=agent.project
        ),
    ]
    MemoryFactory(observation="The tunnel wg0 of others drops peers", project=ProjectFactory(), confidence=0.9)
    return {memory.pk for memory in about}


def told(session: Session) -> list[tuple[int, str]]:
    session.refresh_from_db()
    assert session.status == Status.COMPLETED, session.status_reason
    return [(entry["id"], entry["reason"].split(":")[0]) for entry in session.receipt.included]


@pytest.mark.parametrize("trigger", [Trigger.MANUAL, Trigger.ALERT, Trigger.API])
def test_what_the_task_speaks_of_comes_first_and_the_receipt_says_which_brought_each(trigger, agent, known):
    session = queue.request_session(agent=agent, trigger=trigger, by="anna", prompt_task=ALERT, wake=False)
    run_session(session.pk)
    entries = told(session)
    assert {pk for pk, why in entries if why == "relevant to the task"} == known
    assert {pk for pk, _ in entries[:2]} == known
    assert [why for _, why in entries[2:]] == ["by confidence"] * 12
    lines = [line for line in session.injected_text.splitlines() if "confidence:" in line]
    assert len(lines) == 14
    assert sum("wg0" in line for line in lines) == 2
    kept = Recalled.objects.get()
    assert (kept.surface, kept.actor, kept.session_id) == ("injection", "agent:watcher", session.pk)
    assert {pk for pk, _ in kept.hits} >= known
    page = signed_in("viewer").get(f"/sessions/{session.pk}?tab=injected").content.decode()
    assert page.count('<span class="tag tag-info">task</span>') == len(known)


def test_where_room_is_short_what_the_task_speaks_of_has_it(agent, known, settings):
    settings.CLAUDEOPS_MEMORY_BUDGET = 200
    session = queue.request_session(agent=agent, trigger=Trigger.ALERT, by="grafana", prompt_task=ALERT, wake=False)
    run_session(session.pk)
    entries = told(session)
    assert {pk for pk, _ in entries} >= known
    assert len(entries) < 14


def test_a_schedule_has_no_text_so_the_surest_come_alone(agent, known):
    session = queue.request_session(agent=agent, trigger=Trigger.SCHEDULED, by="schedule", wake=False)
    run_session(session.pk)
    assert {why for _, why in told(session)} == {""}
    assert not Recalled.objects.exists()


def test_the_same_task_twice_gives_the_same_bytes(agent, known):
    texts = []
    for _ in range(2):
        session = queue.request_session(agent=agent, trigger=Trigger.ALERT, by="grafana", prompt_task=ALERT, wake=False)
        run_session(session.pk)
        told(session)
        texts.append(session.injected_text)
    assert texts[0] == texts[1]


def test_an_escalation_is_about_the_same_task(agent, known, tmp_path):
    first = write(tmp_path / "first.jsonl", init(), result(structured_output=ESCALATION))
    asked = queue.request_session(
        agent=agent, trigger=Trigger.ALERT, by="grafana", prompt_task=ALERT, stream=str(first), wake=False
    )
    run_session(asked.pk)
    child = Session.objects.get(parent=asked)
    run_session(child.pk)
    assert {pk for pk, why in told(child) if why == "relevant to the task"} == known
