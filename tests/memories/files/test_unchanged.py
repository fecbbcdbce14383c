"""A sync of a project looks only at the files that may have changed, and misses none of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.files import conflicts
from memories.files.sync import sync_file, sync_project
from memories.files.unchanged import unchanged
from memories.lifecycle import disagreements, verbs
from memories.models import AgentFile, AgentFileConflict, Disagreement, Memory, Project
from tests.memories.files.conftest import Repository
from tests.support.factories import MemoryFactory

Learn = Callable[..., Memory]

QUEUE, SUITE = "Tests need the queue", "The suite takes 4 minutes"


def looked_at(project: Project) -> set[str]:
    """The agents whose files the next sync compares."""
    files = list(AgentFile.objects.filter(project=project).select_related("project"))
    quiet = unchanged(project, files)
    return {file.agent for file in files if file.pk not in quiet}


@pytest.fixture
def settled(project: Project, repository: Repository, learn: Learn) -> Memory:
    """Two files in step; the memory of the first one."""
    memory = learn(QUEUE)
    learn(SUITE, "learning", agent="engineer")
    for _ in range(2):
        sync_project(project)
    assert looked_at(project) == set()
    return memory


def test_a_file_that_a_person_saved_is_looked_at(project: Project, repository: Repository, settled: Memory) -> None:
    repository.change(QUEUE, "Tests need the mailer")
    assert looked_at(project) == {"research"}
    sync_project(project)
    settled.refresh_from_db()
    assert settled.observation == "Tests need the mailer"


def test_a_file_that_is_gone_is_looked_at(project: Project, repository: Repository, settled: Memory) -> None:
    repository.file().unlink()
    assert looked_at(project) == {"research"}


@pytest.mark.parametrize(
    "change",
    [
        lambda memory: verbs.edit(memory, by="operator", observation="Tests need the mailer"),
        lambda memory: verbs.deactivate(memory, by="operator"),
        lambda memory: verbs.set_confidence(memory, 0.4, by="operator"),
        lambda memory: verbs.delete(memory, by="operator"),
    ],
)
def test_a_file_of_which_a_memory_changed_is_looked_at(
    project: Project, settled: Memory, change: Callable[[Memory], object]
) -> None:
    change(settled)
    assert looked_at(project) == {"research"}
    for _ in range(2):
        sync_project(project)
    assert looked_at(project) == set()


def test_a_new_memory_and_a_new_agent_are_looked_at(
    project: Project, repository: Repository, settled: Memory, learn: Learn
) -> None:
    learn("The cache is warm after 30 s", agent="engineer")
    learn("Deploy on Mondays", agent="ops")
    assert looked_at(project) == {"engineer"}
    assert {one.agent: one.changed for one in sync_project(project)} == {
        "engineer": True,
        "ops": True,
        "research": False,
    }
    assert "Deploy on Mondays" in repository.text("ops")


def test_a_waiting_line_is_looked_at_until_it_is_committed(
    project: Project, repository: Repository, settled: Memory
) -> None:
    repository.change(f"- {QUEUE}\n", f"- {QUEUE}\n- The token of the queue is in the vault\n")
    for _ in range(2):
        sync_project(project)
    assert looked_at(project) == {"research"}
    repository.commit()
    for _ in range(2):
        sync_project(project)
    assert looked_at(project) == set()
    assert Memory.objects.unconfirmed().count() == 0


def test_an_open_conflict_and_one_that_was_answered_are_looked_at(
    project: Project, repository: Repository, settled: Memory
) -> None:
    repository.change(QUEUE, "Tests need the queue and the mailer")
    verbs.edit(settled, by="operator", observation="Tests need the queue and redis")
    sync_project(project)
    assert looked_at(project) == {"research"}
    conflicts.answer(AgentFileConflict.objects.get(), "other", by="operator")
    assert looked_at(project) == {"research"}
    for _ in range(2):
        sync_project(project)
    assert looked_at(project) == set()
    assert "- Tests need the queue and redis\n" in repository.text()


def test_a_contradiction_that_was_answered_elsewhere_is_looked_at(
    project: Project, repository: Repository, settled: Memory, learn: Learn
) -> None:
    learn("The suite takes 4 minutes on two workers", "performance")
    sync_project(project)
    learn("The suite takes 9 minutes on two workers", "performance")
    sync_project(project)
    assert "9 minutes" not in repository.text()
    disagreements.answer(Disagreement.objects.get(), "both", by="operator")
    for _ in range(2):
        sync_project(project)
    assert "9 minutes" in repository.text()
    assert looked_at(project) == set()


def test_a_folder_or_pattern_that_changed_is_looked_at(project: Project, settled: Memory) -> None:
    project.files_folder = "docs/agents"
    project.save()
    assert looked_at(project) == {"engineer", "research"}


def test_a_problem_is_looked_at_until_it_is_solved(project: Project, settled: Memory) -> None:
    AgentFile.objects.filter(agent="research").update(problem="The sync before session 7 failed")
    assert looked_at(project) == {"research"}
    assert sync_file(project, "research").problem == ""
    assert looked_at(project) == set()


def test_a_file_that_is_off_is_left_alone(project: Project, settled: Memory) -> None:
    AgentFile.objects.filter(agent="research").update(enabled=False)
    verbs.deactivate(settled, by="operator")
    assert [one.changed for one in sync_project(project)] == [False, False]
    assert AgentFile.objects.get(agent="research").entries.count() == 1


def test_the_number_of_queries_is_the_same_for_more_files(project: Project, settled: Memory, learn: Learn) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            sync_project(project)
        return len(captured)

    before = queries()
    for number in range(10):
        learn(f"Part {number} needs the queue", agent=f"agent_{number}")
    for _ in range(2):
        sync_project(project)
    assert queries() == before <= 10


def test_the_number_of_queries_is_the_same_for_more_new_lines(
    project: Project, repository: Repository, settled: Memory
) -> None:
    def queries(agent: str, count: int) -> int:
        for number in range(count):
            MemoryFactory(
                taxonomy="agent",
                project=project,
                agent=agent,
                category="pattern",
                service=None,
                observation=f"Part {number} of {agent} is ready",
            )
        with CaptureQueriesContext(connection) as captured:
            done = sync_file(project, agent, create=True)
        assert done.state == "ok"
        return len(captured)

    assert queries("one", 5) == queries("two", 12)
    assert queries("three", 20) == queries("four", 40), "those without room, too"
