"""Stacked bars: every number is drawn to scale, what matters at the base line, and said in words."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.charts.bars import CUT, ROOM, STEP, Kind, Part, bars

KINDS = (
    Kind("failed", "failed", "failed", "hatched"),
    Kind("escalated", "escalated", "escalated", "pointed"),
    Kind("completed", "ok", "completed"),
)
NUMBERS = st.lists(st.dictionaries(st.sampled_from([kind.name for kind in KINDS]), st.integers(0, 10**6)), max_size=100)


def parts(numbers):
    return [Part(f"{n}", f"hour {n}", f"/sessions?ended={n}", one) for n, one in enumerate(numbers)]


@given(NUMBERS)
def test_each_block_lies_in_its_bar_as_high_as_its_number_and_above_the_one_before(numbers):
    chart = bars("Sessions", parts(numbers), KINDS)
    top = max((sum(one.values()) for one in numbers), default=0)
    assert chart.total == sum(sum(one.values()) for one in numbers)
    assert [bar.room for bar in chart.bars] == [f"M{n * STEP:g} 0h16v92h-16z" for n in range(len(numbers))]
    drawn = {kind.name: re.findall(r"M([\d.]+) ([\d.]+)[^M]*?v([\d.]+)h-12z", path) for kind, path in chart.blocks}
    for kind in KINDS:
        own = [n for n, one in enumerate(numbers) if one.get(kind.name)]
        for n, (x, y, height) in zip(own, drawn.get(kind.name, []), strict=True):
            below = sum(numbers[n].get(other.name, 0) for other in KINDS[: KINDS.index(kind)])
            scale = (chart.height - ROOM) / top
            size = numbers[n][kind.name] * scale
            shoulder = min(4.0, max(size - CUT, size / 2) / 2) if kind.shape == "pointed" else 0
            assert n * STEP <= float(x) <= (n + 1) * STEP - 12
            assert abs(float(y) - shoulder - (chart.height - below * scale - size)) < 0.02
            assert abs(float(height) + shoulder - max(size - CUT, size / 2)) < 0.02


@given(NUMBERS)
def test_labels_stand_apart_within_the_plot_and_the_last_one_at_its_end(numbers):
    labels = bars("Sessions", parts(numbers), KINDS).labels
    assert len(labels) <= 6
    places = [label.x for label in labels]
    assert places == sorted(set(places))
    assert not numbers or (places[0], places[-1], labels[-1].text) == (0, 100, "now")


def test_it_says_its_numbers():
    chart = bars("Sessions by hour", parts([{"failed": 2, "completed": 1200}, {}, {"failed": 1}]), KINDS)
    assert chart.said == "Sessions by hour: 1,200 completed, 3 failed."
    assert [bar.said for bar in chart.bars] == ["hour 0: 2 failed, 1,200 completed", "hour 1: none", "hour 2: 1 failed"]
    assert [bar.part.words for bar in chart.filled] == ["hour 0", "hour 2"]
    assert chart.bars[0].values == ("2", "0", "1,200")
    assert chart.top == "1,202"
    assert bars("Sessions", parts([{}, {}]), KINDS).said == "Sessions: none."


def test_an_escalated_block_is_pointed_and_others_are_not():
    (_, failed), (_, escalated) = bars("Sessions", parts([{"failed": 1, "escalated": 1}]), KINDS).blocks
    assert re.fullmatch(r"M[\d.]+ [\d.]+h12v[\d.]+h-12z", failed)
    assert re.fullmatch(r"M[\d.]+ [\d.]+l6 -4.00 6 4.00v[\d.]+h-12z", escalated)


def test_a_limit_is_drawn_unless_the_bars_would_be_too_low_beside_it():
    near = bars("Cost", parts([{"failed": 10}]), KINDS, limit=20)
    assert (near.limit, near.top) == ("M0 2h16", "20")
    far = bars("Cost", parts([{"failed": 10}]), KINDS, limit=31)
    assert (far.limit, far.top) == ("", "10")
