"""The limits of an agent's file: who leaves, and what a person's file exceeds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memories.files.document import Document, Edits
from memories.files.limits import Item, Limits, exceeded, fit, sizes
from memories.files.sections import RECENT

AT = datetime(2026, 11, 24, tzinfo=UTC)
LIMITS = Limits.of()


def item(
    key: int, section: str = "Effective Strategies", text: str = "x", confidence: float = 0.7, days: int = 0
) -> Item[int]:
    return Item(key, section, text, confidence, AT - timedelta(days=days))


def test_the_file_s_own_limit_goes_before_the_project_s_and_that_before_the_default() -> None:
    assert Limits.of({"items": 5}, {"items": 9, "line": 100}) == Limits(8, 10, 5, 100)


def test_of_a_full_section_the_lowest_in_confidence_leaves_then_the_oldest() -> None:
    limits = Limits.of({"items": 2})
    found = fit([item(1, confidence=0.9), item(2, days=3), item(3, days=1), item(4, "Other")], limits, 10_000)
    assert list(found) == [2]
    assert found[2] == "more than 2 items in Effective Strategies"


def test_of_a_full_file_recent_learnings_leave_first() -> None:
    items = [item(1, text="a" * 50, confidence=0.4), item(2, RECENT, "b" * 50, 0.9), item(3, RECENT, "c" * 50, 0.8)]
    assert list(fit(items, LIMITS, 120)) == [3]
    assert list(fit(items, LIMITS, 60)) == [3, 2]


def test_a_line_that_is_too_long_stays_out_and_nothing_is_cut() -> None:
    assert fit([item(1, text="ü" * 119)], LIMITS, 10_000) == {1: "longer than 120 characters"}
    assert fit([item(1, text="ü" * 118)], LIMITS, 10_000) == {}


ITEMS = st.lists(
    st.builds(
        item,
        st.integers(),
        st.sampled_from([RECENT, "A", "a ", "B"]),
        st.text(max_size=130),
        st.floats(0, 1),
        st.integers(0, 9),
    ),
    unique_by=lambda one: one.key,
    max_size=30,
)


@given(ITEMS, st.integers(1, 6), st.integers(0, 900))
def test_what_stays_is_within_the_limits_and_the_order_does_not_matter(
    items: list[Item[int]], most: int, room: int
) -> None:
    limits = Limits.of({"items": most})
    gone = fit(items, limits, room)
    stays = [one for one in items if one.key not in gone]
    assert sizes(stays) <= room
    assert all(len(one.text) <= limits.line for one in stays)
    for section in ("a", "b", RECENT.casefold()):
        assert sum(one.section.strip().casefold() == section for one in stays) <= most
    assert fit(items[::-1], limits, room) == gone
    assert fit(stays, limits, room) == {}


def test_what_a_person_s_file_exceeds_is_said() -> None:
    small = Limits(1, 2, 2, 40)
    added = [("A", f"entry {number} " + "x" * 400) for number in range(3)] + [("B", "b"), ("C", "c")]
    document = Document().edited(Edits(add=added))
    assert exceeded(document, small) == [
        "1.3 KB, at most 1",
        "3 sections, at most 2",
        "3 items in A, at most 2",
        "3 lines longer than 40 characters",
    ]
    assert exceeded(document, LIMITS) == ["3 lines longer than 120 characters"]


@given(ITEMS, st.integers(1, 6), st.integers(0, 900), st.sets(st.integers(0, 29)))
def test_what_has_to_stay_stays_and_others_leave_for_it(
    items: list[Item[int]], most: int, room: int, fixed: set[int]
) -> None:
    items = [replace(one, stays=number in fixed) for number, one in enumerate(items)]
    limits = Limits.of({"items": most})
    gone = fit(items, limits, room)
    assert not any(one.stays and one.key in gone for one in items)
    stays = [one for one in items if one.key not in gone]
    assert sizes(stays) <= room or all(one.stays for one in stays)
    assert fit(items[::-1], limits, room) == gone
