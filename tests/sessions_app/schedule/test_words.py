"""Schedules in words: what is said is what fires, and what has no short words is left to the expression."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.schedule import DAYS, cron_in_words, interval_in_words

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def test_a_cron_expression_in_words(subtests):
    for cron, words in [
        ("30 5 * * *", "daily at 05:30"),
        ("15 7 * * 1", "Mondays at 07:15"),
        ("30 7 * * 1-5", "weekdays at 07:30"),
        ("0 9 * * 6,0", "weekends at 09:00"),
        ("0 9 * * 6-7", "weekends at 09:00"),
        ("5 4 * * 0", "Sundays at 04:05"),
        ("5 4 * * 1,4,7", "Mondays, Thursdays and Sundays at 04:05"),
        ("0 6,18 * * *", "daily at 06:00 and 18:00"),
        ("*/30 * * * *", "every 30 min"),
        ("* * * * *", "every minute"),
        ("*/30 6-23 * * *", "every 30 min, 06:00 to 23:30"),
        ("*/15 8-17 * * 1-5", "every 15 min, 08:00 to 17:45, weekdays"),
        ("0 * * * *", "every hour"),
        ("20 */6 * * *", "every 6 hours at :20"),
        ("0 3 1 * *", "on day 1 of the month at 03:00"),
        *((cron, "") for cron in ("0 3 1 * 1", "*/7 * * * *", "0 3 * 2 *", "0 3 L * *", "0 8-18 * * *", "1,2 3 * * *")),
        *((cron, "") for cron in ("", "a b c d e", "0 3 * * MON", "0 3 * * 5-1", "*/0 * * * *", "0 3 * * 1#2")),
    ]:
        with subtests.test(str(cron)):
            assert cron_in_words(cron) == words


def test_an_interval_in_words(subtests):
    for seconds, words in [
        *((60, "every minute"), (90, "every 90 s"), (1800, "every 30 min"), (3600, "every hour")),
        *((5400, "every 90 min"), (7200, "every 2 hours"), (86_400, "every day"), (172_800, "every 2 days")),
    ]:
        with subtests.test(str(seconds)):
            assert interval_in_words(seconds) == words


@given(st.integers(0, 59), st.sets(st.integers(0, 23), min_size=1, max_size=3), st.sets(st.integers(0, 6), min_size=1))
def test_the_days_and_times_that_are_said_are_those_at_which_it_fires(minute, hours, days):
    cron = f"{minute} {','.join(map(str, hours))} * * {','.join(map(str, days))}"
    when, times = cron_in_words(cron).split(" at ")
    groups = {"daily": range(7), "weekdays": range(1, 6), "weekends": (0, 6)}
    said_days = set(groups.get(when, ())) or {DAYS.index(name) for name in re.findall(r"\w+days", when)}
    said = {
        MONDAY + timedelta(days=n, hours=int(clock[:2]), minutes=int(clock[3:]))
        for n in range(7)
        if (MONDAY + timedelta(days=n)).isoweekday() % 7 in said_days
        for clock in re.findall(r"\d\d:\d\d", times)
    }
    fires = CronSim(cron, MONDAY - timedelta(seconds=1))
    assert said == {next(fires) for _ in range(len(said))}
    assert next(fires) >= MONDAY + timedelta(days=7)


@given(st.text(alphabet="0123456789*/,- L#ab", max_size=30))
def test_any_text_is_taken(text):
    assert isinstance(cron_in_words(text), str)
