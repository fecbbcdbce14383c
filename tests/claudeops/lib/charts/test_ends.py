"""The lanes of what ends when: geometry without a database."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from claudeops.lib.charts.ends import HEIGHT, HIGHEST, LOWEST, Owner, ends

DAYS = some.dictionaries(some.integers(-5, 80), some.integers(0, 10**6), max_size=20)


def test_a_lane_states_how_many_end_and_when_the_first_does():
    chart = ends([Owner("web", "/p", {1: 2, 20: 1}), Owner("shop", "/s", {}), Owner("one", "/o", {0: 1})], 8)
    assert [lane.said for lane in chart.lanes] == [
        "web: 3 memories end within 8 weeks, the first tomorrow",
        "shop: 0 memories end within 8 weeks",
        "one: 1 memory ends within 8 weeks, the first today",
    ]
    assert chart.said == "4 memories end within 8 weeks."
    assert chart.weeks == (3, 0, 1, 0, 0, 0, 0, 0)
    assert chart.lanes[0].weeks == (2, 0, 1, 0, 0, 0, 0, 0)


def test_the_sooner_an_end_the_more_urgent_its_mark_and_the_more_end_the_higher_it_is():
    [lane] = ends([Owner("web", "/p", {2: 1, 7: 5, 30: 3})], 8).lanes
    assert [mark.outcome for mark in lane.marks] == ["failed", "stopped", "skipped"]
    assert lane.marks[0].height == LOWEST
    assert lane.marks[1].height == HIGHEST
    assert lane.marks[0].height < lane.marks[2].height < lane.marks[1].height


def test_without_owners_there_is_an_empty_chart():
    chart = ends([], 8)
    assert (chart.lanes, chart.total, chart.weeks) == ((), 0, (0,) * 8)


@given(some.lists(DAYS, max_size=4), some.integers(1, 12))
def test_every_mark_is_within_its_lane_and_the_sums_agree(days, weeks):
    chart = ends([Owner(f"p{n}", "/", one) for n, one in enumerate(days)], weeks)
    for lane, one in zip(chart.lanes, days, strict=True):
        assert lane.total == sum(lane.weeks) == sum(n for day, n in one.items() if 0 <= day < 7 * weeks)
        for mark in lane.marks:
            assert 0 <= mark.x < 100
            assert mark.y >= 0
            assert mark.y + mark.height <= HEIGHT
            assert LOWEST <= mark.height <= HIGHEST
    assert chart.total == sum(chart.weeks)
