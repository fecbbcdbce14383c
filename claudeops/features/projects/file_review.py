"""Review once what a repository's memory files hold: one decision for each author, or for all of it.

A name in a commit proves nothing, so that the lines of a repository that is new here wait for a person. What the gate
holds is not here: it waits in the inbox, one by one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from memories.curate.told import waiting_lines
from memories.errors import Conflict
from memories.lifecycle import verbs, vouched
from memories.lifecycle.projects import set_project
from memories.models import AgentFileEntry, Memory, MemoryFile, Project
from memories.models.trust import kept_back

REASON = "Approved in the review of the project's files."
CHANGED = "The files have changed since you read them; nothing was approved."


@dataclass(frozen=True, slots=True)
class Line:
    """A line that waits: where it stands, its text, and why. `memory` is None for a line of MEMORY.md."""

    file: str
    text: str
    why: str
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Author:
    """The lines of one author by git's word, "" for what is not committed. `seen` is their digest."""

    address: str
    lines: tuple[Line, ...]

    @property
    def seen(self) -> str:
        stated = [(line.file, line.text, line.memory) for line in self.lines]
        return hashlib.sha256(json.dumps(stated).encode()).hexdigest()


def authors_who_wait(project: Project | None) -> list[Author]:
    """Return what waits in the files of a project (None: in the global MEMORY.md), by its authors."""
    by_author: dict[str, list[Line]] = {}
    if project is not None:
        rows = AgentFileEntry.objects.filter(
            file__project=project, left_because="", memory__in=Memory.objects.unconfirmed()
        )
        for row in rows.select_related("memory", "file").order_by("file__path", "position"):
            if row.memory is not None:
                line = Line(row.file.path, row.memory.observation, kept_back(row.memory), row.memory.pk)
                by_author.setdefault(row.stated, []).append(line)
    for file in MemoryFile.objects.filter(project=project).exclude(text=""):
        for one in waiting_lines(file):
            by_author.setdefault(one.author, []).append(Line("MEMORY.md", one.text, one.why))
    return [Author(address, tuple(lines)) for address, lines in sorted(by_author.items())]


def approve(project: Project | None, seen: dict[str, str], *, trusted: str, by: str, at: datetime) -> int:
    """Approve as the person `by` what waits of the authors in `seen`: (address, digest of what they read).

    `trusted` is the one of them whose commits the project trusts from now on ("": none). Returns how many lines. Raises
    Conflict when anything of it has changed since.
    """
    with transaction.atomic():
        authors = {one.address: one for one in authors_who_wait(project)}
        if any(address not in authors or authors[address].seen != digest for address, digest in seen.items()):
            raise Conflict(CHANGED, "Read the page again.")
        lines = [line for address in seen for line in authors[address].lines]
        for line in lines:
            if line.memory is not None:
                verbs.approve(line.memory, by=by, at=at, reason=REASON, expected_text=line.text)
        texts = [line.text for line in lines if line.memory is None]
        vouched.vouch(texts, project.pk if project else None, by=by, at=at)
        if trusted and project is not None and trusted not in project.trusted_authors.split():
            set_project(project, trusted_authors="\n".join([*project.trusted_authors.split(), trusted]))
    return len(lines)
