"""Windows of time: `memories/capture/window.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memories.capture.fields import checked_surface
from memories.capture.window import LONGEST_OPENING, is_open, next_opening, parse
from memories.errors import InvalidMemory
from memories.taxonomy import AGENT, OPS

NOW = datetime(2026, 11, 24, 14, 30, tzinfo=UTC)  # a Tuesday

DAYS = st.sampled_from(
    [
        *("2026-12-01", "2026-12-01..2026-12-05", "12-24..12-26", "12-24..01-06", "02-29", "mon", "mon,wed,fri"),
        *("mon-fri", "sat-mon", "first monday", "last friday", "third wed", "day 1", "day -1", "day 15,31", ""),
    ]
)
HOURS = st.sampled_from(["", "08:00-12:00", "22:00-06:00", "02:15-02:45", "00:00-24:00", "01:30-02:30"])
ZONES = st.sampled_from(["", "UTC", "Europe/Vienna", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
CRONS = st.sampled_from(
    ["cron 0 3 * * 1 for 6h", "cron */30 * * * * for 10m", "cron 30 2 * * * for 45m", "cron 0 0 1 1 * for 3d"]
)
TEXTS = st.one_of(
    st.tuples(DAYS, HOURS, ZONES).map(lambda parts: " ".join(filter(None, parts))).filter(lambda text: readable(text)),
    st.tuples(CRONS, ZONES).map(lambda parts: " ".join(filter(None, parts))),
)
# Around the changes of the clocks as often as at other times.
TIMES = st.one_of(
    st.datetimes(datetime(2026, 1, 1), datetime(2033, 1, 1), timezones=st.just(UTC)),
    st.datetimes(datetime(2027, 3, 27), datetime(2027, 3, 30), timezones=st.just(UTC)),
    st.datetimes(datetime(2026, 10, 24), datetime(2026, 10, 27), timezones=st.just(UTC)),
)


def readable(text: str) -> bool:
    try:
        return bool(parse(text))
    except InvalidMemory:
        return False


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_each_form_opens_when_it_says(subtests):
    for text, start, end in [
        ("2026-12-01", "2026-12-01", "2026-12-02"),
        ("2026-12-01..2026-12-05", "2026-12-01", "2026-12-06"),
        ("2026-12-01 .. 2026-12-05", "2026-12-01", "2026-12-06"),
        ("2026-11-20..2026-11-30", "2026-11-20", "2026-12-01"),
        ("12-24..12-26", "2026-12-24", "2026-12-27"),
        ("12-24..01-06", "2026-12-24", "2027-01-07"),
        ("02-29", "2028-02-29", "2028-03-01"),
        ("mon", "2026-11-30", "2026-12-01"),
        ("Monday", "2026-11-30", "2026-12-01"),
        ("mon,wed", "2026-11-25", "2026-11-26"),
        ("mon, wed", "2026-11-25", "2026-11-26"),
        ("mon-fri", "2026-11-23", "2026-11-28"),
        ("sat-mon", "2026-11-28", "2026-12-01"),
        ("first monday", "2026-12-07", "2026-12-08"),
        ("fourth tue", "2026-11-24", "2026-11-25"),
        ("last friday", "2026-11-27", "2026-11-28"),
        ("day 1", "2026-12-01", "2026-12-02"),
        ("day -1", "2026-11-30", "2026-12-01"),
        ("day -1,1", "2026-11-30", "2026-12-02"),
        ("day 31", "2026-12-31", "2027-01-01"),
        ("mon 08:00-12:00", "2026-11-30T08:00", "2026-11-30T12:00"),
        ("mon 8:00 - 12:00", "2026-11-30T08:00", "2026-11-30T12:00"),
        ("tue 08:00-12:00", "2026-12-01T08:00", "2026-12-01T12:00"),
        ("tue 08:00-15:00", "2026-11-24T08:00", "2026-11-24T15:00"),
        ("22:00-06:00", "2026-11-24T22:00", "2026-11-25T06:00"),
        ("2026-12-01..2026-12-05 22:00-06:00", "2026-12-01T22:00", "2026-12-02T06:00"),
        ("mon 20:00-24:00", "2026-11-30T20:00", "2026-12-01"),
        ("first monday Europe/Vienna", "2026-12-06T23:00", "2026-12-07T23:00"),
        ("mon 08:00-12:00 America/New_York", "2026-11-30T13:00", "2026-11-30T17:00"),
        ("cron 0 3 * * 1 for 6h", "2026-11-30T03:00", "2026-11-30T09:00"),
        ("cron 0 14 * * TUE for 90m", "2026-11-24T14:00", "2026-11-24T15:30"),
        ("cron 0 3 * * 1 for 6h Europe/Vienna", "2026-11-30T02:00", "2026-11-30T08:00"),
    ]:
        with subtests.test(str(text)):
            assert next_opening(parse(text), NOW) == (utc(start), utc(end))


def test_whole_days_that_follow_each_other_are_one_opening():
    assert next_opening(parse("sat,sun"), NOW) == (utc("2026-11-28"), utc("2026-11-30"))
    assert next_opening(parse("sat,sun 08:00-10:00"), NOW) == (utc("2026-11-28T08:00"), utc("2026-11-28T10:00"))


def test_the_end_of_a_window_is_outside_of_it():
    window = parse("mon 08:00-12:00")
    assert is_open(window, utc("2026-11-30T08:00"))
    assert is_open(window, utc("2026-11-30T11:59:59.999999"))
    assert not is_open(window, utc("2026-11-30T12:00"))
    assert not is_open(window, utc("2026-11-30T07:59:59.999999"))


def test_a_window_that_is_over_never_opens_again():
    window = parse("2026-11-01..2026-11-05")
    assert next_opening(window, NOW) is None
    assert not is_open(window, NOW)


def test_a_day_where_the_clocks_are_set_has_23_or_25_hours():
    spring, autumn = parse("2027-03-28 Europe/Vienna"), parse("2026-10-25 Europe/Vienna")
    lengths = [end - start for start, end in (next_opening(spring, NOW), next_opening(autumn, utc("2026-10-01")))]
    assert lengths == [timedelta(hours=23), timedelta(hours=25)]


def test_a_time_of_day_that_the_clocks_leave_out_is_told_in_the_hour_after_it():
    opening = next_opening(parse("sun 02:15-02:45 Europe/Vienna"), utc("2027-03-28"))
    assert opening == (utc("2027-03-28T01:15"), utc("2027-03-28T01:45"))
    opening = next_opening(parse("sun 02:30-03:00 Europe/Vienna"), utc("2027-03-28"))
    assert opening == (utc("2027-03-28T01:30"), utc("2027-03-28T02:00"))


@given(TEXTS, TIMES)
@settings(max_examples=400)
def test_a_window_is_open_exactly_within_its_openings(text, at):
    window = parse(text)
    opening = next_opening(window, at)
    if opening is None:
        assert not is_open(window, at)
        return
    start, end = opening
    assert start < end <= start + LONGEST_OPENING + timedelta(days=1)
    assert at < end
    assert is_open(window, at) == (start <= at)
    assert is_open(window, start)
    assert is_open(window, end - timedelta(microseconds=1))
    before = next_opening(window, start - timedelta(microseconds=1))
    assert before is not None
    assert before == opening or before[1] == start  # one that ends where this one begins


@given(TEXTS)
def test_the_stored_text_is_read_as_the_same_window(text):
    stored = parse(text).text
    assert parse(stored).text == stored
    assert next_opening(parse(stored), NOW) == next_opening(parse(text), NOW)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_by_name(text):
    try:
        window = parse(text)
    except InvalidMemory as refusal:
        assert "surface" in refusal.fields
    else:
        next_opening(window, NOW)


def test_what_is_no_window_is_refused_with_the_forms_that_are(subtests):
    for text in [
        *("soon", "fifth monday", "first", "day 0", "day 32", "day", "2026-13-01", "2026-12-05..2026-12-01", "02-30"),
        *("2026-01-01..2036-01-01", "mon 25:00-26:00", "mon 08:00-08:00", "mon 08:61-09:00", "monday tuesday"),
        *("cron 0 3 * * 1", "cron 0 3 * * for 6h", "cron 0 0 30 2 * for 6h", "cron 0 3 * * 1 for 0h", "UTC"),
        *("cron 0 3 * * 1 for 500d", "first monday Europe/Atlantis", "first monday ../../etc/passwd", " "),
    ]:
        with subtests.test(str(text)):
            with pytest.raises(InvalidMemory) as refused:
                parse(text)
            assert "first monday" in str(refused.value)
            assert "cron" in str(refused.value)


@pytest.mark.parametrize("text", ["mon-sun", "01-01..12-31", "00:00-24:00"])
def test_a_window_that_is_always_open_is_refused(text):
    with pytest.raises(InvalidMemory, match="always"):
        parse(text)


def test_a_window_is_stored_in_one_way_of_writing():
    assert checked_surface(" ", OPS) == ""
    assert checked_surface(" First  Monday 08:00-12:00 Europe/Vienna ", OPS) == (
        "first monday 08:00-12:00 Europe/Vienna"
    )
    assert checked_surface("mon UTC", OPS) == "mon"


def test_a_memory_of_an_agents_file_has_no_window():
    assert checked_surface("", AGENT) == ""
    with pytest.raises(InvalidMemory, match="always in it"):
        checked_surface("mon", AGENT)
