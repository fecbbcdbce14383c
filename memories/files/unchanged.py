"""Which files of a project neither side has changed since their last sync: a few queries and no file is read.

When in doubt a file is left out, and the sync compares it.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Max

from claudeops.lib.tracked_file.disk import Unusable
from memories.files import storage
from memories.files.authors import FILE
from memories.models import AgentFile, AgentFileConflict, AgentFileEntry, FileState, Memory, MemoryChange, Project
from memories.taxonomy import AGENT


def latest_change() -> int:
    """Return the number of the latest change of any memory. Read it before the memories: what comes later is seen."""
    return MemoryChange.objects.aggregate(last=Max("pk"))["last"] or 0


def is_well(file: AgentFile) -> bool:
    """Whether the last sync of the file went to its end."""
    return file.state == FileState.FULL or (file.state == FileState.OK and not file.problem)


def looks_the_same(file: AgentFile, names: storage.Names | None = None) -> bool:
    """Whether the file is where it was, with the size and the time that it had. Raises Unusable."""
    names = storage.names_by_agent(file.project) if names is None else names
    if not file.sha256 or file.path != storage.relative_path(file.project, file.agent, names):
        return False
    return storage.look(storage.location(file.project, file.agent, names)) == (file.size, file.modified_ns)


def unchanged(project: Project, files: Sequence[AgentFile]) -> set[int]:
    """Return the ids of those of the project's `files` that are in step; seven queries for however many."""
    last = latest_change()
    by_id = {file.pk: file for file in files if is_well(file)}
    last_changes = {pk: file.seen_change for pk, file in by_id.items() if file.seen_change is not None}
    if not last_changes:
        return set()
    of_project = {"file__project": project}
    # An answer changes what is compared; a commit makes a waiting line its author's word; both leave no change.
    doubtful = {
        *AgentFileConflict.objects.filter(**of_project, answered_at=None).values_list("file", flat=True),
        *AgentFileEntry.objects.filter(**of_project, memory=None).values_list("file", flat=True),
        *AgentFileEntry.objects.filter(
            **of_project, author=FILE, left_because="", memory__in=Memory.objects.unconfirmed()
        ).values_list("file", flat=True),
    }
    changed = _changed_since(project, min(last_changes.values()))
    try:
        names = storage.names_by_agent(project)
    except Unusable:
        return set()
    quiet = {
        pk
        for pk, change in last_changes.items()
        if pk not in doubtful and changed.get(by_id[pk].agent, 0) <= change and _looks_the_same(by_id[pk], names)
    }
    # So that the next look begins where this one ended.
    AgentFile.objects.filter(pk__in=quiet, seen_change__lt=last).update(seen_change=last)
    return quiet


def _changed_since(project: Project, last_change: int) -> dict[str, int]:
    """Return the latest change of an agent's memories in the project, by agent, of those after `last_change`."""
    rows = MemoryChange.objects.filter(pk__gt=last_change, memory__project=project, memory__taxonomy=AGENT.slug)
    return dict(rows.order_by().values_list("memory__agent").annotate(last=Max("pk")))


def _looks_the_same(file: AgentFile, names: storage.Names) -> bool:
    try:
        return looks_the_same(file, names)
    except Unusable:
        return False
