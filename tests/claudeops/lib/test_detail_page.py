"""The parts of a detail page: titles cut at sentences, tabs, meters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.detail_page import Tab, headline, percent, tabs_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("", "")),
        ("All services answer.", ("All services answer", "")),
        (
            "The session reached its limit.  Nothing\nwas changed.",
            ("The session reached its limit", "Nothing was changed."),
        ),
        ("Checked e.g. jellyfin and caddy. Both answer.", ("Checked e.g. jellyfin and caddy", "Both answer.")),
        ("Version 1.2 of caddy runs", ("Version 1.2 of caddy runs", "")),
    ],
)
def test_the_title_is_the_first_sentence_and_the_rest_follows(text, expected):
    assert headline(text) == expected


def test_a_long_sentence_is_cut_and_stands_below_in_full():
    text = "word " * 60
    title, rest = headline(text)
    assert len(title) <= 140
    assert title.endswith("…")
    assert rest == text.strip()


@given(st.text(max_size=600), st.integers(20, 200))
def test_a_title_is_one_line_of_at_most_its_length_and_nothing_is_lost(text, most):
    title, rest = headline(text, most)
    assert len(title) <= most
    assert "\n" not in title + rest
    line = " ".join(text.split())
    assert line in (rest, title, f"{title}.", f"{title}. {rest}")


def test_the_tab_that_is_asked_for_is_shown_and_a_name_that_is_none_shows_the_default():
    tabs = (Tab("learned", "Learned", "2"), Tab("events", "Events"))
    assert [tab.is_shown for tab in tabs_of(tabs, "events", "learned").all] == [False, True]
    assert tabs_of(tabs, "<script>", "learned").shown == "learned"


@pytest.mark.parametrize(
    ("part", "whole", "expected"), [(0, 20, 0), (7, 20, 35), (20, 20, 100), (30, 20, 100), (-1, 20, 0), (3, 0, None)]
)
def test_a_meter_is_full_at_its_limit_and_absent_without_one(part, whole, expected):
    assert percent(part, whole) == expected
