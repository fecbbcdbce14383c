"""The MEMORY.md files: find their rows and their places."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from memories.errors import MemoriesError
from memories.models import MemoryFile, Project

OWN_FOLDER = "memory"
"""The repository of our own, in the data folder."""
NAME = "MEMORY.md"


class Unusable(MemoriesError):
    """The file or its repository cannot be used; the text says why, `fix` what to do."""

    code = "memory_file"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is: a folder in its repository, and its path below that folder; `is_ours`: the repository is."""

    folder: Path
    path: str
    is_ours: bool


def place_of(project: Project | None) -> Place:
    """Return where the file of a project (None: the global one) is, or would be, on this host."""
    if project is not None and project.path and project.memory_path:
        return Place(Path(project.path), project.memory_path, is_ours=False)
    if project is None and settings.CLAUDEOPS_MEMORY_FILE:
        chosen = Path(settings.CLAUDEOPS_MEMORY_FILE)
        return Place(chosen.parent, chosen.name, is_ours=False)
    path = NAME if project is None else f"projects/{project.slug}/{NAME}"
    return Place(Path(settings.CLAUDEOPS_DATA_DIR) / OWN_FOLDER, path, is_ours=True)


def file_of(project: Project | None) -> MemoryFile:
    """Return the row of a project's file (None: of the global one), made when it is missing; no git is run."""
    place = place_of(project)
    found, _ = MemoryFile.objects.get_or_create(
        project=project,
        defaults={"host": settings.CLAUDEOPS_HOST, "repository": str(place.folder), "path": place.path},
    )
    return found
