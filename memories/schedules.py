"""Schedules of this app: `minutes` between runs; `offset` in minutes after the full hour or midnight UTC."""

SCHEDULES = [
    {"name": "sweep", "func": "memories.tasks.sweep", "minutes": 60, "offset": 7},
    {"name": "judge", "func": "memories.tasks.judge", "minutes": 60, "offset": 22},
    {"name": "reflect", "func": "memories.tasks.reflect", "minutes": 60, "offset": 37},
    {"name": "triage", "func": "memories.tasks.triage", "minutes": 30, "offset": 11},
    {"name": "embed", "func": "memories.tasks.embed", "minutes": 1},
    {"name": "recall", "func": "memories.tasks.keep_recall", "minutes": 1},
    {"name": "maintain", "func": "memories.tasks.maintain", "minutes": 1},
]
