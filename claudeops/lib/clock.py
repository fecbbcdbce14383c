"""Notice that the clock was set, by comparing the time of day with the monotonic clock, which nobody sets.

And a cache that does not care.
"""

from __future__ import annotations

import time
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.locmem import LocMemCache
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


class ProcessCache(LocMemCache):
    """Django's cache of a process. With Django's own, a clock that is set back by hours leaves pages as old."""

    def get_backend_timeout(self, timeout: Any = DEFAULT_TIMEOUT) -> float | None:
        ends = super().get_backend_timeout(timeout)
        return None if ends is None else ends - time.time() + time.monotonic()

    def _has_expired(self, key: str) -> bool:
        ends = self._expire_info.get(key, -1.0)  # type: ignore[attr-defined]  # the stubs leave it out
        return ends is not None and ends <= time.monotonic()


def _difference() -> float:
    return timezone.now().timestamp() - time.monotonic()
