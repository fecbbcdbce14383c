"""The confidence chart: where in the picture a time and a confidence stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memories.history.chart import PAST, chart_of
from memories.history.confidence_history import ConfidenceHistory, Mark
from memories.history.forecast import End, Forecast, Point

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


@given(
    minutes=st.lists(st.integers(1, 2_000_000), min_size=2, max_size=12, unique=True),
    days=st.lists(st.integers(1, 900), min_size=1, max_size=12, unique=True),
)
def test_the_changes_of_a_memory_stand_apart_in_their_order_however_young_it_is(minutes, days):
    times = sorted(NOW - timedelta(minutes=found) for found in minutes)
    to_come = [NOW + timedelta(days=found) for found in sorted(days)]
    points = (Point(NOW, 0.7), *(Point(at, 0.6) for at in to_come))
    picture = chart_of(
        ConfidenceHistory(
            past=tuple(Point(at, 0.7) for at in times),
            marks=tuple(Mark(at, 0.7, "reinforced", "confirmed") for at in times),
            ahead=Forecast(points, to_come[-1], next(iter(End)), 0.3),
            now=NOW,
            expires_at=None,
            cut=False,
            words="",
        )
    )
    places = [mark.x for mark in picture.marks]
    assert places == sorted(places) and places[0] == 0
    assert 100 * PAST <= picture.today.x <= 100
    span = (NOW - times[0]) / timedelta(minutes=1)
    for (at, one), (later, other) in pairwise(zip(times, places, strict=True)):
        least = 100 * PAST * ((later - at) / timedelta(minutes=1)) / span
        assert other - one >= least - 0.02
    corners = [float(corner.partition(",")[0]) / 10 for corner in picture.ahead.split()]
    assert corners == sorted(corners) and all(picture.today.x - 0.02 <= x <= 100.02 for x in corners)
