"""What this app does by itself, as data: claudeops/scheduling.py reads it. `minutes` between runs; `offset`
minutes after the full hour or midnight UTC, so that not everything happens at once."""

SCHEDULES = [
    {"name": "tick", "func": "sessions_app.tasks.tick", "minutes": 1},
    {"name": "reap", "func": "sessions_app.tasks.reap", "minutes": 1},
    {"name": "prune", "func": "sessions_app.tasks.prune", "minutes": 24 * 60, "offset": 200},
]
