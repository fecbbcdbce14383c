"""`manage.py restore`: put a backup in the place of the database, the raw logs and the keys."""

from __future__ import annotations

from django.db import DatabaseError

from claudeops.features.backups import restore
from claudeops.features.backups.folder import resolve
from claudeops.lib import database_version
from claudeops.lib.cli import Result, SoleCommand, arg, columns
from sessions_app.models import Session


class Command(SoleCommand):
    help = "Restore a backup. What is there is set aside, not deleted. Stop the web server and the workers first."
    # It must run when the database is damaged or an earlier restore was interrupted.
    requires_system_checks: list[str] = []

    def run(
        self,
        backup: str = arg("the backup", metavar="FOLDER|NAME"),
        *,
        overwrite: bool = arg("also when there is something: it is set aside"),
    ) -> Result:
        outcome = restore.restore(resolve(backup), overwrite=overwrite)
        lines = [f"Restored {outcome.backup} of {outcome.at:%Y-%m-%d %H:%M:%S} UTC: database, raw logs, keys."]
        lines += [
            f"What was there before is in {place}. Remove it when you need it no more." for place in outcome.aside
        ]
        try:
            pending = database_version.unapplied()
            queued, running = Session.objects.queued().count(), Session.objects.running().count()
        except DatabaseError as error:
            lines.append(f"The database does not answer yet: {str(error).partition(chr(10))[0]}.")
            pending = queued = running = 0
        actions = {"manage.py migrate": "the backup is of an earlier version"} if pending else {}
        if queued or running:
            lines.append(
                f"In it {queued} sessions are queued, and start with the workers (manage.py session stop ID ends one); "
                f"{running} were running, and are closed as lost."
            )
        actions["manage.py doctor"] = "check the installation"
        lines += [f"Now: {command} ({to})" for command, to in actions.items()]
        data = columns(outcome, "backup", "at", "aside")
        data |= {"migrations_to_apply": pending, "queued": queued, "running": running}
        return Result(data, "\n".join(lines), actions)
