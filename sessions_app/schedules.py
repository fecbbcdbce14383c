"""The schedules of this app, as data for claudeops/workers/schedules.py.

`minutes` between runs; `offset` in minutes after the full hour or midnight UTC, so that not all run at once.
"""

SCHEDULES = [
    {"name": "tick", "func": "sessions_app.tasks.tick", "minutes": 1},
    {"name": "reap", "func": "sessions_app.tasks.reap", "minutes": 1},
    {"name": "observe", "func": "sessions_app.tasks.observe_due", "minutes": 1},
    {"name": "memory_files", "func": "sessions_app.tasks.keep_memory_files", "minutes": 1},
    {"name": "agent_files", "func": "sessions_app.tasks.sync_files", "minutes": 5, "offset": 3},
    {"name": "transcripts", "func": "sessions_app.tasks.sweep_transcripts", "minutes": 5, "offset": 4},
    {"name": "task_items", "func": "sessions_app.tasks.send_task_items", "minutes": 5, "offset": 2},
    {"name": "journal", "func": "sessions_app.tasks.keep_journal", "minutes": 60, "offset": 52},
    {"name": "summaries", "func": "sessions_app.tasks.keep_summaries", "minutes": 24 * 60, "offset": 20},
    {"name": "prune", "func": "sessions_app.tasks.prune", "minutes": 24 * 60, "offset": 200},
    {"name": "relevance", "func": "sessions_app.tasks.adjust_relevance", "minutes": 7 * 24 * 60, "offset": 260},
]
