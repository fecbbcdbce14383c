"""Where the text of a task comes from: what a person did not type is outside text, also when it is asked for again."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils import timezone

from sessions_app.escalation import escalate
from sessions_app.models import Runner, Session, Status, Trigger
from sessions_app.queue.requests import request_again, request_session
from sessions_app.runner import launch
from sessions_app.runner.process import CannotStart
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db


def requested(trigger: str, task: str = "Disk full on nas", **fields) -> Session:
    given = {"agent": None, "by": "ann", "tier": 1, "prompt_task": task, "wake": False}
    made = request_session(trigger=trigger, **{**given, **fields})
    return Session.objects.get(pk=made.pk)


@pytest.mark.parametrize("trigger", [Trigger.API, Trigger.ALERT, Trigger.MANUAL])
def test_a_brief_that_no_person_typed_is_outside_text_and_a_note_of_a_person_is_not(trigger):
    brief = {"title": "Disk full on nas", "prohibited": ["Delete nothing"], "note": "Mind the snapshots"}
    session = requested(trigger, "", brief=brief)
    assert session.exposed_before == (["task text"] if trigger in (Trigger.API, Trigger.ALERT) else [])
    assert ("snapshots" in session.task_text) == bool(session.exposed_before)
    assert "Disk full on nas\nDelete nothing" in session.task_text


@pytest.mark.parametrize(
    ("trigger", "task", "sources"),
    [
        (Trigger.API, "Look at web", ["task text"]),
        (Trigger.ALERT, "Look at web", ["task text"]),
        (Trigger.API, "  ", []),
        (Trigger.MANUAL, "Look at web", []),
        (Trigger.SCHEDULED, "", []),
    ],
)
def test_a_task_that_no_person_typed_is_outside_text(trigger, task, sources):
    session = requested(trigger, task)
    assert session.exposed_before == session.exposed_to == sources
    assert session.exposure == ("outside" if sources else "nothing")


def test_asking_again_keeps_where_the_task_came_from():
    made = request_again(requested(Trigger.ALERT), by="ann")
    assert (made.trigger, made.exposed_to) == (Trigger.MANUAL, ["task text"])
    assert request_again(requested(Trigger.MANUAL), by="ann").exposed_to == []


def test_an_escalation_was_exposed_to_what_its_parent_read(tmp_path: Path):
    reading = {"exposure": "outside", "sources": ["task text", "logs: web"]}
    answer = {"escalation": {"needed": True, "reason": "It says to restart it"}}
    parent = SessionFactory(
        agent=AgentFactory(tier=1), status=Status.RUNNING, structured=answer, ingest_state={"reading": reading}
    )
    child = escalate(parent, tmp_path / "none.json", at=timezone.now())["child"]
    assert Session.objects.get(pk=child).exposed_to == ["task text", "logs: web"]


def test_another_attempt_begins_with_the_task_again(monkeypatch):
    session = requested(Trigger.ALERT, runner=Runner.REPLAY, stream="/none.jsonl")
    state = {**session.ingest_state, "reading": {"exposure": "outside", "sources": ["task text", "logs: web"]}}
    Session.objects.filter(pk=session.pk).update(ingest_state=state, started_at=timezone.now(), attempts=2)

    def cannot(*_args, **_named):
        raise CannotStart("no")

    monkeypatch.setattr(launch.process, "start", cannot)
    monkeypatch.setattr(launch, "command_of", lambda *_: ["true"])
    with pytest.raises(CannotStart):
        launch.launch(Session.objects.get(pk=session.pk))
    session.refresh_from_db()
    assert session.exposed_to == ["task text"]
