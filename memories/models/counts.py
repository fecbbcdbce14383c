"""Counts of memory changes by hour. Only the triggers of `claudeops.lib.hour_counts` write them."""

from claudeops.lib.hour_counts import HourCount


class MemoryChangeCount(HourCount):
    """Changes of memories by hour; `name` is the kind, or `faded` for a decay that made its memory inactive."""

    class Meta(HourCount.Meta):
        db_table = "memory_change_counts"
