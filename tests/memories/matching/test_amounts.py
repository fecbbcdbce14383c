"""Reading and comparing amounts: `memories/matching/amounts.py`, `quantities.py`. No database."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.matching.normalise import normal_form
from memories.matching.quantities import MOST, Compared, Quantity, agree, compare


def amounts(text: str) -> tuple[Quantity, ...]:
    return normal_form(text).amounts


def compared(known: str, new: str) -> Compared:
    return compare(amounts(known), amounts(new))


def test_ways_to_write_one_amount(subtests):
    for same in [
        (
            "takes 60s",
            "takes 60 seconds",
            "takes 60 sec",
            "takes 1 minute",
            "takes a minute",
            "takes 1min",
            "takes sixty seconds",
        ),
        ("takes 90s", "takes a minute and a half", "takes 1.5 minutes", "takes 1.5m"),
        ("takes 30 minutes", "takes half an hour", "takes 0.5 h", "takes thirty-minutes"),
        ("lasts 24 hours", "lasts a day", "lasts 1d", "lasts twenty-four hours", "lasts 1,440 minutes"),
        ("lasts 2 days", "lasts a couple of days", "lasts 48h"),
        ("lasts a year", "lasts 365 days", "lasts 12 months"),
        ("uses 4G", "uses 4 GB", "uses 4096 MB", "uses 4GiB", "uses four gigabytes"),
        ("uses 1000 MB", "uses 1 GB"),
        ("uses 90%", "uses 90 percent", "uses 90 pct", "uses ninety percent"),
        (
            "runs daily",
            "runs every day",
            "runs once a day",
            "runs every 24 hours",
            "runs once per day",
            "runs each day",
        ),
        ("runs twice a day", "runs every 12 hours", "runs twice daily", "runs 2 times per day"),
        ("runs every other day", "runs every 48h"),
        ("runs every 5 minutes", "runs at five-minute intervals", "runs every 300s", "interval of 5 minutes"),
        ("starts at 02:00", "starts at 2am", "starts at 2 AM", "starts at 2:00"),
        ("starts at 14:30", "starts at 2:30pm"),
        ("has 3 nodes", "has three nodes", "a 3-node setup"),
        ("takes 5-10 minutes", "takes 5 to 10 minutes", "takes between 5 and 10 minutes", "takes 300 to 600 seconds"),
        ("needs at least 2 GB", "needs >= 2 GB", "needs 2 GB at least", "needs no less than 2 GB", "needs 2 GB"),
        ("takes at most 2 minutes", "takes up to 2 minutes", "takes no more than 120s", "takes <= 2 min"),
    ]:
        with subtests.test(str(same)):
            first = amounts(same[0])
            assert len(first) == 1
            for other in same[1:]:
                assert len(amounts(other)) == 1, other
                assert agree(first[0], amounts(other)[0]), other


def test_other_amounts_of_the_same_kind_are_different(subtests):
    for known, new in [
        ("takes 60s", "takes 5 minutes"),
        ("takes 60s", "takes 61s"),
        ("runs daily", "runs weekly"),
        ("uses 4 GB", "uses 8 GB"),
        ("has 3 nodes", "has a single node"),
        ("starts at 02:00", "starts at 2pm"),
        ("MTU is 1380", "MTU is 1420"),
        ("takes 5 to 10 minutes", "takes 20 minutes"),
        ("needs at least 4 GB", "needs 2 GB"),
        ("needs at least 4 GB", "needs at least 8 GB"),
        ("takes 5m", "takes 60s"),
    ]:
        with subtests.test(str(known)):
            assert len(compared(known, new).different) == 1


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("takes 60s", "takes 60 to 90 seconds"),
        ("takes up to 10 minutes", "takes 10 minutes"),
        ("needs at least 2 GB", "needs 4 GB"),
    ],
)
def test_amounts_that_overlap_are_neither_the_same_nor_different(known, new):
    assert len(compared(known, new).unsure) == 1


def test_amounts_of_other_kinds_are_not_compared():
    found = compared("takes 60s", "uses 60 MB")
    assert (found.same, found.different, found.unsure) == ((), (), ())
    assert [amount.written for amount in (*found.only_known, *found.only_new)] == ["60 s", "60 mb"]
    assert not compared("has 3 nodes", "has 5 volumes").different


def test_about_reaches_a_tenth():
    assert compared("takes about 60s", "takes 65 seconds").same
    assert compared("takes ~60s", "takes 75 seconds").different
    assert compared("takes 60s", "takes 65 seconds").different


def test_m_is_a_minute_or_a_megabyte():
    assert compared("limit is 100m", "limit is 100 MB").same
    assert compared("timeout is 100m", "timeout is 100 minutes").same
    assert not compared("limit is 100m", "limit is 100 GB").same


def test_amounts_that_change_places_are_not_the_same():
    assert not compared("waits 10s, retries for 60s", "waits 10s, retries for 60s").unsure
    assert compared("waits 10s, retries for 60s", "waits 60s, retries for 10s").unsure


def test_numbers_that_name_something_are_no_amounts(subtests):
    for text, name in [
        ("listens on port 8096", "8096"),
        ("listens on 8096", "8096"),
        ("runs as uid 1000", "1000"),
        ("needs version 8.2", "8.2"),
        ("needs PHP 8.2", "8.2"),
        ("runs v2.1.3", "2.1.3"),
        ("runs on nas-01", "nas-01"),
        ("returns a 502", "502"),
        ("kernel is held at 6.5", "6.5"),
        ("serves 10.0.0.0/24", "10.0.0.0/24"),
    ]:
        with subtests.test(str(text)):
            assert amounts(text) == ()
            assert normal_form(text).names == {name}


@pytest.mark.parametrize(
    "text", ["one of the nodes", "a second restart helps", "once it is up", "under load", "the first of every month"]
)
def test_words_that_only_look_like_amounts(text):
    assert amounts(text) == ()


@given(st.integers(1, 10**6), st.sampled_from(["s", " seconds", " sec"]))
def test_seconds_are_seconds_however_written(seconds, unit):
    (found,) = amounts(f"takes {seconds}{unit}")
    assert (found.readings[0].low, found.readings[0].high) == (seconds, seconds)
    assert found.written


@given(st.integers(1, 1000))
def test_minutes_are_sixty_seconds(minutes):
    assert compared(f"takes {minutes} minutes", f"takes {minutes * 60} seconds").same
    assert compared(f"takes {minutes} minutes", f"takes {minutes} seconds").different


def test_more_amounts_than_a_fact_has_are_not_paired():
    many = amounts("then ".join(f"waits {at}s and " for at in range(MOST + 1)))
    assert len(many) == MOST + 1
    assert compare(many, many) == Compared(only_known=many, only_new=many)


def test_a_number_no_float_can_hold_is_a_name():
    assert normal_form(f"takes {'9' * 400}").amounts == ()
    assert all(
        math.isfinite(reading.low) for amount in amounts("takes 999999999999999 s") for reading in amount.readings
    )
