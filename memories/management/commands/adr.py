"""`manage.py adr`: the decision records of a project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import Columns, Refusal, Result, VerbCommand, arg, listing, verb
from claudeops.lib.tracked_file import disk
from memories.library.decisions import folder as records
from memories.library.decisions.index import sync
from memories.library.decisions.record import STATUSES, Record, successor_of
from memories.lifecycle.projects import find_project

COLUMNS: Columns = {
    "number": lambda one: one.number if one.number is not None else "",
    "status": lambda one: one.status or f"? {one.said[:20]}",
    "date": lambda one: one.day or "",
    "title": "title",
    "file": "name",
}


@dataclass(frozen=True)
class Where:
    project: str = arg("the project's slug (default: the repository that you are in)", default="")

    @property
    def folder(self) -> Path:
        if not self.project:
            return records.folder_of(Path.cwd())
        project = find_project(self.project)
        if not project.path:
            raise Refusal(
                "no_repository", f"Project {project.slug} has no repository path.", "Set it: manage.py project set"
            )
        return records.folder_of(Path(project.path))

    def keep(self) -> None:
        """Bring the index in step with what was written."""
        if self.project:
            sync(find_project(self.project))


class Command(VerbCommand):
    help = "Decision records (docs/decisions, docs/adr, …): what was decided, what holds, and what replaced what."

    @verb
    def new(
        self,
        title: Sequence[str] = arg("what is decided, in a few words"),
        *,
        where: Where,
        replaces: str = arg("the number of the decision that it replaces", default=""),
        deciders: Sequence[str] = arg("who decides; may be given several times"),
        tag: Sequence[str] = arg("a tag; may be given several times"),
        path: Sequence[str] = arg("a path or glob that it governs; may be given several times"),
    ) -> Result:
        """Write a record with the next number. A number is never used twice."""
        today = timezone.now().date()
        more = {"deciders": deciders, "tags": tag, "paths": path}
        file = records.new(where.folder, " ".join(title), on=today, replaces=replaces, **more)
        where.keep()
        key = str(records.record_at(file).number)
        actions = {f"manage.py adr accept {key}": "when it is decided", "manage.py adr check": "look at all records"}
        return Result({"file": str(file), "number": int(key)}, f"Written: {file}", actions)

    @verb
    def list_(self, *, where: Where, status: str = arg("only these", choices=list(STATUSES), default="")) -> Result:
        """The records, by number."""
        found = [one for one in records.records_of(where.folder) if status in ("", one.status)]
        return Result([_data(one) for one in found], listing(found, COLUMNS, f"No record stands in {where.folder}."))

    @verb
    def show(self, key: str = arg("its number or file name", metavar="NUMBER"), *, where: Where) -> Result:
        """One record, and what holds in its place where it is superseded."""
        all_records = records.records_of(where.folder)
        found = records.find(all_records, key)
        after = successor_of(found, {one.key: one for one in all_records}) if found.superseded_by else None
        text = disk.read(where.folder / found.name).data.decode("utf-8", "replace")
        notice = f"It was superseded; what holds is {after.key}: {after.title}.\n\n" if after else ""
        return Result(_data(found) | {"text": text, "holds_instead": after.key if after else None}, notice + text)

    @verb
    def accept(self, key: str = arg("its number or file name", metavar="NUMBER"), *, where: Where) -> Result:
        """Say in its file that a decision holds."""
        return self._status(where, key, "accepted")

    @verb
    def status(
        self,
        key: str = arg("its number or file name", metavar="NUMBER"),
        word: str = arg("the status", choices=[one for one in STATUSES if one != "superseded"]),
        *,
        where: Where,
    ) -> Result:
        """Give a record another status, in its file: every other byte stays."""
        return self._status(where, key, word)

    @verb
    def supersede(
        self,
        old: str = arg("the number of the one that goes"),
        new: str = arg("the number of the one that holds"),
        *,
        where: Where,
    ) -> Result:
        """Let one record supersede another; both files say so."""
        record = records.supersede(where.folder, old, new)
        where.keep()
        return Result(_data(record), f"{record.name} is superseded by {', '.join(record.superseded_by)}.")

    @verb
    def check_(self, *, where: Where) -> Result:
        """What is wrong with the records; exit code 1 where something is. For a pre-commit hook and CI."""
        found = records.check(where.folder)
        lines = [f"{one.name}: {one.why}" for one in found]
        text = "\n".join([*lines, f"{len(found)} problems." if found else "All records are in order."])
        return Result(found, text, exit_code=int(bool(found)))

    @verb
    def graph(self, *, where: Where) -> Result:
        """What superseded what, each chain to the decision that holds."""
        found = records.records_of(where.folder)
        edges = [{"from": one.key, "to": key} for one in found for key in one.superseded_by]
        return Result({"records": [_data(one) for one in found], "edges": edges}, records.graph(found))

    def _status(self, where: Where, key: str, word: str) -> Result:
        record = records.set_status(where.folder, key, word)
        where.keep()
        return Result(_data(record), f"{record.name} is {record.status}.")


def _data(one: Record) -> dict[str, Any]:
    names = ("name", "number", "title", "status", "said", "deciders", "tags", "supersedes", "superseded_by", "paths")
    return {name: getattr(one, name) for name in names} | {"date": one.day, "problems": one.problems}
