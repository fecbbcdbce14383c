"""The calendar of days: geometry without a database."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as some

from claudeops.lib.charts.bars import Kind
from claudeops.lib.charts.calendar import HEIGHT, SHADES, WIDTH, Day, calendar

KINDS = (Kind("failed", "failed", "failed", "hatched"), Kind("completed", "ok", "completed"))
NUMBERS = some.fixed_dictionaries({"failed": some.integers(0, 50), "completed": some.integers(0, 10**6)})


def days_of(first: date, numbers) -> list[Day]:
    days = [first + timedelta(days=n) for n in range(len(numbers))]
    return [Day(day, f"{day:%a} {day.day} {day:%b}", f"/{day}", one) for day, one in zip(days, numbers, strict=True)]


def test_a_day_shows_its_worst_outcome_and_says_its_numbers():
    numbers = [{"completed": 8}, {"completed": 2, "failed": 1}, {}]
    chart = calendar("Sessions by day", days_of(date(2026, 11, 23), numbers), KINDS)
    assert [cell.kind and cell.kind.name for cell in chart.cells] == ["completed", "failed", None]
    assert [cell.said for cell in chart.cells] == [
        *("Mon 23 Nov: 8 completed", "Tue 24 Nov: 1 failed, 2 completed", "Wed 25 Nov: none")
    ]
    assert [cell.shade for cell in chart.cells] == [4, 2, 1]
    assert [cell.values for cell in chart.filled] == [(1, 2), (0, 8)]
    assert chart.said == "Sessions by day: 10 completed, 1 failed."


def test_each_week_is_a_column_that_begins_with_monday():
    chart = calendar("Days", days_of(date(2026, 11, 21), [{}] * 10), KINDS)  # a Saturday
    columns = [cell.x for cell in chart.cells]
    assert columns[0] == columns[1] < columns[2] == columns[8] < columns[9]
    assert chart.cells[2].y < chart.cells[0].y < chart.cells[1].y


def test_a_month_is_named_once_and_no_two_names_touch():
    chart = calendar("Days", days_of(date(2026, 9, 30), [{}] * 60), KINDS)
    months = [label for label in chart.labels if label.y < 12]
    assert [label.text for label in months] == ["Oct", "Nov"]  # one column of September has no room


def test_without_days_there_is_an_empty_chart():
    chart = calendar("Days", [], KINDS)
    assert (chart.cells, chart.labels, chart.said) == ((), (), "Days: none.")


@given(some.dates(date(1990, 1, 1), date(2090, 1, 1)), some.lists(NUMBERS, max_size=120))
def test_every_cell_is_within_the_drawing_at_its_own_place_and_the_sums_agree(first, numbers):
    chart = calendar("Days", days_of(first, numbers), KINDS)
    for cell, one in zip(chart.cells, numbers, strict=True):
        assert 0 <= cell.x <= chart.width - WIDTH
        assert 0 <= cell.y <= chart.height - HEIGHT
        assert 1 <= cell.shade <= SHADES
        assert cell.total == sum(cell.values) == sum(one.values())
        assert (cell.kind is None) == (cell.total == 0) == (cell.path == "")
    assert len({(cell.x, cell.y) for cell in chart.cells}) == len(numbers)
    assert chart.total == sum(cell.total for cell in chart.cells)
