"""When an agent runs next. Pure: times in, times out, all UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError


def cron_error(expression: str) -> str:
    """What is wrong with a cron expression, in words; an empty string when nothing is."""
    if not expression.strip():
        return "Give a cron expression of five fields, like */15 * * * *."
    if len(expression.split()) != 5:
        return f"{expression!r} has {len(expression.split())} fields; a cron expression has five."
    try:
        next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        return f"{expression!r} is not a cron expression ({error})."
    except StopIteration:
        return f"{expression!r} never comes (a date that does not exist)."
    return ""


def next_cron(expression: str, after: datetime) -> datetime:
    """The first time strictly after `after` (UTC) that the expression names."""
    return next(CronSim(expression, after))


def next_interval(previous: datetime | None, seconds: int, after: datetime) -> datetime:
    """The next firing of a fixed interval, on the grid of `previous`; missed firings are not caught up."""
    if previous is None or previous > after:
        return after + timedelta(seconds=seconds)
    missed = int((after - previous).total_seconds() // seconds)
    return previous + timedelta(seconds=seconds * (missed + 1))
