"""When agent files are synced: before a prompt is composed, after each session of the project, every five minutes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from memories.files import sync
from memories.models import AgentFile, FileState, Memory, Project
from sessions_app import queue, tasks
from sessions_app.models import Runner, Session, Status, Trigger, WorkerHeartbeat
from sessions_app.queue.tasks import SYNC, SYNC_HERE
from sessions_app.runner import launch
from sessions_app.runner.run import close, run_session
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory
from tests.support.streams import init, result, text, write

pytestmark = pytest.mark.django_db(transaction=True)

LEARNED = "The importer needs the queue"


@pytest.fixture
def project(tmp_path) -> Project:
    (tmp_path / "shop").mkdir()
    return ProjectFactory(slug="shop", path=str(tmp_path / "shop"))


@pytest.fixture
def agent(project, tmp_path):
    stream = write(tmp_path / "stream.jsonl", init(), text("All well."), result())
    return AgentFactory(slug="data-engineer", runner=Runner.REPLAY, replay_stream=str(stream), project=project)


def file_of(project: Project) -> Path:
    return Path(project.path) / ".claude-mpm/memories/data_engineer_agent.md"


def run(agent) -> Session:
    session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by="anna", prompt_task="Look.", wake=False)
    run_session(session.pk)
    session.refresh_from_db()
    return session


def queued(function: str) -> list[tuple[str, tuple]]:
    return [(row.key, row.task["args"]) for row in OrmQ.objects.order_by("id") if row.task["func"] == function]


def a_host(name: str, cluster: str = "default") -> None:
    WorkerHeartbeat.objects.create(host=name, cluster=cluster, pid=7, beat_at=timezone.now())


def test_the_first_session_of_an_agent_makes_its_file_with_empty_sections(agent, project):
    assert run(agent).status == Status.COMPLETED
    made = file_of(project).read_text()
    assert made.startswith("# Data Engineer Memory - shop\n")
    assert "\n- " not in made
    assert AgentFile.objects.get().state == FileState.OK


def test_what_a_person_saved_and_what_was_learned_elsewhere_is_in_the_next_prompt(agent, project):
    run(agent)
    MemoryFactory(
        observation=LEARNED, taxonomy="agent", category="mistake", agent="data_engineer", project=project, service=None
    )
    made = file_of(project).read_text()
    heading = next(row for row in made.splitlines() if row.startswith("## Performance"))
    file_of(project).write_text(made.replace(heading, f"{heading}\n- The suite takes 4 minutes"))
    session = run(agent)
    assert "- The suite takes 4 minutes" in session.prompt
    assert f"- {LEARNED}" in session.prompt
    assert f"- {LEARNED}\n" in file_of(project).read_text()


def test_a_file_that_cannot_be_read_stops_no_session_and_says_so(agent, project):
    file_of(project).parent.mkdir(parents=True)
    file_of(project).write_bytes(b"- a\x00\n")
    assert run(agent).status == Status.COMPLETED
    file = AgentFile.objects.get()
    assert file.state == FileState.UNREADABLE
    assert "NUL bytes" in file.problem
    assert file_of(project).read_bytes() == b"- a\x00\n"


def test_a_sync_that_fails_stops_no_session_and_is_the_file_s_problem(agent, project, monkeypatch, caplog):
    run(agent)

    def fail(*arguments: object, **named: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(launch, "sync_file", fail)
    session = run(agent)
    assert session.status == Status.COMPLETED
    assert AgentFile.objects.get().problem == f"The sync before session {session.pk} failed: division by zero"
    assert "could not be synced" in caplog.text


def test_a_session_without_a_repository_or_an_agent_makes_no_file(agent, project):
    Project.objects.update(path="")
    assert run(agent).status == Status.COMPLETED
    assert not AgentFile.objects.exists()


@pytest.mark.parametrize(
    ("cluster", "address"), [("default", "default@nuc-1"), ("sessions", "sessions@nuc-1"), ("", "default")]
)
def test_a_session_that_ends_has_the_files_of_its_project_synced_on_its_host(project, cluster, address):
    if cluster:
        a_host("nuc-1", cluster)
    session = SessionFactory(status=Status.RUNNING, project=project, host="nuc-1", started_at=timezone.now())
    close(session.pk, Status.FAILED, "It failed.")
    assert queued(SYNC) == [(address, (project.pk,))]


def test_a_session_without_a_repository_and_an_import_have_nothing_synced(project):
    for fields in ({"project": None}, {"project": ProjectFactory()}, {"project": project, "trigger": Trigger.IMPORT}):
        session = SessionFactory(status=Status.RUNNING, started_at=timezone.now(), **fields)
        close(session.pk, Status.COMPLETED, "It ended.")
    assert queued(SYNC) == []


def test_a_close_that_is_rolled_back_has_nothing_synced(project, monkeypatch):
    session = SessionFactory(status=Status.RUNNING, project=project, started_at=timezone.now())
    Session.objects.filter(pk=session.pk).update(status=Status.STOPPED)
    assert close(session.pk, Status.COMPLETED, "It ended.") is None
    assert queued(SYNC) == []


def test_every_five_minutes_all_projects_are_synced_and_the_other_hosts_are_asked(project, settings):
    a_host(settings.CLAUDEOPS_HOST), a_host("nuc-2"), a_host("nuc-2", "sessions")
    MemoryFactory(taxonomy="agent", category="mistake", agent="data_engineer", project=project, service=None)
    tasks.sync_files()
    assert file_of(project).exists()
    assert queued(SYNC_HERE) == [("default@nuc-2", ())]


def test_a_repository_that_is_missing_may_be_on_another_host_when_there_is_one(project):
    MemoryFactory(taxonomy="agent", category="mistake", agent="data_engineer", project=project, service=None)
    tasks.sync_files()
    Path(project.path).rename(f"{project.path}-elsewhere")
    a_host("nuc-2")
    tasks.sync_files()
    assert AgentFile.objects.get().state == FileState.OK
    WorkerHeartbeat.objects.update(beat_at=timezone.now() - timedelta(hours=1))
    tasks.sync_files()
    assert AgentFile.objects.get().state == FileState.NO_REPOSITORY


def test_a_project_that_cannot_be_synced_holds_up_no_other_and_fails_the_task(project, monkeypatch, tmp_path):
    (tmp_path / "broken").mkdir()
    broken = ProjectFactory(slug="broken", path=str(tmp_path / "broken"))
    MemoryFactory(taxonomy="agent", category="mistake", agent="data_engineer", project=project, service=None)
    sync_project = sync.sync_project

    def fail(one: Project) -> list[sync.Synced]:
        if one == broken:
            raise ZeroDivisionError("division by zero")
        return sync_project(one)

    monkeypatch.setattr(tasks, "sync_project", fail)
    with pytest.raises(RuntimeError, match=rf"projects \[{broken.pk}\]"):
        tasks.sync_files()
    assert file_of(project).exists()


def test_a_task_for_a_project_that_is_gone_does_nothing():
    tasks.sync_files_of(4711)
    assert not Memory.objects.exists()
