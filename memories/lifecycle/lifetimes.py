"""When a memory expires: by its type and its project's setting, from when it is made, approved or reactivated."""

from __future__ import annotations

from datetime import datetime, timedelta

from memories.models import Memory, Project
from memories.taxonomy import PROJECT, TAXONOMIES


class Lifetimes:
    """Lifetimes by type and project; each project is read once."""

    def __init__(self) -> None:
        self._projects: dict[int, Project | None] = {}

    def end(self, memory: Memory, at: datetime) -> datetime | None:
        """Return when `memory` expires if its life begins at `at` (aware UTC); None: never, or persistent."""
        lasts = None if memory.persistent else self.of(memory)
        return None if lasts is None else at + lasts

    def of(self, memory: Memory) -> timedelta | None:
        """Return the lifetime of the memory's type in its project; None: it has none."""
        if memory.taxonomy == PROJECT.slug and memory.project_id is not None:
            if memory.project_id not in self._projects:
                self._projects[memory.project_id] = Project.objects.filter(pk=memory.project_id).first()
            project = self._projects[memory.project_id]
            if project is not None:
                return project.lifetime(memory.category)
        return TAXONOMIES[memory.taxonomy].expires.get(memory.category)
