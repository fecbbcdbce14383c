"""`manage.py counts`: check and rebuild the counts by hour that charts are drawn from."""

from __future__ import annotations

from claudeops.lib import hour_counts
from claudeops.lib.cli import Result, VerbCommand, table, verb
from memories import counts
from sessions_app.counts import tables

ALL = (*tables.ALL, *counts.ALL)


class Command(VerbCommand):
    help = "The counts by hour of sessions, events and changes of memories, which charts are drawn from."

    @verb
    def check_(self) -> Result:
        """Compare the counts with the rows. Exit code 1 when any differs."""
        missing = hour_counts.missing(ALL)
        differences = [difference for what in ALL for difference in hour_counts.differences(what)]
        data = {"missing_triggers": missing, "differences": differences}
        if not (differences or missing):
            return Result(data, "Every count agrees with the rows.")
        rows = [
            (one.table, one.hour, one.name, ", ".join(f"{name} {n:+,}" for name, n in one.surplus.items() if n))
            for one in differences
        ]
        parts = [f"The triggers are missing or outdated of: {', '.join(missing)}."] if missing else []
        parts += [table(("table", "hour (UTC)", "name", "stored less counted"), rows)] if rows else []
        rebuild = "manage.py counts rebuild"
        return Result(
            data,
            "\n".join([*parts, f"Run: {rebuild}"]),
            {rebuild: "Count all rows anew."},
            exit_code=1,
            error=("counts_differ", "Counts by hour do not agree with the rows.", f"Run: {rebuild}"),
        )

    @verb
    def rebuild(self) -> Result:
        """Count all rows anew. May run while sessions run; their workers wait for it."""
        hour_counts.keep(ALL)  # the triggers first: a count without them is wrong with the next row
        rebuilt = {what.counts: hour_counts.rebuild(what) for what in ALL}
        text = "\n".join(f"{name}: {number:,} counts." for name, number in rebuilt.items())
        return Result({"counts": rebuilt}, text, {"manage.py counts check": "Compare them with the rows."})
