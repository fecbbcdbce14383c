"""A MEMORY.md as it is now, in its repository and in its row.

One process of the file's host works on a file at a time: `alone`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from claudeops.lib.locks import file_lock
from claudeops.lib.tracked_file import git
from claudeops.lib.tracked_file.disk import Unusable
from claudeops.lib.tracked_file.git import Blob, Head
from memories.curate.working_tree import Spot, decode, read_file
from memories.models import MemoryFile

LONGEST_BRANCH = 255


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it is now: in the commit that is checked out, and in the working tree (None: not there)."""

    spot: Spot
    head: Head
    committed: Blob | None
    working: bytes | None

    @property
    def committed_text(self) -> str:
        return decode(self.committed.data) if self.committed else ""

    @property
    def working_text(self) -> str:
        return decode(self.working) if self.working is not None else ""

    @property
    def is_edited(self) -> bool:
        """Whether a person changed the file since its commit, line ends apart."""
        if self.working is None or self.committed is None:
            return (self.working is None) != (self.committed is None)
        return self.working.replace(b"\r\n", b"\n") != self.committed.data.replace(b"\r\n", b"\n")


@contextmanager
def alone(file: MemoryFile, *, wait: bool = True) -> Iterator[bool]:
    """Let no other process of this host work on the file; the lock ends with its process."""
    path = Path(settings.CLAUDEOPS_DATA_DIR) / "locks" / f"memory-file-{file.pk}"
    with file_lock(path, wait=wait) as has_lock:
        yield has_lock


def of_this_host(file: MemoryFile) -> MemoryFile:
    if file.host != settings.CLAUDEOPS_HOST:
        raise Unusable(f"The repository of {file} is on the host {file.host}.", "Do it there.")
    return file


def look(row: MemoryFile, spot: Spot) -> Seen:
    """Return the file as it is, on the branch that is followed. Raises GitError and Unusable for any other state."""
    repository = spot.repository
    if doing := git.in_progress(repository):
        raise Unusable(f"The repository is in the middle of {doing}.", "Promotions wait until it is finished.")
    head = git.head(repository)
    if len(head.branch) > LONGEST_BRANCH:
        raise Unusable(f"The name of the branch has more than {LONGEST_BRANCH} characters.", "Rename it.")
    if not head.branch:
        raise Unusable("The repository has a detached HEAD.", f"Check out the branch {row.branch or 'main'}.")
    if row.branch and head.branch != row.branch and git.branch_exists(repository, row.branch):
        raise Unusable(
            f"The branch {head.branch} is checked out; MEMORY.md is kept on {row.branch}.",
            f"Check out {row.branch}; promotions wait.",
        )
    if git.is_filtered(repository, spot.path):
        raise Unusable("MEMORY.md goes through a filter of .gitattributes, which is not run.", "Exempt the file.")
    return Seen(spot, head, git.blob_at(repository, head.commit, spot.path), read_file(spot))


def say(row: MemoryFile, problem: str, at: datetime) -> None:
    store(row, problem=problem[:500], problem_since=row.problem_since or at, stamp="")


def store(row: MemoryFile, **columns: Any) -> None:
    MemoryFile.objects.filter(pk=row.pk).update(**columns)
    for name, value in columns.items():
        setattr(row, name, value)
