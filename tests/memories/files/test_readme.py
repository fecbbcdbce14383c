"""The README of the folder of agent files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memories.files.document import parse
from memories.files.limits import Limits
from memories.files.readme import readme
from memories.files.sections import sections_for
from memories.files.sync import sync_file
from memories.models import FileState, Memory, Project
from tests.memories.files.conftest import Repository

SECTIONS = sections_for("research")


def test_it_says_the_limits_and_the_required_sections_of_the_project() -> None:
    text = readme("Shop {items} <b>", SECTIONS, Limits.of({"items": 7}))
    assert "at most 8 KB, 10 sections, 7 entries a section and 120 characters a line" in text
    assert (
        "Project Architecture, Implementation Guidelines, Common Mistakes to Avoid, Current Technical Context" in text
    )
    assert "# Research Memory - Shop {items} b\n" in text


def test_its_example_is_a_file_as_we_write_it() -> None:
    example = "\n".join(row[4:] for row in readme("Shop", SECTIONS, Limits.of()).split("\n") if row.startswith("    "))
    (section,) = (section for section in parse(example.encode()).sections if section.line >= 0)
    assert section.name == "Common Mistakes to Avoid"
    assert [entry.text for entry in section.entries] == ["One entry is one line that begins with a hyphen"]


def test_the_first_sync_of_an_agent_puts_it_into_the_folder_and_no_later_one(
    project: Project, repository: Repository
) -> None:
    sync_file(project, "research", create=True)
    page = repository.file().with_name("README.md")
    assert "# Memory of the agents" in page.read_text()
    page.write_text("Ours.")
    sync_file(project, "engineer", create=True)
    assert page.read_text() == "Ours."
    page.unlink()
    sync_file(project, "research", force=True)
    assert not page.exists()
    sync_file(project, "qa", create=True)
    assert page.exists()


def test_it_stands_in_the_folder_when_the_files_have_folders_of_their_own(
    project: Project, repository: Repository, learn: Callable[..., Memory]
) -> None:
    project.files_folder, project.files_pattern = ".claude/agent-memory", "{agent}/MEMORY.md"
    project.save()
    learn("Tests need the queue")
    sync_file(project, "research", create=True)
    assert (repository.path / ".claude/agent-memory/README.md").exists()
    assert (repository.path / ".claude/agent-memory/research/MEMORY.md").exists()


@pytest.mark.parametrize("target", ["elsewhere.md", "nowhere/README.md"])
def test_it_is_never_written_through_a_link(project: Project, repository: Repository, target: str) -> None:
    folder = repository.file().parent
    folder.mkdir(parents=True)
    (folder / "README.md").symlink_to(repository.path.parent / target)
    assert sync_file(project, "research", create=True).state == FileState.OK
    assert not (repository.path.parent / target).exists()
