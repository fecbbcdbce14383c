"""`manage.py export`: data for use outside of claudeops."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from claudeops.lib import times
from claudeops.lib.cli import Refusal, Result, Verb, VerbCommand
from claudeops.lib.files import whole_file
from memories.lifecycle.projects import find_project
from sessions_app.queries.training import training_lines


def _training_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: stdout")
    parser.add_argument("--project", required=True, metavar="SLUG", help="whose sessions")
    parser.add_argument("--since", metavar="WHEN", help="ended at this day or time (UTC) or later, like 2026-11-01")


class Command(VerbCommand):
    help = "Exports for use elsewhere."
    noun = "export"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.as_json = False
        self.verbs = {
            "training": Verb("A project's ended sessions as JSON Lines.", self.training, _training_arguments),
        }

    def handle(self, *args: Any, **options: Any) -> str | None:
        self.as_json = options.get("json", False)
        return super().handle(*args, **options)

    def training(self, file: str, project: str, since: str | None) -> Result:
        lines = training_lines(find_project(project), since=_moment(since))
        if file == "-":
            if self.as_json:
                raise Refusal("usage", "--json and an export to stdout do not go together.", "Name a FILE.")
            for line in lines:
                self.stdout.write(line)
            return Result(None)
        count = 0
        try:
            with whole_file(Path(file)) as out:
                for count, line in enumerate(lines, start=1):  # noqa: B007
                    out.write(line + "\n")
        except OSError as error:
            raise Refusal("file", f"{file} cannot be written: {error.strerror}.") from None
        return Result(
            {"file": file, "sessions": count}, f"{count:,} {'session is' if count == 1 else 'sessions are'} in {file}."
        )


def _moment(given: str | None) -> datetime | None:
    if given is None:
        return None
    try:
        found = datetime.fromisoformat(given)
        return times.in_utc(found if found.tzinfo else found.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise Refusal("usage", f"--since is {given!r}; allowed is a day or time like 2026-11-01T08:00.") from None
