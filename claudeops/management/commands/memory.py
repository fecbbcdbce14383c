"""The command `memory` with the verbs that need to know sessions."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from claudeops.lib.cli import Result, Verb, table
from memories.lifecycle.projects import find_project
from memories.management.commands.memory import Command as MemoryCommand
from sessions_app.credit.relevance import adjust_relevance
from sessions_app.learning.lessons import learn


class Command(MemoryCommand):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            **self.verbs,
            "adjust-relevance": Verb(
                "Learn the relevance of project memories from the sessions that used them.",
                self.adjust_relevance,
                _of_adjust,
            ),
            "learn": Verb(
                "Learn from the runs of a project: what failed runs had in common, what a retry did differently.",
                self.learn,
                _of_learn,
            ),
        }

    def adjust_relevance(self, project: str | None, everything: bool, dry_run: bool) -> Result:
        one = find_project(project) if project else None
        found = adjust_relevance(one, also_set=everything, dry_run=dry_run)
        rows = [
            (
                of.project,
                made.memory_id,
                f"{made.outcomes.helped} of {made.outcomes.decided}",
                "-" if made.before is None else f"{made.before:.2f}",
                "stays, set by a person" if made.kept else f"{made.after:.2f}",
            )
            for of in found
            for made in of.adjustments
        ]
        lines = [
            f"{of.project}: nothing to learn, no use of its memories has helped yet." for of in found if not of.base
        ]
        if rows:
            lines.append(table(["project", "memory", "helped", "before", "after"], rows))
        if dry_run and rows:
            lines.append("Nothing was written (--dry-run).")
        return Result([asdict(of) for of in found], "\n".join(lines) or "There is no project.")

    def learn(self, project: str, dry_run: bool) -> Result:
        found = learn(find_project(project), dry_run=dry_run)
        lines = [f"{one.outcome}: {one.lesson.text} (sessions {', '.join(map(str, one.lesson.runs))})" for one in found]
        return Result([asdict(one) for one in found], "\n".join(lines) or "Its runs teach nothing yet.")


def _of_learn(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="SLUG", required=True)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be stored")


def _of_adjust(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="SLUG", help="one project (default: all)")
    parser.add_argument("--all", dest="everything", action="store_true", help="also scores that a person set")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be changed")
