"""The schedules of the project, as data for claudeops/workers/schedules.py."""

# The backup of a day is made in its first hour, or when the machine runs again; after a failure it is tried again.
SCHEDULES = [
    {"name": "backup", "func": "claudeops.tasks.backup", "minutes": 60, "offset": 37, "timeout": 4 * 3600},
]
