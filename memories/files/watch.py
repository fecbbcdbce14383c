"""Watch the folders of agent files and the changes of agents' memories, and sync a project within seconds of either.

One process of a host watches. What it misses is found by the scheduled sync.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from django.db import DatabaseError, InterfaceError, connections
from django.db.models import Max

from claudeops.lib.locks import file_lock
from memories.files.storage import locks_folder
from memories.models import MemoryChange, Project
from memories.taxonomy import AGENT

logger = logging.getLogger(__name__)

LOOK_EVERY = 3.0
"""Seconds between two looks for other projects, for folders that appear, and for changed memories."""
PAUSE = 10.0
"""Seconds without queries after the database did not answer."""

Sync = Callable[[Project], object]


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a project's agent files, as it is on disk: another folder in its place is another one."""

    project_id: int
    path: Path
    identity: tuple[int, int]


def lock_path() -> Path:
    return locks_folder() / "watch.lock"


def is_watched() -> bool:
    """Whether a process of this host watches. Raises OSError."""
    with file_lock(lock_path()) as free:
        return not free


def has_projects() -> bool:
    """Whether a project has a repository, so that there may be something to watch."""
    return Project.objects.exclude(path="").exists()


def folders() -> frozenset[Folder]:
    """Return the folders that are there, each within its repository (a link out of it is not followed)."""
    result = set()
    for project_id, path, below in Project.objects.exclude(path="").values_list("pk", "path", "files_folder"):
        try:
            repository = Path(path).resolve(strict=True)
            folder = (repository / below).resolve(strict=True)
            status = folder.stat()
        except (OSError, RuntimeError, ValueError):  # missing, a circle of links, a NUL byte
            continue
        if folder.is_dir() and folder.is_relative_to(repository):
            result.add(Folder(project_id, folder, (status.st_dev, status.st_ino)))
    return frozenset(result)


def watch(sync: Sync) -> None:
    """Watch until the process ends, as the only process of its host: it waits for the one that does."""
    with file_lock(lock_path(), wait=True):
        while True:
            try:
                Watcher(sync).run()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("agent files: the database does not answer (%s)", error)
                connections.close_all()
                time.sleep(PAUSE)


class Watcher:
    """Calls `sync` for each project whose files or agent memories change, and once for each at the start.

    `run` raises the errors of the database; others of a sync are logged, and the project waits for its next change.
    """

    def __init__(self, sync: Sync, *, look_every: float = LOOK_EVERY, stopped: Callable[[], bool] = bool) -> None:
        self._sync, self._look_every, self._stopped = sync, look_every, stopped
        self._folders: frozenset[Folder] = frozenset()
        self._seen = 0

    def run(self) -> None:
        self._seen = MemoryChange.objects.aggregate(last=Max("pk"))["last"] or 0
        waiting: set[int] = set()
        while not self._stopped():
            there = folders()
            waiting |= {folder.project_id for folder in there - self._folders}
            self._folders = there
            for saved in self._saved():
                # The first round comes when the folders are being watched, so that no save falls between.
                self._sync_projects(waiting | saved | self._with_changed_memories())
                waiting = set()
                if self._stopped() or folders() != self._folders:
                    break

    def _saved(self) -> Iterable[set[int]]:
        """Yield the projects of files that changed; an empty set after `look_every` seconds without a change."""
        from watchfiles import watch as changes_in  # starts nothing by itself, but not every process needs it

        if not self._folders:
            time.sleep(self._look_every)
            yield set()
            return
        try:
            for changes in changes_in(
                *{folder.path for folder in self._folders},
                watch_filter=None,  # it would go on waiting after a change that it leaves out
                rust_timeout=int(self._look_every * 1000),
                yield_on_timeout=True,
                raise_interrupt=False,
            ):
                paths = {Path(name) for _, name in changes}
                # A folder that was replaced is no longer watched, and the new one may have its number.
                self._folders -= {folder for folder in self._folders if folder.path in paths}
                # A file may have been saved in a new folder before that was watched, too.
                yield self._projects_of(path for path in paths if path.suffix == ".md" or path.is_dir())
        except OSError as error:  # a folder that has just gone, or the kernel's limit of watches
            logger.warning("agent files: not watched: %s", error)
            time.sleep(self._look_every)
            yield set()

    def _projects_of(self, paths: Iterable[Path]) -> set[int]:
        above = {parent for path in paths for parent in path.parents}
        return {folder.project_id for folder in self._folders if folder.path in above}

    def _with_changed_memories(self) -> set[int]:
        """Return the projects of which an agent's memory changed since the last look."""
        last = MemoryChange.objects.aggregate(last=Max("pk"))["last"] or 0
        if last <= self._seen:
            return set()
        rows = MemoryChange.objects.filter(pk__gt=self._seen, pk__lte=last, memory__taxonomy=AGENT.slug)
        projects = set(rows.order_by().values_list("memory__project", flat=True).distinct()) - {None}
        self._seen = last
        return projects

    def _sync_projects(self, ids: Iterable[int]) -> None:
        for project in Project.objects.filter(pk__in=set(ids)).exclude(path="").order_by("pk"):
            try:
                self._sync(project)
            except (DatabaseError, InterfaceError):
                raise
            except Exception:
                logger.exception("project %s: its agent files could not be synced", project.pk)
