"""`manage.py sync_schedules`: write the schedules that the apps declare into django-q2's table."""

from __future__ import annotations

from dataclasses import asdict

from claudeops.lib.cli import Result, SoleCommand
from claudeops.workers import schedules


class Command(SoleCommand):
    help = "Sync built-in schedules. A worker does this when it starts."

    def run(self) -> Result:
        changes = asdict(schedules.sync_schedules())
        parts = [f"{kind}: {', '.join(names)}" for kind, names in changes.items() if names]
        text = f"{len(schedules.declared())} schedules in sync."
        return Result(changes, " ".join([text, *(f"{part}." for part in parts)]))
