"""Times in the active zone, at the edges of summer time."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from claudeops.lib import local_time


@pytest.mark.parametrize(
    ("zone", "utc", "exact", "minute"),
    [
        ("Europe/Berlin", (2026, 10, 25, 0, 30), "2026-10-25 02:30:00 CEST", "02:30"),
        ("Europe/Berlin", (2026, 10, 25, 1, 30), "2026-10-25 02:30:00 CET", "02:30"),  # the hour comes twice
        ("Europe/Berlin", (2026, 3, 29, 0, 59), "2026-03-29 01:59:00 CET", "01:59"),
        ("Europe/Berlin", (2026, 3, 29, 1, 0), "2026-03-29 03:00:00 CEST", "03:00"),  # there is no 02:00
        ("America/Sao_Paulo", (2026, 1, 1, 1, 0), "2025-12-31 22:00:00 UTC-03", "22:00"),
        ("Asia/Kolkata", (2026, 6, 1, 19, 0), "2026-06-02 00:30:00 IST", "00:30"),
    ],
)
def test_a_time_is_formatted_in_the_active_zone(zone, utc, exact, minute):
    at = datetime(*utc, tzinfo=UTC)
    with timezone.override(ZoneInfo(zone)):
        assert local_time.exact(at) == exact
        assert local_time.clock(at) == f"{minute}:{at:%S}"
        assert local_time.on_hover(at) == f"{exact}, {at:%Y-%m-%d %H:%M:%S} UTC"
    with timezone.override(None):
        assert local_time.on_hover(at) == f"{at:%Y-%m-%d %H:%M:%S} UTC"
