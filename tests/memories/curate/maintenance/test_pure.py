"""When a night's run is due, and shares of categories."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from memories.curate.maintenance.categories import shares
from memories.curate.maintenance.night import next_after, night_of, start_of

VIENNA = ZoneInfo("Europe/Vienna")


def test_the_hour_is_local_in_summer_and_winter():
    assert start_of(date(2026, 7, 1), 3, VIENNA) == datetime(2026, 7, 1, 1, tzinfo=UTC)
    assert start_of(date(2026, 12, 1), 3, VIENNA) == datetime(2026, 12, 1, 2, tzinfo=UTC)


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),
    st.integers(0, 23),
    st.sampled_from([VIENNA, ZoneInfo("UTC"), ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")]),
)
def test_a_time_belongs_to_the_night_that_began_before_it(at, hour, zone):
    night = night_of(at, hour, zone)
    assert start_of(night, hour, zone) <= at < next_after(at, hour, zone)
    assert next_after(at, hour, zone) - start_of(night, hour, zone) <= timedelta(hours=25)


def test_a_category_with_more_than_twice_an_equal_share_is_named():
    found = shares({("ops", "timing"): 30, ("ops", "behavior"): 10, ("knowledge", "projects"): 5}, {"ops": 5})
    assert [(one.category, one.share, one.is_over) for one in found] == [
        ("timing", 0.75, True),
        ("behavior", 0.25, False),
        ("projects", 1.0, False),
    ]
