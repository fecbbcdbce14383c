"""Ages, spans and amounts in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.humanize import ago, dollars, exact, span

NOW = datetime(2026, 11, 21, 23, 8, tzinfo=UTC)


def test_an_age_reads_as_a_person_would_say_it(subtests):
    for back, words in [
        (timedelta(0), "just now"),
        (timedelta(seconds=4), "just now"),
        (timedelta(seconds=40), "40 seconds ago"),
        (timedelta(seconds=61), "1 minute ago"),
        (timedelta(minutes=119), "119 minutes ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(hours=47), "47 hours ago"),
        (timedelta(days=3), "3 days ago"),
        (timedelta(days=70), "2 months ago"),
        (timedelta(days=800), "2 years ago"),
        (timedelta(minutes=-5), "in 5 minutes"),
        (timedelta(seconds=-3), "just now"),
    ]:
        with subtests.test(str(back)):
            assert ago(NOW - back, NOW) == words


@given(st.timedeltas(min_value=timedelta(days=-4000), max_value=timedelta(days=4000)))
def test_every_age_has_words_that_point_the_right_way(back):
    words = ago(NOW - back, NOW)
    if words != "just now":
        assert words.endswith(" ago") == (back > timedelta(0))
        assert words.startswith("in ") == (back < timedelta(0))


def test_an_exact_time_is_said_in_utc_wherever_it_was_written():
    elsewhere = datetime.fromisoformat("2026-11-22T00:08:00+01:00")
    assert exact(elsewhere) == "2026-11-21 23:08:00 UTC"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.42, "0.4 s"),
        (45, "45 s"),
        (60, "1 min"),
        (725, "12 min 5 s"),
        (12_000, "3 h 20 min"),
        (3600, "1 h"),
        (187_200, "2 d 4 h"),
    ],
)
def test_a_span_has_at_most_two_units(seconds, words):
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0, "$0.00"),
        (Decimal("0.0312"), "$0.0312"),
        (Decimal("0.004000"), "$0.004"),
        (Decimal("0.5"), "$0.50"),
        (1.416, "$1.42"),
        (Decimal("1234.5"), "$1,234.50"),
    ],
)
def test_small_amounts_keep_the_digits_that_say_something(amount, words):
    assert dollars(amount) == words
