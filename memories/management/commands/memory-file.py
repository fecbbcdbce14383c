# ruff: noqa: N999  (the name of the command)
"""`manage.py memory-file`: the curated MEMORY.md and its commits."""

from __future__ import annotations

from typing import Any

from claudeops.lib.cli import Columns, Refusal, Result, VerbCommand, arg, by, columns, listing, table, verb
from claudeops.lib.humanize import exact
from memories.curate import files
from memories.curate.document import MOST
from memories.management.parameters import project
from memories.models import MemoryFile, MemoryFileCommit, Project

MOST_LISTED = 1_000
SHORT = 7
"""Characters of a commit's name that a list shows."""


PROJECT = project("that project's file (default: the global one)")


class Command(VerbCommand):
    help = "MEMORY.md, which every session is told: the global one, or a project's."

    @verb
    def init(self, *, project: Project | None = PROJECT) -> Result:
        """Make the file, and in the data folder its repository; begin anew after it was deleted."""
        file = files.init(project)
        return Result(_data(file), f"{file} is at {file.repository}/{file.path}, on the branch {file.branch}.")

    @verb
    def show(self, *, project: Project | None = PROJECT) -> Result:
        """The file as sessions are told it."""
        file = _read(project)
        if file.problem:
            self.stderr.write(file.problem)
        actions = {} if file.text else {"manage.py memory-file init": "make the file"}
        return Result(_data(file) | {"text": file.text}, file.text.rstrip("\n") or "There is no entry yet.", actions)

    @verb
    def log(
        self,
        *,
        project: Project | None = PROJECT,
        limit: int = arg(f"commits, at most {MOST_LISTED} (default 20)", default=20, within=(1, MOST_LISTED)),
    ) -> Result:
        """Its commits, the latest first."""
        commits = files.log(_read(project), most=limit)
        cells: Columns = {
            "commit": lambda one: one.sha[:SHORT],
            "at (UTC)": lambda one: exact(one.at),
            "author": "author",
            "lines": lambda one: f"+{one.added} -{one.removed}",
            "subject": "subject",
        }
        return Result([_commit(one) for one in commits], listing(commits, cells, "It has no commit yet."))

    @verb
    def blame(self, *, project: Project | None = PROJECT) -> Result:
        """Each line with who wrote it, when, and from which session."""
        lines = files.blame(_read(project))
        rows = [
            (one.sha[:SHORT] if one else "", one.author if one else "not committed", one and f"{one.at:%Y-%m-%d}", text)
            for text, one in lines
        ]
        data = [{"line": text, "commit": _commit(one) if one else None} for text, one in lines]
        text = table(["commit", "author", "on", "line"], rows) if rows else "There is no entry yet."
        return Result(data, text)

    @verb
    def revert(
        self,
        commit: str = arg("its name, or the first characters of it"),
        *,
        project: Project | None = PROJECT,
        by: str = by("who reverts it (default: your account)"),
    ) -> Result:
        """Undo a commit by a new one."""
        file = _read(project)
        commits = list(file.commits.filter(sha__startswith=commit.lower())[:2]) if len(commit) >= 4 else []
        if len(commits) != 1:
            words = "is the beginning of several" if commits else "is none of its"
            raise Refusal("commit_not_found", f"{commit[:64]!r} {words} commits.", "Run: manage.py memory-file log")
        after = files.revert(file, commits[0].sha, by=by)
        return Result(_data(after), f"{commits[0].sha[:SHORT]} is reverted: {commits[0].subject}")

    @verb
    def sync(self, *, project: Project | None = PROJECT) -> Result:
        """Read what people changed, and commit what is approved, now."""
        file, result = _read(project), files.promote_due()
        file = MemoryFile.objects.get(pk=file.pk)
        lines = [f"{file}: {file.entries} of {MOST} entries. {file.problem}".rstrip(), f"{len(result.done)} committed."]
        data = _data(file) | {"committed": result.done, "waiting": result.waiting}
        return Result(data, "\n".join([*lines, *result.waiting]))


def _read(project: Project | None) -> MemoryFile:
    return files.read(files.file_of(project))


def _data(file: MemoryFile) -> dict[str, Any]:
    names = ("host", "repository", "path", "branch", "commit", "entries", "problem", "read_at")
    return {"project": file.project.slug if file.project else None} | columns(file, *names)


def _commit(one: MemoryFileCommit) -> dict[str, Any]:
    data = columns(one, "sha", "at", "kind", "author", "subject", "added", "removed")
    return data | {"proposal": one.proposal_id}
