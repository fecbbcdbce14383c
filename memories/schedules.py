"""What this app does by itself, as data: claudeops/scheduling.py reads it. `minutes` between runs; `offset`
minutes after the full hour or midnight UTC, so that not everything happens at once."""

SCHEDULES = [
    {"name": "sweep", "func": "memories.tasks.sweep", "minutes": 60, "offset": 7},
    {"name": "embed", "func": "memories.tasks.embed", "minutes": 1},
    {"name": "recall", "func": "memories.tasks.keep_recall", "minutes": 1},
]
