"""When a memory expires: by its type and its project's setting, from when it is made, approved or reactivated.

An end that a person set is the person's: it stays.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet

from memories.lifecycle.write import json_value
from memories.models import By, Change, Memory, MemoryChange, Project
from memories.taxonomy import PROJECT, TAXONOMIES

OWN_END = "own_end"
"""In the evidence of a change: its end was given, and does not follow from a lifetime."""


class Lifetimes:
    """Lifetimes by type and project; each project is read once, and so are the ends that people set for `rows`."""

    def __init__(self, rows: QuerySet[Memory] | None = None) -> None:
        self._projects: dict[int, Project | None] = {}
        self._own = None if rows is None else _own_ends(rows)

    def is_own(self, memory: Memory) -> bool:
        """Whether a person set the end that `memory` has now, "never" included."""
        own = _own_ends(Memory.objects.filter(pk=memory.pk)) if self._own is None else self._own
        return (memory.pk, json_value(memory.expires_at)) in own

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


def _own_ends(rows: QuerySet[Memory]) -> set[tuple[int | None, str | None]]:
    """Return the ends (ISO 8601, UTC) that people set for `rows`, with the memory's id."""
    changes = MemoryChange.objects.filter(
        memory__in=rows.order_by().values("pk"),
        by=By.PEOPLE,
        kind__in=(Change.CREATED, Change.EDITED),
        after__has_key="expires_at",
    )
    return {
        (memory, after["expires_at"])
        for memory, after, evidence in changes.values_list("memory", "after", "evidence")
        # Of an earlier version there is no sign: an end that changed with these followed from them.
        if OWN_END in evidence or not {"active", "persistent"} & after.keys()
    }
