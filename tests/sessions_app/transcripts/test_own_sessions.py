"""A session of ours is observed when it ends, from its raw log, once."""

from __future__ import annotations

import pytest
from django.conf import settings
from django_q.models import OrmQ

from memories.models import Transcript, TranscriptPart
from sessions_app import tasks
from sessions_app.models import Session, Status, Trigger
from sessions_app.queue.tasks import OBSERVE_SESSION
from sessions_app.runner.raw_log import sessions_folder
from sessions_app.runner.run import close
from sessions_app.transcripts.turns import turns_of
from tests.support import streams
from tests.support.factories import ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db

KEY = "sk-ant-api03-" + "abcdefghijklmnopqrstuvwxyz0123456789" * 2


@pytest.fixture(autouse=True)
def data(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path


def running(*lines, **fields):
    host = settings.CLAUDEOPS_HOST
    session = SessionFactory(status=Status.RUNNING, cli_session_id=streams.SESSION, host=host, **fields)
    path = sessions_folder() / "2026-05" / str(session.uuid) / "stdout-1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(lines or [streams.init(), streams.text("All well"), streams.result()]))
    session.log_file = str(path.relative_to(sessions_folder().parent))
    session.save()
    return session


def asked():
    return [row.task["args"][0] for row in OrmQ.objects.all() if row.task["func"] == OBSERVE_SESSION]


def test_a_session_that_ended_is_taken_in_with_its_project_and_agent():
    project = ProjectFactory()
    session = running(project=project)
    close(session.pk, Status.COMPLETED, "")
    assert asked() == [session.pk]
    for _ in range(2):
        tasks.observe_session(session.pk)
    found = Transcript.objects.get()
    assert (found.session, found.project, found.agent) == (session, project, session.agent.slug)
    assert (found.arrived_by, found.source_name) == ("session", f"session-{session.pk}")
    assert found.ended_at is not None
    assert TranscriptPart.objects.count() == 1


@pytest.mark.parametrize("status", [Status.FAILED, Status.STOPPED, Status.TIMED_OUT, Status.LOST])
def test_each_end_is_observed(status):
    session = running()
    close(session.pk, status, "")
    assert asked() == [session.pk]


def test_nothing_is_asked_for_while_observation_is_off(settings):
    settings.CLAUDEOPS_OBSERVE = False
    close(running().pk, Status.COMPLETED, "")
    assert asked() == []


def test_dry_runs_imports_and_projects_that_are_not_observed_are_left_out():
    for fields in ({"dry_run": True}, {"trigger": Trigger.IMPORT}, {"project": ProjectFactory(observed=False)}):
        session = running(**fields)
        close(session.pk, Status.COMPLETED, "")
    assert asked() == []
    tasks.observe_session(Session.objects.get(dry_run=True).pk)
    assert not Transcript.objects.exists()


def test_a_session_without_words_of_its_agent_leaves_nothing():
    session = running(streams.init(), streams.tool_use(), streams.tool_result("3 up"), streams.result("Error"))
    close(session.pk, Status.FAILED, "")
    tasks.observe_session(session.pk)
    assert not Transcript.objects.exists()


def test_a_session_that_runs_or_was_deleted_is_left_alone():
    session = running()
    assert "has not ended" in tasks.observe_session(session.pk)
    session.delete()
    assert tasks.observe_session(session.pk) == "gone"
    assert not Transcript.objects.exists()


def test_a_credential_in_its_log_does_not_leave_the_reader():
    session = running(streams.init(), streams.text(f"The key is {KEY}"), streams.result())
    close(session.pk, Status.COMPLETED, "")
    tasks.observe_session(session.pk)
    part = TranscriptPart.objects.get()
    assert "The key is" in repr(turns_of(part)) and KEY not in repr(turns_of(part))


def test_a_close_that_is_rolled_back_asks_for_nothing():
    session = running()
    Session.objects.update(status=Status.COMPLETED)
    assert close(session.pk, Status.FAILED, "") is None
    assert asked() == []


def test_the_parts_of_a_session_that_was_deleted_are_not_read_as_those_of_a_person():
    session = running(streams.init(), streams.user("typed by nobody"), streams.text("All well"))
    close(session.pk, Status.COMPLETED, "")
    tasks.observe_session(session.pk)
    session.delete()
    assert turns_of(TranscriptPart.objects.get()).missing == "its session was deleted"
