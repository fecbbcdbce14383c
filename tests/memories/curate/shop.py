"""A project whose MEMORY.md lies in a person's repository, and what people and agents do there."""

from __future__ import annotations

from pathlib import Path

from memories.curate import files
from memories.curate.told import select_curated
from memories.models import MemoryFile, Project
from tests.memories.curate.repositories import git, make
from tests.support.committers import trust_commits

ADA = "Ada <ada@example.org>"


def a_shop(folder: Path) -> Project:
    """Its author's commits are her word, and its first commit is known."""
    path = make(folder, "# Memory\n\n## Operations\n\n")
    project = Project.objects.create(slug=folder.name, path=str(path.parent), memory_path="MEMORY.md")
    trust_commits(project, "ada@example.org")
    read(project)
    return project


def read(project: Project) -> MemoryFile:
    """Read the file as the task of each minute does."""
    return files.read(files.file_of(Project.objects.get(pk=project.pk)))


def write(project: Project, *texts: str) -> None:
    """Add entries to the file, as anybody does who has an editor or a shell."""
    with Path(project.path, "MEMORY.md").open("a", encoding="utf-8") as file:
        file.write("".join(f"- {text}\n" for text in texts))


def commit(project: Project, *options: str, author: str = ADA, message: str = "Note it") -> str:
    """Commit what was written; `options` are git's own."""
    return git(Path(project.path), *options, "commit", "-qam", message, f"--author={author}")


def told(project: Project) -> set[str]:
    """Return the texts that a session of the project is told."""
    return {entry.shown for entry in select_curated(Project.objects.get(pk=project.pk)).included}


def waits(project: Project) -> dict[str, str]:
    """Return why the other entries are not told, by text."""
    return {one.text: one.reason for one in select_curated(Project.objects.get(pk=project.pk)).left_out}
