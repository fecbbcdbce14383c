"""Ranges and their parts: whole hours, without a gap, in the days of the person's zone."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib import periods
from claudeops.lib.periods import HOUR, RANGES, Period

ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
NOW = datetime(2026, 11, 24, 8, 42, tzinfo=UTC)


@given(one=st.sampled_from(sorted(RANGES)), now=TIMES, zone=ZONES)
def test_the_parts_of_a_range_are_whole_hours_without_a_gap_and_the_last_one_holds_now(one, now, zone):
    found = RANGES[one]
    edges = periods.edges_of(found, now, ZoneInfo(zone))
    assert all(edge.minute == edge.second == edge.microsecond == 0 for edge in edges)
    assert all(later - earlier >= HOUR for earlier, later in itertools.pairwise(edges))
    assert edges[-2] <= now < edges[-1]
    assert found.length - timedelta(hours=25) <= now - edges[0] <= found.length + timedelta(hours=2)


def test_24_hours_are_the_hour_that_runs_and_the_23_before_it():
    edges = periods.edges_of(RANGES["24h"], NOW, ZoneInfo("Europe/Berlin"))
    assert len(edges) == 25
    assert (edges[0], edges[-1]) == (datetime(2026, 11, 23, 9, tzinfo=UTC), datetime(2026, 11, 24, 9, tzinfo=UTC))


def test_days_are_those_of_the_zone_and_one_is_shorter_when_the_clocks_change():
    edges = periods.edges_of(RANGES["30d"], datetime(2026, 3, 30, 12, tzinfo=UTC), ZoneInfo("Europe/Berlin"))
    assert len(edges) == 31
    assert edges[-1] == datetime(2026, 3, 30, 22, tzinfo=UTC)
    lengths = [later - earlier for earlier, later in itertools.pairwise(edges)]
    assert sorted(set(lengths)) == [timedelta(hours=23), timedelta(hours=24)]


@given(since=TIMES, hours=st.integers(1, 9000), zone=ZONES)
def test_a_period_is_read_back_as_it_was_written(since, hours, zone):
    since = since.replace(second=0, microsecond=0)
    text = periods.write(since, since + HOUR * hours)
    assert periods.parse(text, NOW, ZoneInfo(zone)) == Period(since, since + HOUR * hours)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("24h", Period(datetime(2026, 11, 23, 9, tzinfo=UTC))),
        ("7d", Period(datetime(2026, 11, 17, 23, tzinfo=UTC))),
        ("2026-11-24T03:00..", Period(datetime(2026, 11, 24, 2, tzinfo=UTC))),
        ("..2026-11-24T03:00Z", Period(None, datetime(2026, 11, 24, 3, tzinfo=UTC))),
        (
            "2026-11-23..2026-11-24",
            Period(datetime(2026, 11, 22, 23, tzinfo=UTC), datetime(2026, 11, 23, 23, tzinfo=UTC)),
        ),
    ],
)
def test_a_time_without_a_zone_is_in_the_persons(text, found):
    assert periods.parse(text, NOW, ZoneInfo("Europe/Berlin")) == found


@pytest.mark.parametrize(
    "text", ["", "..", "1y", "2026-11-24", "2026-11-24..2026-11-24", "2026-11-25..2026-11-24", "x..y"]
)
def test_what_is_no_period_is_refused(text):
    with pytest.raises(ValueError):
        periods.parse(text, NOW, UTC)


def test_an_unknown_range_is_the_shortest():
    assert periods.range_of("x") is periods.range_of(None) is RANGES["24h"]
