"""Sync the schedules that the apps declare with django-q2's table. Idempotent; rows of operators are left alone.

django-q2 has no unique names, and editing a schedule does not move its `next_run`; this module handles both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module

from django.db import transaction
from django.utils import timezone
from django_q.models import Schedule

from claudeops.lib.locks import one_at_a_time

PREFIX = "claudeops:"
"""Prefix of our rows' names; other rows are an operator's own."""

APPS = ("sessions_app", "memories", "claudeops")
LOCK = 0x636C6F7073  # "clops", the key of PostgreSQL's advisory lock
LATE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Declared:
    """One schedule: `func` every `minutes`, `offset` minutes after the multiples of them since the epoch (UTC).

    `timeout` in seconds, when it is another than the queue's.
    """

    name: str
    func: str
    minutes: int
    offset: int = 0
    cluster: str | None = None
    timeout: int | None = None

    def first_run(self, at: datetime) -> datetime:
        step = timedelta(minutes=self.minutes)
        epoch = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=self.offset)
        return epoch + ((at - epoch) // step + 1) * step


@dataclass(frozen=True, slots=True)
class Synced:
    """Names of schedules, without the prefix, by what changed."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.created or self.changed or self.removed)


def declared() -> list[Declared]:
    """Collect the apps' schedules. Raises ValueError when two of them have the same name."""
    schedules = [
        Declared(**{**entry, "name": PREFIX + entry["name"]})
        for app in APPS
        for entry in import_module(f"{app}.schedules").SCHEDULES
    ]
    twice = [name for name, count in Counter(schedule.name for schedule in schedules).items() if count > 1]
    if twice:
        raise ValueError(f"Declared more than once: {', '.join(twice)}")
    return schedules


def sync_schedules(at: datetime | None = None) -> Synced:
    """Make the table hold what is declared, at `at` (UTC; now when None). Idempotent.

    `next_run` is recomputed only for a schedule that is new, has another interval, or has none, and for one that is
    further away than the interval: the clock was set back.
    """
    with transaction.atomic():
        one_at_a_time(LOCK)  # two hosts that start at once must not both insert
        return _sync(at or timezone.now(), write=True)


def out_of_sync(at: datetime | None = None) -> Synced:
    return _sync(at or timezone.now(), write=False)


def late(at: datetime | None = None) -> list[str]:
    """Name our schedules that are more than five minutes late: no worker serves the queue `default`."""
    before = (at or timezone.now()) - LATE
    rows = Schedule.objects.filter(name__startswith=PREFIX, next_run__lt=before).exclude(repeats=0)
    return sorted(name.removeprefix(PREFIX) for name in rows.values_list("name", flat=True))


def _sync(at: datetime, *, write: bool) -> Synced:
    wanted = {schedule.name: schedule for schedule in declared()}
    rows: dict[str, Schedule] = {}
    created: list[str] = []
    changed: list[str] = []
    removed: list[str] = []
    for row in Schedule.objects.filter(name__startswith=PREFIX).order_by("id"):
        if row.name in wanted and row.name not in rows:
            rows[row.name] = row
        else:  # no longer declared, or a duplicate
            removed.append(row.name.removeprefix(PREFIX))
            if write:
                row.delete()
    for name, schedule in wanted.items():
        row = rows.get(name) or Schedule(name=name)
        fields = _fields(schedule)
        in_time = row.next_run is not None and row.next_run <= at + timedelta(minutes=schedule.minutes)
        if row.pk and in_time and all(getattr(row, field) == value for field, value in fields.items()):
            continue
        (changed if row.pk else created).append(name.removeprefix(PREFIX))
        if write:
            same_interval = row.pk and (row.schedule_type, row.minutes) == (Schedule.MINUTES, schedule.minutes)
            for field, value in fields.items():
                setattr(row, field, value)
            if not same_interval or not in_time:
                row.next_run = schedule.first_run(at)
            row.save()
    return Synced(tuple(created), tuple(changed), tuple(removed))


def _fields(schedule: Declared) -> dict[str, object]:
    return {
        "func": schedule.func,
        "schedule_type": Schedule.MINUTES,
        "minutes": schedule.minutes,
        "cluster": schedule.cluster,
        "repeats": -1,
        "args": None,
        "kwargs": repr({"q_options": {"timeout": schedule.timeout}}) if schedule.timeout else None,
        "hook": None,
        "cron": None,
        "intended_date_kwarg": None,
    }
