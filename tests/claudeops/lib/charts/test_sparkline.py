"""The sparkline: it stays in its box, begins and ends at the edges, and its dot is the last value."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.charts.sparkline import EDGE, HEIGHT, WIDTH, sparkline

END = datetime(2026, 3, 31, tzinfo=UTC)
START = END - timedelta(days=30)


def points(steps: list[tuple[float, float]]) -> list[tuple[datetime, float]]:
    return [(END - timedelta(days=days), value) for days, value in sorted(steps, reverse=True)]


@given(st.lists(st.tuples(st.floats(0, 60), st.floats(-1, 2)), min_size=1, max_size=20))
def test_the_line_stays_in_its_box_and_spans_it(steps):
    line = sparkline(points(steps), START, END, said="x")
    numbers = re.findall(r"([MHV])([\d.]+)(?: ([\d.]+))?", line.path)
    xs = [float(one) for kind, one, _ in numbers if kind in "MH"]
    ys = [float(two if kind == "M" else one) for kind, one, two in numbers if kind in "MV"]
    assert xs == sorted(xs)
    assert (xs[0], xs[-1]) == (EDGE, WIDTH - EDGE)
    assert all(EDGE <= y <= HEIGHT - EDGE for y in ys)
    assert line.dot_y == ys[-1]


def test_a_value_holds_until_the_next_and_the_first_one_before_its_time():
    line = sparkline(points([(15, 1.0), (0, 0.5)]), START, END, said="30 days: 1.00 to 0.50")
    assert line.path == "M2 2H28V2H54V9H54"
    assert sparkline(points([(45, 0.0), (40, 1.0)]), START, END, said="").path == "M2 2H54"


def test_a_line_needs_a_point():
    with pytest.raises(ValueError, match="point"):
        sparkline([], START, END, said="")
