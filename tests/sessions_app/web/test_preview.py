"""Two orders of memories beside each other: `sessions_app/preview.compare`. No database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.web.preview import compare

orders = st.lists(st.integers(1, 30), unique=True, max_size=20)


def entries(ids) -> list[dict]:
    return [{"id": pk, "confidence": 0.5, "observation": f"Memory {pk}"} for pk in ids]


def marks(now, then) -> tuple[dict[int, str], dict[int, str]]:
    sides = compare(entries(now), entries(then), {})
    return tuple({row.entry["id"]: row.mark for row in rows} for rows in (sides.now, sides.then))


@pytest.mark.parametrize(
    ("now", "then", "moved"),
    [
        ([1, 2, 3], [1, 2, 3], set()),
        ([9, 1, 2, 3], [1, 2, 3], set()),  # pushed down by what is new
        ([2, 3], [1, 2, 3], set()),  # moved up by what is gone
        ([3, 1, 2], [1, 2, 3], {3}),
        ([2, 3, 1], [1, 2, 3], {1}),
        ([2, 1], [1, 2], None),  # either
    ],
)
def test_only_what_changed_its_order_has_moved(now, then, moved):
    found = {pk for pk, mark in marks(now, then)[0].items() if mark == "moved"}
    assert len(found) == 1 if moved is None else found == moved


@given(orders, orders)
def test_each_memory_has_one_mark_and_both_sides_agree(now, then):
    sides = compare(entries(now), entries(then), {})
    here, there = marks(now, then)
    assert {pk for pk, mark in here.items() if mark == "new"} == set(now) - set(then)
    assert {pk for pk, mark in there.items() if mark == "gone"} == set(then) - set(now)
    both = set(now) & set(then)
    assert all(here[pk] == there[pk] in ("same", "moved") for pk in both)
    assert sides.counts["new"] + sides.counts["moved"] + sides.counts["same"] == len(now)
    kept = [pk for pk in now if here[pk] == "same"]
    assert kept == [pk for pk in then if there[pk] == "same"]
    for row in sides.now:
        assert now[row.place - 1] == row.entry["id"]
        assert row.other is None or then[row.other - 1] == row.entry["id"]


def test_a_change_of_confidence_or_text_is_told():
    then = entries([1, 2])
    now = [{"id": 1, "confidence": 0.75, "observation": "Said better"}, entries([2])[0]]
    sides = compare(now, then, {})
    first, second = sides.now
    assert sides.unchanged == 1  # what the page folds
    assert (first.surer, first.edited, first.mark) == (0.25, True, "same")
    assert (second.surer, second.edited) == (0.0, False)
