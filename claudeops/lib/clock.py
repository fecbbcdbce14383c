"""Notice that the clock was set, by comparing the time of day with the monotonic clock, which nobody sets."""

from __future__ import annotations

import time

from django.utils import timezone

from claudeops.lib.humanize import span

LEAST = 5.0
"""Seconds: a clock that is kept right by NTP is moved by less at once."""


class Clock:
    """The difference between the two clocks, as of the last look."""

    def __init__(self) -> None:
        self._difference = _difference()

    def jump(self) -> str:
        """Say how the clock was set since the last look, such as "set 5 h back"; "" when it was not.

        A machine that slept looks the same: its monotonic clock stood still.
        """
        before, self._difference = self._difference, _difference()
        seconds = self._difference - before
        if abs(seconds) < LEAST:
            return ""
        return f"set {span(abs(seconds))} {'forward' if seconds > 0 else 'back'}"


def _difference() -> float:
    return timezone.now().timestamp() - time.monotonic()
