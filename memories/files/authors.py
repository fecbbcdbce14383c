"""Who wrote the lines of a file, by git. A line that is not committed is nobody's word: its author is "file".

So is one whose commit is nobody's word (`memories.committers`). Commits alone are read: for a file of the working tree
git would start filters that the repository's own configuration names, which an agent may have written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import git
from claudeops.lib.tracked_file.git import GitError, Repository
from claudeops.lib.tracked_file.merge import same_lines
from memories import committers
from memories.capture.text import fold
from memories.committers import Look
from memories.files.document import Document

FILE = "file"
"""The author of a line that no commit has, and of every line without git: whoever could write the file."""
BY_GIT = "git:"
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Authors:
    """The author of each line, by its number from 0, and of the last change of the file, such as a removed line.

    `stated` are the e-mail addresses of the authors that git states, whosever word the lines are.
    """

    lines: dict[int, str] = field(default_factory=dict)
    last: str = FILE
    stated: dict[int, str] = field(default_factory=dict)

    def of(self, start: int, end: int) -> str:
        """Return the author of an entry: "file" when any of its lines is not committed, else its last line's."""
        authors = [self.lines.get(number, FILE) for number in range(start, end)]
        return FILE if FILE in authors or not authors else authors[-1]


def is_person(author: str) -> bool:
    """Whether the author is a person whose word needs no gate: one who committed."""
    return author.startswith(BY_GIT)


def authors_of(path: Path, document: Document, look: Look) -> Authors:
    """Return who wrote the lines of `document`, which is the file at `path`, found by a `look` at its project.

    Without git, a repository or an answer in time: nobody.
    """
    try:
        repository, name = _place_of(path)
        head = git.head(repository).commit
        committed = git.blob_at(repository, head, name)
        if committed is None:
            return Authors()
        commits = git.blame(repository, head, name, committed.data)
        people, stated = _people(repository, commits, look)
        old = Document.read(committed.data.decode("utf-8", "replace")).texts
        same = list(same_lines(old, document.texts))
        latest = git.last_change(repository, head, name) if old == document.texts else ""
        last, _ = _people(repository, [latest] if latest else [], look)
    except GitError:
        return Authors()
    return Authors(
        {here: people.get(commits[there], FILE) for there, here in same},
        last.get(latest, FILE),
        {here: stated.get(commits[there], "") for there, here in same},
    )


def deleted_by(path: Path, look: Look) -> str:
    """Return the person who deleted the file at `path` by a commit; "file" before the commit; "" for neither.

    A program deletes nothing for a person, and what git was told to ignore was not deleted, but is no longer kept.
    """
    try:
        repository, name = _place_of(path)
        head = git.head(repository).commit
        if git.blob_at(repository, head, name) is not None:
            return FILE if git.blob_in_index(repository, name) is None else ""
        commit = git.last_change(repository, head, name)
        if not commit or git.is_ignored(repository, name):
            return ""
        return _people(repository, [commit], look)[0].get(commit, "")
    except GitError:
        return ""


def _place_of(path: Path) -> tuple[Repository, str]:
    """Return the repository of a file, and its path there. Raises GitError without one."""
    repository = git.find_repository(path.parent)
    if repository is None:
        raise GitError(f"{path} is in no repository.")
    return repository, (path.parent.resolve() / path.name).relative_to(repository.root).as_posix()


def _people(repository: Repository, shas: Iterable[str], look: Look) -> tuple[dict[str, str], dict[str, str]]:
    """Return the author of each commit that is a person's word, and the address that each states."""
    with committers.signers_of(look.project) as signers:
        commits = git.commits(repository, set(shas), signers=signers)
    cut_off = git.shallow(repository)
    stated = {one.sha: fold(mask(one.author_email))[:LONGEST_NAME] for one in commits}
    people = committers.people((committers.of_git(one) for one in commits if one.sha not in cut_off), look)
    return {sha: BY_GIT + (fold(mask(name))[:LONGEST_NAME] or "unnamed") for sha, name in people.items()}, stated
