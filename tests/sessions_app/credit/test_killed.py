"""A worker that is really killed on its way from a session's close to what the session teaches: all counts once."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from memories.models import Change, Memory, MemoryChange, Project
from sessions_app import reaper, tasks
from sessions_app.credit.facts import counts_of
from sessions_app.models import Session, Status, UsedMemory
from tests.sessions_app.learning.test_lessons import ERROR, TEXT, a_run
from tests.support.factories import MemoryFactory, ProjectFactory
from tests.support.processes import call, killed, wait_for
from tests.support.streams import init, result, text, tool_result, tool_use, write
from tests.support.thorough import one_of

pytestmark = pytest.mark.django_db(transaction=True)

CLOSE, CREDIT, LEARN = "sessions_app.runner.run", "sessions_app.credit.outcome", "sessions_app.learning"


@pytest.fixture
def project() -> Project:
    """A project with two failed runs; a third with the same error makes a lesson."""
    project = ProjectFactory(slug="importer")
    for _ in range(2):
        a_run(project)
    return project


@pytest.fixture
def memory(project) -> Memory:
    return MemoryFactory(project=project, taxonomy="project", category="pattern", service=None, confidence=0.5)


@pytest.fixture
def stream(memory, tmp_path) -> Path:
    """A run that uses the memory and fails."""
    said = [text(f"As [m{memory.pk}] says."), tool_use("pytest -q"), tool_result(ERROR, is_error=True)]
    return write(tmp_path / "stream.jsonl", init(), *said, result(subtype="error_max_turns", is_error=True))


def run(stream: Path) -> str:
    arguments = ["session", "run", "--project", "importer", "--stream", str(stream)]
    return f"from django.core.management import call_command; call_command(*{arguments!r})"


def waiting() -> list[int]:
    """The projects that wait for a worker that learns."""
    return [
        row.task["args"][0] for row in OrmQ.objects.order_by("id") if row.task["func"] == "sessions_app.tasks.learn"
    ]


def what_the_next_worker_does() -> None:
    session = Session.objects.latest("pk")
    wait_for(lambda: reaper.process_of(session) is None)
    reaper.reap(at=max(timezone.now(), session.heartbeat_at or timezone.now()) + reaper.STALE * 2)
    for project_id in waiting():
        tasks.learn(project_id)


def expect_everything_once(memory: Memory) -> None:
    session = Session.objects.latest("pk")
    assert session.status == Status.FAILED, session.status_reason
    assert UsedMemory.objects.get().helped is False
    assert counts_of([memory.pk]) == {memory.pk: (1, 0)}
    credit = MemoryChange.objects.get(kind=Change.CREDITED)
    assert (credit.memory_id, credit.session_id) == (memory.pk, session.pk)
    memory.refresh_from_db()
    assert memory.confidence == 0.4
    lesson = Memory.objects.get(observation=TEXT)
    assert (lesson.confidence, MemoryChange.objects.get(memory=lesson).kind) == (0.3, Change.CREATED)


@pytest.mark.parametrize(
    ("event", "module", "function"),
    one_of(
        [
            pytest.param("return", CREDIT, "note_injected", id="before it is closed"),
            pytest.param("call", CREDIT, "settle_safely", id="between its close and its credit"),
            pytest.param("call", "memories.lifecycle.credit", "credit", id="in the middle of its credit"),
            pytest.param("return", CREDIT, "settle_safely", id="between its credit and what it teaches"),
            pytest.param("return", CLOSE, "close", id="before anybody learns from it"),
        ]
    ),
)
def test_a_session_whose_worker_is_killed_counts_once(memory, stream, event, module, function):
    killed(run(stream), event, module, function)
    for _ in range(2):
        what_the_next_worker_does()
    expect_everything_once(memory)


@pytest.mark.parametrize(
    ("event", "module", "function"),
    one_of(
        [
            pytest.param("call", "memories.store", "remember", id="before the lesson is stored"),
            pytest.param("return", LEARN, "_store", id="after it"),
        ]
    ),
)
def test_a_lesson_whose_worker_is_killed_is_stored_once(project, memory, stream, event, module, function):
    call(run(stream)).communicate()
    assert waiting() == [project.pk]
    killed(f"from sessions_app import tasks; tasks.learn({project.pk})", event, module, function)
    for _ in range(2):
        what_the_next_worker_does()
    expect_everything_once(memory)
