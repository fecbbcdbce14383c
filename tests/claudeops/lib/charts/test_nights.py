"""Small bars of a figure by night."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.charts.nights import HEIGHT, LEAST, MOST, STEP, nights


@given(st.lists(st.integers(-5, 10**9)))
def test_bars_stand_within_the_plot_and_zero_has_none(values):
    drawn = nights(values)
    assert len(drawn.bars) == sum(value > 0 for value in values[-MOST:])
    for bar in drawn.bars:
        assert 0 <= bar.x <= (MOST - 1) * STEP
        assert LEAST <= bar.height <= HEIGHT and bar.y + bar.height == HEIGHT


def test_its_name_says_its_numbers():
    assert nights([1, 3, 3, 7]).said == "4 nights: last 7, usually 3, at most 7"
    assert nights([]).said == "0 nights: last 0, usually 0, at most 0"
