"""The confidence chart: where times, confidences, marks and labels stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.history.confidence import APART, LEGEND, PAST, SHAPES, ConfidenceHistory, Mark, chart_of
from memories.history.forecast import End, Forecast, Point
from memories.models import Change

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


def course(times, to_come, *, end=End.DECAYED, expires_at=None, kinds=("reinforced",), limit=0.3, now=NOW):
    """A history whose changes were at `times`, with one forecast step at each of `to_come`."""
    points = (Point(now, 0.7), *(Point(at, 0.6) for at in to_come))
    return ConfidenceHistory(
        past=tuple(Point(at, 0.7) for at in times),
        marks=tuple(Mark(n, at, 0.7, kinds[n % len(kinds)], "confirmed") for n, at in enumerate(times)),
        ahead=Forecast(points, to_come[-1] if to_come else None, end, limit),
        now=now,
        expires_at=expires_at,
        cut=False,
        words="",
    )


AGES = st.lists(st.integers(1, 2_000_000), min_size=2, max_size=60, unique=True)
DAYS = st.lists(st.integers(1, 900), min_size=1, max_size=12, unique=True)


def ago(minutes):
    return sorted(NOW - timedelta(minutes=found) for found in minutes)


def ahead(days):
    return [NOW + timedelta(days=found) for found in sorted(days)]


@given(minutes=AGES, days=DAYS)
def test_the_changes_of_a_memory_stand_apart_in_their_order_however_young_it_is(minutes, days):
    times = ago(minutes)
    picture = chart_of(course(times, ahead(days)))
    places = [event.x for event in picture.events]
    assert [event.pk for event in picture.events] == list(range(len(times)))
    assert places == sorted(places)
    assert places[0] >= 0 and places[-1] <= picture.today.x + 0.02
    assert 100 * PAST <= picture.today.x <= 100
    least = min(APART, picture.today.x / (len(times) - 1))
    assert all(other - one >= least - 0.02 for one, other in pairwise(places))


@given(minutes=AGES, days=DAYS)
def test_a_mark_with_room_around_it_stands_at_its_time(minutes, days):
    times = ago(minutes)
    picture = chart_of(course(times, ahead(days)))
    span = (NOW - times[0]) / timedelta(minutes=1)
    wanted = [picture.today.x * ((at - times[0]) / timedelta(minutes=1)) / span for at in times]
    if all(other - one >= APART for one, other in pairwise(wanted)):
        assert [event.x for event in picture.events] == pytest.approx(wanted, abs=0.02)


@given(minutes=AGES, days=DAYS)
def test_the_line_goes_forward_to_today_and_the_forecast_from_there(minutes, days):
    picture = chart_of(course(ago(minutes), ahead(days)))
    line, forecast = (
        [float(corner.partition(",")[0]) / 10 for corner in points.split()] for points in (picture.line, picture.ahead)
    )
    assert line == sorted(line) and line[0] == 0 and line[-1] == pytest.approx(picture.today.x, abs=0.02)
    assert forecast == sorted(forecast) and all(picture.today.x - 0.02 <= x <= 100.02 for x in forecast)


@given(
    minutes=AGES,
    days=DAYS,
    end=st.sampled_from(End),
    expires=st.none() | st.integers(1, 900),
    limit=st.sampled_from([None, 0.2, 0.3]),
    zone=st.sampled_from(["UTC", "Asia/Kathmandu", "America/St_Johns", "Europe/Berlin", "Pacific/Kiritimati"]),
)
def test_no_two_labels_of_a_row_overlap_and_none_leaves_the_plot(minutes, days, end, expires, limit, zone):
    expires_at = NOW + timedelta(days=expires) if expires else None
    picture = chart_of(course(ago(minutes), ahead(days), end=end, expires_at=expires_at, limit=limit), ZoneInfo(zone))
    rows = [
        [picture.today],
        [picture.expires],
        [picture.limit, picture.fades],
        list(picture.ticks),
    ]
    for row in rows:
        spans = sorted(place.span for place in row if place is not None)
        assert all(begin >= -0.02 and end <= 100.02 for begin, end in spans)
        assert all(one[1] < other[0] for one, other in pairwise(spans))
    assert 1 <= len(picture.ticks) <= 9


@pytest.mark.parametrize(
    ("age", "first", "further"),
    [
        (timedelta(minutes=3), "24 Nov, 12:57", []),
        (timedelta(hours=10), "24 Nov, 03:00", ["12:00"]),
        (timedelta(days=12), "12 Nov", []),
        (timedelta(days=100), "16 Aug", ["Oct"]),
        (timedelta(days=800), "15 Sep 2024", ["2026"]),
    ],
)
def test_the_axis_of_time_is_labelled_in_the_zone_of_the_person_by_the_age_of_the_memory(age, first, further):
    picture = chart_of(course([NOW - age, NOW - age / 2], [NOW + timedelta(days=40)]), ZoneInfo("Europe/Berlin"))
    labels = [tick.label for tick in picture.ticks]
    assert labels[0] == first
    assert set(further) <= set(labels)


def test_the_day_of_fading_is_that_of_the_person():
    late = datetime(2026, 11, 26, 23, 30, tzinfo=UTC)
    assert chart_of(course([NOW - timedelta(days=9)], [late])).fades.label == "fades 26 Nov"
    kathmandu = chart_of(course([NOW - timedelta(days=9)], [late]), ZoneInfo("Asia/Kathmandu"))
    assert kathmandu.fades.label == "fades 27 Nov"


def test_an_end_of_its_own_is_a_line_and_fading_is_a_point_of_the_threshold():
    own = chart_of(course([NOW - timedelta(days=9)], [NOW + timedelta(days=5)], end=End.EXPIRED))
    assert (own.fades, own.expires.label) == (None, "expires 29 Nov")
    both = chart_of(course([NOW - timedelta(days=9)], [NOW + timedelta(days=5)], expires_at=NOW + timedelta(days=60)))
    assert (both.fades.label, both.fades.y, both.expires.label) == ("fades 29 Nov", 70, "expires 23 Jan 2027")


def test_each_kind_of_change_has_a_shape_and_the_legend_has_those_that_occur():
    assert set(SHAPES.values()) | {"edited"} == set(LEGEND)
    kinds = ("created", "decayed", "edited", "restored")
    picture = chart_of(course([NOW - timedelta(days=n) for n in (9, 6, 4, 2)], [], kinds=kinds))
    assert [event.shape for event in picture.events] == ["created", "time", "edited", "edited"]
    assert picture.legend == ("created", "edited", "time")
    assert all(kind in SHAPES for kind in (Change.CREATED, Change.DECAYED, Change.CONTRADICTED, Change.REINFORCED))


def test_a_mark_names_its_change_its_time_and_the_confidence_after_it():
    picture = chart_of(course([NOW - timedelta(days=9), NOW - timedelta(hours=1)], []), ZoneInfo("Europe/Berlin"))
    assert [(event.pk, event.label) for event in picture.events] == [
        (0, "15 Nov, 13:00: confirmed, 0.70"),
        (1, "24 Nov, 12:00: confirmed, 0.70"),
    ]


def test_marks_stand_by_their_time_when_an_older_log_was_read_later():
    times = [NOW - timedelta(days=days) for days in (9, 2, 5)]
    picture = chart_of(course(times, []))
    assert [event.pk for event in picture.events] == [0, 2, 1]
