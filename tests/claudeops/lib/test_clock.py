"""The time of day jumps: it is noticed, and what a process has in its cache expires when it should."""

from __future__ import annotations

import time
from datetime import timedelta

from django.utils import timezone

from claudeops.lib.clock import Clock, ProcessCache
from tests.claudeops.processes import until


def test_a_jump_is_told_once_and_small_steps_are_not(monkeypatch):
    clock, now = Clock(), timezone.now
    assert clock.jump() == ""
    for hours, said in ((5, "set 5 h forward"), (5, ""), (-5, "set 10 h back"), (-5 + 1 / 3600, "")):
        monkeypatch.setattr(timezone, "now", lambda hours=hours: now() + timedelta(hours=hours))
        assert clock.jump() == said, hours


def test_entries_of_the_cache_expire_in_their_time_whatever_the_clock_says(monkeypatch):
    cache, now = ProcessCache("clock", {}), time.time
    cache.set("long", 1, 60)
    cache.set("short", 1, 0.1)
    for hours in (5, -5):
        monkeypatch.setattr(time, "time", lambda hours=hours: now() + hours * 3600)
        assert cache.get("long") == 1
    until(lambda: cache.get("short") is None, "the entry expires")
    cache.set("always", 1, None)
    assert (cache.get("long"), cache.get("always"), cache.get("never")) == (1, 1, None)
