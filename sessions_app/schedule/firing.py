"""Compute when an agent's schedule fires next. Pure; all times are UTC."""

from __future__ import annotations

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
