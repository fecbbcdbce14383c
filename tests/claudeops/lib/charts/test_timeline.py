"""The timeline's geometry and folding, without a database."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.charts.timeline import (
    HEAD_ROWS,
    MOST_CALLS,
    MOST_ROWS,
    UNFOLDED,
    Call,
    Row,
    Timeline,
    Turn,
    bar,
    calls_alone,
    ticks,
    timeline,
)

SECONDS = st.floats(min_value=-1e6, max_value=1e9, allow_nan=False)


def call(line: int, outcome: str = "ok") -> Call:
    return Call(line, f"run {line}", "Bash", float(line), line + 0.5, outcome)


def turns(*calls_of_each: int, failed: int = 0) -> list[Turn]:
    found, line = [], 0
    for number, calls in enumerate(calls_of_each, start=1):
        first = line + 1
        made = tuple(call(first + place, "failed" if number == failed else "ok") for place in range(1, calls + 1))
        line = first + calls
        found.append(Turn(number, first, f"turn {number}", first - 1, line, tokens=10, cost_usd=0.5, calls=made))
    return found


def rows(drawn: Timeline) -> list[Row]:
    return [row for block in drawn.blocks for row in block.rows]


def numbers(drawn: Timeline) -> list[int]:
    """The turns that are shown or summed up, in order."""
    found: list[int] = []
    for row in rows(drawn):
        if row.is_turn and isinstance(row.item, Turn):
            found += range(row.item.number, max(row.item.last, row.item.number) + 1)
    return found


@given(st.floats(min_value=0.001, max_value=1e9, allow_nan=False))
def test_the_axis_has_three_to_seven_round_times(length):
    found = ticks(length)
    assert 3 <= len(found) <= 7
    places = [float(tick.x.removesuffix("%")) for tick in found]
    assert places[0] == 0
    assert places == sorted(places)
    assert places[-1] <= 100


def test_the_labels_of_the_axis_are_in_the_unit_of_its_step():
    assert [tick.label for tick in ticks(252)] == ["0 s", "1 min", "2 min", "3 min", "4"]
    assert [tick.label for tick in ticks(25)] == ["0 s", "5 s", "10 s", "15 s", "20 s", "25"]
    assert [tick.label for tick in ticks(1.1)] == ["0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1"]
    assert [tick.label for tick in ticks(4 * 3600)] == ["0 s", "1 h", "2 h", "3 h", "4"]
    assert [tick.label for tick in ticks(5 * 86_400)] == ["0 s", "1 d", "2 d", "3 d", "4 d", "5"]
    assert ticks(0) == ticks(-1) == ()


@given(SECONDS, SECONDS, SECONDS)
def test_a_bar_lies_within_the_width_and_can_be_seen(start, end, length):
    found = bar(start, end, length)
    if length <= 0:
        assert found is None
        return
    assert found is not None
    x, width = (float(part.removesuffix("%")) for part in (found.x, found.width))
    assert 0 <= x <= 100
    assert width > 0.3
    assert x + width <= 100.02


def test_a_bar_is_in_per_cent_of_the_length():
    found = bar(63, 126, 252)
    assert found is not None
    assert (found.x, found.width) == ("25.00%", "25.00%")


def test_a_short_run_is_not_folded():
    drawn = timeline(turns(1, 2, 1), 10)
    assert len(drawn.blocks) == 1
    assert [row.is_turn for row in rows(drawn)] == [True, False, True, False, False, True, False]


def test_the_middle_of_a_long_run_is_folded_below_one_row_that_sums_it_up():
    drawn = timeline(turns(*[1] * 20, failed=9), 40)
    head, folded, tail = drawn.blocks
    assert head.fold is tail.fold is None
    assert len(head.rows) == HEAD_ROWS
    assert folded.fold is not None
    total = folded.fold.item
    assert isinstance(total, Turn)
    assert (total.number, total.last, total.turns, total.errors) == (7, 17, 11, 1)
    assert (total.tokens, total.cost_usd) == (110, 5.5)
    assert (total.start, total.end) == (12, 34)
    assert numbers(drawn) == list(range(1, 21))


def test_a_turn_of_very_many_calls_shows_some_and_says_how_many_more():
    drawn = timeline(turns(MOST_CALLS + 7), 100)
    assert rows(drawn)[-1].more_calls == 7
    assert len(rows(drawn)) == MOST_CALLS + 2


def test_unknown_tokens_stay_unknown_in_a_sum():
    unknown = [Turn(number, number, "", number, number + 1) for number in range(1, 60)]
    fold = timeline(unknown, 60).blocks[1].fold
    assert fold is not None
    assert isinstance(fold.item, Turn)
    assert (fold.item.tokens, fold.item.cost_usd) == (None, None)


@given(st.lists(st.integers(min_value=0, max_value=60), min_size=1, max_size=400))
def test_no_turn_is_lost_and_the_rows_are_few(calls):
    drawn = timeline(turns(*calls), 1000)
    assert numbers(drawn) == list(range(1, len(calls) + 1))
    assert len(rows(drawn)) <= MOST_ROWS + 2 * (MOST_CALLS + 2)
    if sum(calls) + len(calls) <= UNFOLDED and max(calls) <= MOST_CALLS:
        assert len(drawn.blocks) == 1


def test_calls_alone_are_one_block_with_the_axis_of_the_run():
    drawn = calls_alone([call(1, "failed"), Call(2, "x", "Bash", 5, None, "failed")], 10)
    assert [row.seconds for row in rows(drawn)] == [0.5, None]
    assert drawn.ticks
