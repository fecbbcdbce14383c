"""What sessions and hooks leave in telemetry: one record a stage and session."""

from __future__ import annotations

import pytest
from django.utils import timezone

from memories.models import TelemetryRecord
from sessions_app import reaper
from sessions_app.hooks import last_heard_from
from sessions_app.models import Session, Status, Trigger
from sessions_app.runner import run
from sessions_app.runner.launch import inject
from tests.support.factories import AgentFactory, MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db


def test_a_session_that_is_closed_says_once_what_was_captured():
    session = SessionFactory(
        status=Status.RUNNING,
        trigger=Trigger.IMPORT,
        agent=AgentFactory(slug="watch"),
        stats={"lines": 9, "memory_markers": 3, "memories_created": 2, "memories_held": 1},
    )
    at = timezone.now()
    assert run.close(session.pk, Status.COMPLETED, "", at=at)
    assert run.close(session.pk, Status.LOST, "") is None
    captured = TelemetryRecord.objects.get(action="memory.capture.completed")
    assert (captured.key, captured.at) == (f"capture-{session.pk}", Session.objects.get().ended_at)
    assert captured.metadata == {
        "session": session.pk,
        "agent": "watch",
        "status": "completed",
        "memory_markers": 3,
        "memories_created": 2,
        "memories_held": 1,
    }


def test_an_injection_says_what_went_into_the_prompt_and_a_repeat_says_nothing():
    MemoryFactory(confidence=0.9)
    session = SessionFactory(agent=AgentFactory())
    inject(session, at=timezone.now())
    inject(session, at=timezone.now())
    injected = TelemetryRecord.objects.get(action="memory.inject.completed")
    assert (injected.metadata["included"], injected.metadata["session"]) == (1, session.pk)


def test_a_reaper_with_nothing_to_reap_is_quiet():
    reaper.reap()
    assert not TelemetryRecord.objects.exists()


def test_a_session_without_a_follower_is_reaped_with_a_record():
    SessionFactory(status=Status.RUNNING, attempts=reaper.MOST_ATTEMPTS, trigger=Trigger.IMPORT, heartbeat_at=None)
    reaper.reap(source="schedule")
    reaped = TelemetryRecord.objects.get(action="sessions.reap.completed")
    assert (reaped.level, reaped.source, reaped.metadata["failed"]) == ("warning", "schedule", 1)


def test_a_hook_says_whether_its_problem_is_noted_now():
    at = timezone.now()
    key = ("Stop", "installation of this test")
    assert [last_heard_from.note(key, problem, at=at) for problem in ("", "no", "no", "")] == [
        False,
        True,
        False,
        False,
    ]
