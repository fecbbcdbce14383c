# ruff: noqa: N999  (the name of the command)
"""`manage.py memory-file`: the curated MEMORY.md and its commits."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, current_user, table
from claudeops.lib.humanize import exact
from memories.curate import files
from memories.curate.document import MOST
from memories.lifecycle.projects import find_project
from memories.models import MemoryFile, MemoryFileCommit

MOST_LISTED = 1_000
SHORT = 7
"""Characters of a commit's name that a list shows."""


def _of(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="SLUG", help="that project's file (default: the global one)")


def _of_log(parser: ArgumentParser) -> None:
    _of(parser)
    parser.add_argument("--limit", type=int, default=20, help=f"commits, at most {MOST_LISTED} (default 20)")


def _of_revert(parser: ArgumentParser) -> None:
    parser.add_argument("commit", metavar="COMMIT", help="its name, or the first characters of it")
    _of(parser)
    parser.add_argument("--by", default="", help="who reverts it (default: your account)")


class Command(VerbCommand):
    help = "MEMORY.md, which every session is told: the global one, or a project's."
    noun = "memory-file"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "init": Verb(
                "Make the file, and in the data folder its repository; begin anew after it was deleted.", self.init, _of
            ),
            "show": Verb("The file as sessions are told it.", self.show, _of),
            "log": Verb("Its commits, the latest first.", self.log, _of_log),
            "blame": Verb("Each line with who wrote it, when, and from which session.", self.blame, _of),
            "revert": Verb("Undo a commit by a new one.", self.revert, _of_revert),
            "sync": Verb("Read what people changed, and commit what is approved, now.", self.sync, _of),
        }

    def init(self, project: str | None) -> Result:
        file = files.init(_project(project))
        return Result(_data(file), f"{file} is at {file.repository}/{file.path}, on the branch {file.branch}.")

    def show(self, project: str | None) -> Result:
        file = _read(project)
        if file.problem:
            self.stderr.write(file.problem)
        actions = [] if file.text else [NextAction("manage.py memory-file init", "make the file")]
        return Result(_data(file) | {"text": file.text}, file.text.rstrip("\n") or "There is no entry yet.", actions)

    def log(self, project: str | None, limit: int) -> Result:
        if not 1 <= limit <= MOST_LISTED:
            raise Refusal("usage", f"--limit is {limit}; allowed is 1 to {MOST_LISTED}.")
        found = files.log(_read(project), most=limit)
        rows = [
            (one.sha[:SHORT], exact(one.at), one.author, f"+{one.added} -{one.removed}", one.subject) for one in found
        ]
        headers = ["commit", "at (UTC)", "author", "lines", "subject"]
        return Result([_commit(one) for one in found], table(headers, rows) if rows else "It has no commit yet.")

    def blame(self, project: str | None) -> Result:
        found = files.blame(_read(project))
        rows = [
            (one.sha[:SHORT] if one else "", one.author if one else "not committed", one and f"{one.at:%Y-%m-%d}", text)
            for text, one in found
        ]
        data = [{"line": text, "commit": _commit(one) if one else None} for text, one in found]
        return Result(data, table(["commit", "author", "on", "line"], rows) if rows else "There is no entry yet.")

    def revert(self, commit: str, project: str | None, by: str) -> Result:
        file = _read(project)
        found = list(file.commits.filter(sha__startswith=commit.lower())[:2]) if len(commit) >= 4 else []
        if len(found) != 1:
            words = "is the beginning of several" if found else "is none of its"
            raise Refusal("commit_not_found", f"{commit[:64]!r} {words} commits.", "Run: manage.py memory-file log")
        after = files.revert(file, found[0].sha, by=by or current_user())
        return Result(_data(after), f"{found[0].sha[:SHORT]} is reverted: {found[0].subject}")

    def sync(self, project: str | None) -> Result:
        file, found = _read(project), files.promote_due()
        file = MemoryFile.objects.get(pk=file.pk)
        lines = [f"{file}: {file.entries} of {MOST} entries. {file.problem}".rstrip(), f"{len(found.done)} committed."]
        return Result(
            _data(file) | {"committed": found.done, "waiting": found.waiting}, "\n".join([*lines, *found.waiting])
        )


def _project(slug: str | None) -> Any:
    return find_project(slug) if slug else None


def _read(slug: str | None) -> MemoryFile:
    return files.read(files.file_of(_project(slug)))


def _data(file: MemoryFile) -> dict[str, Any]:
    return {
        "project": file.project.slug if file.project else None,
        "host": file.host,
        "repository": file.repository,
        "path": file.path,
        "branch": file.branch,
        "commit": file.commit,
        "entries": file.entries,
        "problem": file.problem,
        "read_at": file.read_at,
    }


def _commit(one: MemoryFileCommit) -> dict[str, Any]:
    return {
        "sha": one.sha,
        "at": one.at,
        "kind": one.kind,
        "author": one.author,
        "subject": one.subject,
        "added": one.added,
        "removed": one.removed,
        "proposal": one.proposal_id,
    }
