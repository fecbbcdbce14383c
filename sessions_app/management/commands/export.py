"""`manage.py export`: data for use outside of claudeops."""

from __future__ import annotations

from datetime import datetime

from claudeops.lib.cli import Result, VerbCommand, arg, moment, verb
from claudeops.lib.humanize import quantity
from memories.lifecycle.projects import find_project
from sessions_app.queries.training import training_lines


class Command(VerbCommand):
    help = "Exports for use elsewhere."

    @verb
    def training(
        self,
        file: str = arg("default: stdout", default="-"),
        *,
        project: str = arg("whose sessions", metavar="SLUG"),
        since: datetime | None = arg(
            "ended at this day or time (UTC) or later, like 2026-11-01",
            metavar="WHEN",
            read=moment("--since", "a day or time like 2026-11-01T08:00"),
        ),
    ) -> Result:
        """A project's ended sessions as JSON Lines."""
        count = self.export_lines(training_lines(find_project(project), since=since), file)
        if count is None:
            return Result(None)
        text = f"{quantity(count, 'session')} {'is' if count == 1 else 'are'} in {file}."
        return Result({"file": file, "sessions": count}, text)
