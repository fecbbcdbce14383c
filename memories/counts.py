"""Changes of memories by hour and kind (learned, confirmed, contradicted, faded), telemetry records by hour and level.

The counts are kept by triggers (`claudeops.lib.hour_counts`), since sweeps, bulk actions and imports write changes
by the thousand past the ORM. Must not know pages.
"""

from __future__ import annotations

from claudeops.lib.hour_counts import Counted

FADED = "faded"
"""The name of a decay that made its memory inactive."""

CHANGES = Counted(
    counts="memory_change_counts",
    source="memory_changes",
    time="at",
    name={
        "sqlite": "CASE WHEN {row}.kind = 'decayed' THEN CASE WHEN json_valid({row}.after) THEN "
        "CASE WHEN json_extract({row}.after, '$.active') = 0 THEN 'faded' ELSE 'decayed' END ELSE 'decayed' END "
        "ELSE {row}.kind END",
        "postgresql": "CASE WHEN {row}.kind = 'decayed' AND {row}.after->>'active' = 'false' THEN 'faded' "
        "ELSE {row}.kind END",
    },
    watched=("at", "kind", "after"),
)
TELEMETRY = Counted(
    counts="telemetry_counts",
    source="telemetry_records",
    time="at",
    name=dict.fromkeys(("sqlite", "postgresql"), "{row}.component || ':' || {row}.level"),
    watched=("at", "component", "level"),
)
ALL = (CHANGES, TELEMETRY)
