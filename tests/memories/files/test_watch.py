"""Watching: what a person saves, and what changes in the memories, is noticed; nothing outside of a repository is."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import OperationalError

from memories.files.watch import Watcher, folders, has_projects, is_watched, lock_path
from memories.lifecycle import verbs
from memories.models import Project
from tests.support.factories import MemoryFactory, ProjectFactory
from tests.support.processes import call, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 30.0


class Synced:
    """Records the projects that are synced, and does the next of `steps` after each."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.projects: list[str] = []
        self.steps = list(steps)
        self.until = time.monotonic() + PATIENCE

    def __call__(self, project: Project) -> None:
        self.projects.append(project.slug)
        if self.steps:
            self.steps.pop(0)()

    def watch(self, count: int) -> list[str]:
        """Watch until `count` projects were synced, and return their slugs."""

        def stopped() -> bool:
            assert time.monotonic() < self.until, f"synced {self.projects} only"
            return len(self.projects) >= count

        Watcher(self, look_every=0.1, stopped=stopped).run()
        return self.projects


@pytest.fixture
def project(tmp_path) -> Project:
    return a_project(tmp_path, "homelab")


def a_project(tmp_path: Path, slug: str) -> Project:
    folder = tmp_path / slug / ".claude-mpm/memories"
    folder.mkdir(parents=True)
    return ProjectFactory(slug=slug, path=str(tmp_path / slug))


def file_of(project: Project, name: str = "research_agent.md") -> Path:
    return Path(project.path) / project.files_folder / name


def test_every_project_is_synced_when_watching_begins_and_one_whose_file_is_saved_again(project, tmp_path):
    a_project(tmp_path, "website")
    synced = Synced(lambda: None, lambda: file_of(project).write_text("- a\n"))
    assert synced.watch(3) == ["homelab", "website", "homelab"]


def test_a_file_of_an_agent_in_a_folder_of_its_own_is_noticed(project):
    def save() -> None:
        file_of(project, "research").mkdir()
        file_of(project, "research/MEMORY.md").write_text("- a\n")

    assert Synced(save).watch(2) == ["homelab", "homelab"]


def test_an_editor_that_renames_is_noticed(project):
    file_of(project).write_text("- a\n")

    def save() -> None:
        file_of(project, ".research.swp").write_text("- b\n")
        file_of(project, ".research.swp").replace(file_of(project))

    assert Synced(save).watch(2) == ["homelab", "homelab"]


def test_other_files_in_the_folder_are_left_alone(project, tmp_path):
    website = a_project(tmp_path, "website")

    def save() -> None:
        file_of(project, "notes.txt").write_text("a")
        file_of(website).write_text("- a\n")

    assert Synced(lambda: None, save).watch(3) == ["homelab", "website", "website"]


def test_a_new_project_and_a_new_folder_are_picked_up(project, tmp_path):
    (tmp_path / "late").mkdir()
    late = ProjectFactory(slug="late", path=str(tmp_path / "late"))
    steps = [lambda: a_project(tmp_path, "website"), lambda: file_of(late).parent.mkdir(parents=True)]
    assert Synced(*steps).watch(3) == ["homelab", "website", "late"]


def test_a_folder_that_another_one_replaced_is_watched(project):
    def replace() -> None:
        shutil.rmtree(file_of(project).parent)
        file_of(project).parent.mkdir()

    synced = Synced(replace, lambda: file_of(project).write_text("- a\n"))
    assert synced.watch(3) == ["homelab"] * 3


def test_a_changed_memory_of_an_agent_is_noticed_and_one_of_another_taxonomy_is_not(project, tmp_path):
    website = a_project(tmp_path, "website")
    ours = MemoryFactory(taxonomy="agent", category="pattern", agent="research", project=project, service=None)
    other = MemoryFactory(taxonomy="project", category="pattern", project=website, service=None)

    def change() -> None:
        verbs.deactivate(other.pk, by="operator")
        verbs.deactivate(ours.pk, by="operator")

    assert Synced(lambda: None, change).watch(3) == ["homelab", "website", "homelab"]


def test_a_sync_that_fails_is_logged_and_the_others_go_on(project, tmp_path, caplog):
    a_project(tmp_path, "website")
    assert Synced(lambda: 1 / 0).watch(2) == ["homelab", "website"]
    assert f"project {project.pk}: its agent files could not be synced" in caplog.text


def test_an_error_of_the_database_is_raised(project):
    def fail() -> None:
        raise OperationalError("database is locked")

    with pytest.raises(OperationalError):
        Synced(fail).watch(1)


def test_a_folder_outside_of_the_repository_is_not_watched(project, tmp_path):
    assert {found.project_id for found in folders()} == {project.pk}
    file_of(project).parent.rmdir()
    (tmp_path / "elsewhere").mkdir()
    file_of(project).parent.symlink_to(tmp_path / "elsewhere")
    ProjectFactory(slug="gone", path=str(tmp_path / "gone"))
    ProjectFactory(slug="none")
    assert folders() == frozenset()


def test_without_a_project_with_a_repository_there_is_nothing_to_watch():
    ProjectFactory()
    assert not has_projects()
    ProjectFactory(path="/srv/website")
    assert has_projects()


HOLD = "import sys; from memories.files.watch import watch; watch(lambda project: print(project, flush=True))"


@pytest.mark.processes
def test_one_process_of_a_host_watches_and_the_next_one_takes_over(project):
    assert not is_watched()
    first = call(HOLD)
    try:
        wait_for(is_watched)
        second = call(HOLD)
        try:
            os.kill(first.pid, 9)
            first.wait()
            wait_for(is_watched)
            assert second.poll() is None
        finally:
            second.kill()
            second.communicate()
    finally:
        first.kill()
        first.communicate()
    assert not is_watched()
    assert lock_path().exists()
