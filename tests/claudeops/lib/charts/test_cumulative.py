"""The line of a day's cost, and what the day is expected to come to."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.charts.cumulative import HEIGHT, ROOM, WIDTH, cumulative, expectation

AMOUNTS = st.floats(0, 1000)
DAY = st.lists(AMOUNTS, min_size=24, max_size=24)


def flat(amount: float) -> list[float]:
    return [amount] * 24


@given(so_far=AMOUNTS, elapsed=st.floats(0, 24), days=st.lists(DAY, max_size=7))
def test_a_day_is_expected_to_cost_no_less_than_it_has(so_far, elapsed, days):
    assert expectation(so_far, elapsed, days).amount >= so_far


def test_the_rest_of_the_day_is_the_median_of_the_same_hours_before():
    found = expectation(3.0, 12.0, [flat(1), flat(2), flat(100)])
    assert found.amount == pytest.approx(3 + 12 * 2)
    assert found.basis == "median of the same hours of 3 days"
    assert expectation(3.0, 12.75, [flat(1)] * 7).amount == pytest.approx(3 + 11.25)
    assert expectation(3.0, 24.0, [flat(1)] * 7).amount == pytest.approx(3)


def test_without_three_days_before_the_rate_of_today_goes_on():
    found = expectation(3.0, 6.0, [flat(1), flat(1)])
    assert (found.amount, found.basis) == (12.0, "rate of today")
    assert expectation(1.0, 0.0, []).amount == 25.0, "the first minutes count as an hour"


@given(by_hour=DAY, running=AMOUNTS, elapsed=st.floats(0, 24), limit=AMOUNTS, days=st.lists(DAY, max_size=7))
def test_the_line_rises_within_the_plot_up_to_now_and_the_forecast_goes_on_from_there(
    by_hour, running, elapsed, limit, days
):
    so_far = sum(by_hour[: int(elapsed)]) + running
    expected = expectation(so_far, elapsed, days)
    chart = cumulative(by_hour, so_far, elapsed, limit, expected)
    points = [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) ([\d.]+)", chart.line)]
    assert all(0 <= x <= WIDTH and ROOM - 0.01 <= y <= HEIGHT for x, y in points)
    assert points == sorted(points, key=lambda point: (point[0], -point[1]))
    assert points[-1][0] == pytest.approx(elapsed * 10, abs=0.01)
    assert bool(chart.forecast) == (elapsed < 24)
    assert chart.over == (0 < limit < expected.amount)
    assert bool(chart.limit) == (0 < limit <= 3 * max(so_far, expected.amount))


def test_its_table_has_the_hours_in_which_something_was_added():
    by_hour = [0.5, 0, 0.25] + [0.0] * 21
    chart = cumulative(by_hour, 0.8, 5.5, 2.0, expectation(0.8, 5.5, []))
    assert chart.rows == ((1, 0.5), (3, 0.75))
    assert (chart.so_far, chart.over) == (0.8, True)
