"""Small bars beside a number."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.charts.multiples import HEIGHT, WIDTH, multiple


@given(st.lists(st.integers(0, 10**6), max_size=100))
def test_there_is_one_line_within_the_picture_for_each_value_above_zero(values):
    found = multiple(values)
    lines = [(float(x), float(up)) for x, up in re.findall(r"M([\d.]+) 18v-([\d.]+)", found.path)]
    assert len(lines) == sum(value > 0 for value in values)
    assert found.total == sum(values)
    assert all(0 < x < WIDTH and 2 <= up <= HEIGHT for x, up in lines)
    assert not lines or max(up for _, up in lines) == HEIGHT
