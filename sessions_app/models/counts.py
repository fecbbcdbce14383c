"""Counts of sessions and events by hour. Only the triggers of `claudeops.lib.hour_counts` write them."""

from django.db import models

from claudeops.lib.hour_counts import HourCount


class SessionCount(HourCount):
    """Sessions by the hour in which they ended; `name` is their status.

    `paid_micros` is what they cost in millionths of a US dollar, `paid_turns` their turns, both without imported logs.
    """

    paid_micros = models.BigIntegerField(default=0)
    paid_turns = models.BigIntegerField(default=0)

    class Meta(HourCount.Meta):
        db_table = "session_counts"


class AgentCount(HourCount):
    """Sessions of an agent by the hour in which they ended; `name` is the agent's id and their status: "7:completed".

    `paid_micros` and `paid_turns` are as in SessionCount.
    """

    name = models.CharField(max_length=40)
    paid_micros = models.BigIntegerField(default=0)
    paid_turns = models.BigIntegerField(default=0)

    class Meta(HourCount.Meta):
        db_table = "agent_counts"
        indexes = [models.Index(fields=["name", "hour"], name="agent_counts_of_name")]


class EventCount(HourCount):
    """Events by the hour in which they were reported; `name` is their level."""

    class Meta(HourCount.Meta):
        db_table = "event_counts"
