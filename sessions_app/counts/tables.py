"""What is counted of sessions and events, for the triggers of `claudeops.lib.hour_counts`.

Triggers rather than calls: `run.close()`, the queue, the importer, the admin's deletions with their cascades and
`bulk_create` all write these rows, and what the triggers cost an ingest was too little to be measured.
"""

from claudeops.lib.hour_counts import Counted

_PAID = "CASE WHEN {row}.\"trigger\" = 'import' THEN 0 ELSE %s END"
_MICROS = (  # SQLite stores numbers that are larger than the column
    "CASE WHEN abs({row}.cost_usd) < 1000000 THEN CAST(round({row}.cost_usd * 1000000) AS BIGINT) ELSE 0 END"
)

SESSIONS = Counted(
    counts="session_counts",
    source="sessions",
    time="ended_at",
    name={"sqlite": "{row}.status", "postgresql": "{row}.status"},
    where="{row}.ended_at IS NOT NULL AND {row}.status NOT IN ('queued', 'running')",
    sums={"paid_micros": _PAID % _MICROS, "paid_turns": _PAID % "{row}.num_turns"},
    watched=("ended_at", "status", "cost_usd", "num_turns", "trigger"),
)
AGENTS = Counted(
    counts="agent_counts",
    source="sessions",
    time="ended_at",
    name=dict.fromkeys(("sqlite", "postgresql"), "{row}.agent_id || ':' || {row}.status"),
    where=f"{{row}}.agent_id IS NOT NULL AND {SESSIONS.where}",
    sums=SESSIONS.sums,
    watched=("agent_id", *SESSIONS.watched),
)
EVENTS = Counted(
    counts="event_counts",
    source="events",
    time="created_at",
    name={"sqlite": "{row}.level", "postgresql": "{row}.level"},
    watched=("created_at", "level"),
)
ALL = (SESSIONS, AGENTS, EVENTS)
