"""The schedules of the project, as data for claudeops/workers/schedules.py."""

# The backup of a day is made in its first hour, or when the machine runs again; after a failure it is tried again.
SCHEDULES = [
    {"name": "export", "func": "claudeops.tasks.export_telemetry", "minutes": 1},
    {"name": "backup", "func": "claudeops.tasks.backup", "minutes": 60, "offset": 37, "timeout": 4 * 3600},
    # Purges that were asked for on a page, or that a crash or a running session interrupted.
    {"name": "purges", "func": "claudeops.tasks.purge", "minutes": 15, "offset": 7, "timeout": 3600},
]
