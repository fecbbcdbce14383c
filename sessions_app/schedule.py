"""Schedules of agents: when one fires next, and how it is said in words. Pure; all times are UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError


def cron_error(expression: str) -> str:
    """Say what is wrong with a cron expression; empty when it is valid."""
    if not expression.strip():
        return "Give a cron expression of five fields, like */15 * * * *."
    if len(expression.split()) != 5:
        return f"{expression!r} has {len(expression.split())} fields; a cron expression has five."
    try:
        next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        return f"{expression!r} is not a cron expression ({error})."
    except StopIteration:
        return f"{expression!r} never fires: there is no such date."
    return ""


def next_cron(expression: str, after: datetime) -> datetime:
    """Return the first time strictly after `after` (UTC) that matches the expression."""
    return next(CronSim(expression, after))


def next_interval(previous: datetime | None, seconds: int, after: datetime) -> datetime:
    """Return the next firing after `after`, a whole number of intervals after `previous`; missed ones are skipped."""
    if previous is None or previous > after:
        return after + timedelta(seconds=seconds)
    missed = int((after - previous).total_seconds() // seconds)
    return previous + timedelta(seconds=seconds * (missed + 1))


DAYS = ("Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays")
WEEKDAYS, WEEKEND = (1, 2, 3, 4, 5), (0, 6)
MOST_TIMES = 3
"""Times of a day that are said one by one."""


def interval_in_words(seconds: int) -> str:
    """Say an interval: "every 30 min", "every hour", "every 90 s"."""
    for size, unit, one in ((86_400, "days", "every day"), (3600, "hours", "every hour"), (60, "min", "every minute")):
        if seconds >= size and seconds % size == 0:
            return one if seconds == size else f"every {seconds // size} {unit}"
    return f"every {seconds} s"


def cron_in_words(expression: str) -> str:
    """Say a valid cron expression of five fields; empty for one that has no short words."""
    fields = expression.split()
    if len(fields) != 5 or fields[3] != "*":
        return ""
    minute, hour, day, _, weekday = fields
    when = _days(day, weekday)
    often = _often(minute, hour)
    if often is not None and when is not None:
        return often if when == "daily" else f"{often}, {when}"
    times = _times(minute, hour)
    return f"{when} at {times}" if times and when else ""


def _days(day: str, weekday: str) -> str | None:
    """Say the days; None for a day of the month and of the week at once, of which cron takes either."""
    if day != "*" and weekday != "*":
        return None
    if day != "*":
        return f"on day {day} of the month" if day.isdecimal() else None
    if weekday == "*":
        return "daily"
    numbers = _numbers(weekday, 7)
    if numbers is None:
        return None
    days = tuple(sorted({number % 7 for number in numbers}))
    if len(days) == 7:
        return "daily"
    if days in (WEEKDAYS, WEEKEND):
        return "weekdays" if days == WEEKDAYS else "weekends"
    return _listed([DAYS[number] for number in (*days[days[0] == 0 :], *days[: days[0] == 0])])  # Sunday stands last


def _often(minute: str, hour: str) -> str | None:
    """Say what is repeated within the day at equal steps; None for set times."""
    step = 1 if minute == "*" else _step(minute, 60)
    if step is not None:
        often = interval_in_words(60 * step)
        if hour == "*":
            return often
        first, dash, last = hour.partition("-")
        if not (dash and first.isdecimal() and last.isdecimal()):
            return None
        return f"{often}, {int(first):02}:00 to {int(last):02}:{60 - step:02}"
    if not minute.isdecimal():
        return None
    hours = 1 if hour == "*" else _step(hour, 24)
    if hours is None:
        return None
    often = interval_in_words(3600 * hours)
    return often if int(minute) == 0 else f"{often} at :{int(minute):02}"


def _step(field: str, whole: int) -> int | None:
    """Read "*/n" when n divides the whole, so that the steps are equal across its end."""
    start, slash, step = field.partition("/")
    if start != "*" or not slash or not step.isdecimal() or not int(step) or whole % int(step):
        return None
    return int(step)


def _times(minute: str, hour: str) -> str:
    if not minute.isdecimal():
        return ""
    hours = _numbers(hour, 23)
    if not hours or len(hours) > MOST_TIMES:
        return ""
    return _listed([f"{number:02}:{int(minute):02}" for number in sorted(set(hours))])


def _numbers(field: str, highest: int) -> list[int] | None:
    """Read numbers and ranges, like 1,3-5; None for anything else."""
    values: list[int] = []
    for part in field.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return None
        numbers = range(int(first), int(last if dash else first) + 1)
        if not numbers or numbers[-1] > highest:
            return None
        values += numbers
    return values


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
