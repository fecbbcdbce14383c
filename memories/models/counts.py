"""Counts of memory changes by hour. Only the triggers of `claudeops.lib.hour_counts` write them."""

from django.db import models

from claudeops.lib.hour_counts import HourCount


class MemoryChangeCount(HourCount):
    """Changes of memories by hour; `name` is the kind, or `faded` for a decay that made its memory inactive."""

    class Meta(HourCount.Meta):
        db_table = "memory_change_counts"


class TelemetryCount(HourCount):
    """Telemetry records by the hour of their end; `name` is their component and level: "observe:warning"."""

    name = models.CharField(max_length=48)

    class Meta(HourCount.Meta):
        db_table = "telemetry_counts"
