"""What a session of a project says of it goes into the project's memories."""

from __future__ import annotations

import logging

import pytest
from django.utils import timezone

from memories.models import Memory
from sessions_app.models import Session, Trigger
from tests.sessions_app.runner.test_ingest import a_session, feed
from tests.support.factories import ProjectFactory
from tests.support.streams import init, result, text

pytestmark = pytest.mark.django_db

SAID = "[MEMORY:warning] The importer loses rows when the file has a byte order mark"


def test_markers_and_the_structured_answer_are_stored_for_the_project():
    session = a_session(project=ProjectFactory())
    answer = {"summary": "x", "memories": [{"key": "pattern", "value": "Each migration has a test backwards"}]}
    feed(session, init(), text(f"{SAID}\n[MEMORY:timing:jellyfin] Takes 60 s"), result(structured_output=answer))
    rows = Memory.objects.order_by("category").values_list("category", "taxonomy", "project", "source", "confidence")
    assert list(rows) == [
        ("pattern", "project", session.project_id, "run", 0.5),
        ("timing", "ops", session.project_id, "run", 0.7),
        ("warning", "project", session.project_id, "run", 0.5),
    ]
    warning = Memory.objects.get(category="warning")
    assert warning.session_id == session.pk
    assert 89 <= (warning.expires_at - timezone.now()).days <= 90


def test_an_imported_log_gives_no_more_confidence_than_a_run():
    session = a_session(project=ProjectFactory())
    Session.objects.filter(pk=session.pk).update(trigger=Trigger.IMPORT)
    feed(session, init(), text(SAID))
    assert Memory.objects.get().confidence == 0.5


def test_without_a_project_they_are_not_stored_and_the_log_says_why(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("sessions_app"), "propagate", True)
    session = feed(a_session(), init(), text(SAID))
    assert not Memory.objects.exists()
    assert session.stats["unknown_categories"] == 1
    assert "'warning' was not stored: 'warning' is a category of projects, and its session has none" in caplog.text


def test_two_sessions_that_say_the_same_confirm_one_memory():
    project = ProjectFactory()
    for _ in range(2):
        feed(a_session(project=project), init(), text(SAID))
    assert Memory.objects.get().confidence == 0.6
