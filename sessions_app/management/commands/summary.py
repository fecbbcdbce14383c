"""`manage.py summary`: what was learned, decided, done, found, failed, and what it cost."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone

from claudeops.lib.cli import Result, SoleCommand, arg, moment
from memories.lifecycle.projects import find_project
from sessions_app import summaries
from sessions_app.queries.summary import DAY, WEEK, read


class Command(SoleCommand):
    help = "What was learned, decided, done, found and failed on a day or in a week (UTC), and what it cost."

    def run(
        self,
        *,
        day: bool = arg("of a day (the default)", group="period"),
        week: bool = arg("of the week around the day", group="period"),
        date: str = arg("the day, like 2026-11-27 (default: today)", default=""),
        project: str = arg("only of the project with this slug", default=""),
        keep: bool = arg("write it into the vault, too, and commit it"),
    ) -> Result:
        at = timezone.now()
        within = find_project(project) if project else None
        of = moment("--date", "a day, like 2026-11-27")(date) if date else at
        found = read(WEEK if week else DAY, of.date(), within)
        text = summaries.as_markdown(found)
        file = summaries.keep(found, settings.CLAUDEOPS_PUBLIC_URL, at=at) if keep else None
        data = {
            "name": found.name,
            "since": found.since,
            "until": found.until,
            "project": found.project,
            "sessions": found.sessions,
            "cost_usd": found.cost_usd,
            "models_usd": found.models_usd,
            **{part.title.lower(): {"count": part.count, "lines": part.lines} for part in found.parts},
            "file": str(file) if file else None,
        }
        return Result(data, text + (f"\nWritten: {file}" if file else ""))
