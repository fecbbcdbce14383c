"""`manage.py sync_schedules`: bring what the apps declare into django-q2's table. Workers do it when they start."""

from __future__ import annotations

from dataclasses import asdict

from claudeops import scheduling
from claudeops.lib.cli import Result, SoleCommand


class Command(SoleCommand):
    noun = "sync_schedules"
    help = "Bring the schedules the code declares into the queue. Workers do this when they start."

    def run(self) -> Result:
        synced = scheduling.sync_schedules()
        total = len(scheduling.declared())
        if not synced:
            return Result(asdict(synced), f"All {total} schedules were in step already.")
        parts = [f"{kind}: {', '.join(names)}" for kind, names in asdict(synced).items() if names]
        return Result(asdict(synced), f"{total} schedules are in step. " + "; ".join(parts) + ".")
